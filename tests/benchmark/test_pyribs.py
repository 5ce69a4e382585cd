"""pyribs in the field: its figures are those of its elites, and all else is as for this library's own."""

import dataclasses
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from dqd.benchmark import pyribs
from dqd.benchmark import run as running
from dqd.benchmark.function import fields
from dqd.benchmark.run import Benchmark, run
from dqd.benchmark.seen import seen
from dqd.cli import app

NAMES = ["pyribs-cma-mae", "pyribs-cma-maega"]
BUDGET = 360


def entries(out, algorithms, functions):
    wanted = Benchmark(["seen"], algorithms, out, seeds=2, budget=BUDGET, n=20, only=functions)
    return {(entry.function, entry.algorithm): entry for entry in run(wanted, [180, BUDGET], lambda _: None)}


def task(name, function, iterations=BUDGET // 36):
    field = fields({"f": function})["f"]
    own = running.searches(name, function, field)
    empty = running.archive(name, function, own[0])
    return running.Task(function, field, tuple(own), empty, seeds=2, iterations=iterations, ready=pyribs.ready)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return entries(tmp_path_factory.mktemp("pyribs"), NAMES, ["sphere", "network-k4"])


def test_evaluations_are_counted_as_for_this_library(ran, tmp_path):
    ours = entries(tmp_path, ["cma-mae", "cma-maega"], ["sphere"])
    for entry in ours.values():
        theirs = ran[entry.function, f"pyribs-{entry.algorithm}"]
        for what in ("batch", "jacobians", "sigmas", "k", "n", "budget", "ceiling"):
            assert getattr(theirs, what) == getattr(entry, what), what
        assert theirs.evaluations.tolist() == entry.evaluations.tolist()
        assert theirs.at(BUDGET) == pytest.approx(entry.at(BUDGET), rel=0.5)  # other numbers, the same algorithm


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("of", ["sphere", "network-k4"])
def test_its_score_is_that_of_its_elites(name, of, ran):
    function, entry = seen(20)[of], ran[of, name]
    wanted = task(name, function)
    for seed in range(2):
        trial = pyribs.Trial(wanted, wanted.searches[0], seed)
        steps = [trial.step() for _ in range(wanted.iterations)]
        elites = trial.results.data()
        objective, measures = jax.vmap(function.score)(jnp.asarray(elites["solution"], jnp.float32))
        cells = set(np.asarray(function.grid.index_of(measures)).tolist())
        assert len(cells) == len(elites["solution"]) > 20
        found = float(np.sum(objective)) / function.grid.num_cells, 100 * len(cells) / function.grid.num_cells
        np.testing.assert_allclose(steps[-1], found, rtol=1e-4)
        np.testing.assert_allclose((entry.qd_score[seed, -1], entry.coverage[seed, -1]), found, rtol=1e-4)
        assert np.all(np.diff([score for score, _ in steps]) >= -1e-9)  # what was found is not lost


def test_the_same_seeds_find_the_same(tmp_path):
    first, again = (entries(tmp_path / folder, NAMES, ["sphere"]) for folder in ("first", "again"))
    for key, entry in first.items():
        np.testing.assert_array_equal(entry.qd_score, again[key].qd_score)
        assert not np.array_equal(entry.qd_score[0], entry.qd_score[1])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_is_in_no_archive(name):
    def score(x):
        objective, measures = plain.score(x)
        return jnp.where(x[0] > 0.1, jnp.nan, objective), jnp.where(x[1] > 0.1, jnp.inf, measures)

    plain = seen(20)["sphere"]
    wanted = task(name, dataclasses.replace(plain, score=score), iterations=5)
    trial = pyribs.Trial(wanted, wanted.searches[0], 0)
    for _ in range(wanted.iterations):
        trial.step()
    for archive in (trial.archive, trial.results):
        elites = archive.data()
        assert len(elites["solution"]) > 5
        assert elites["solution"][:, :2].max() <= 0.1
        assert elites["objective"].min() > 0


def test_without_pyribs_it_is_said_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ribs", None)
    asked = ["benchmark", "--quick", "--out", str(tmp_path), "--algorithms", "pyribs-cma-mae"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2
    assert "CMA-MAE of pyribs needs ribs: pip install ribs" in result.output
    Benchmark(["seen"], ["cma-mae"], tmp_path)  # others do not


def test_who_does_not_ask_for_pyribs_does_not_load_it():
    code = (
        "import json, sys; from pathlib import Path; from dqd.benchmark.run import Benchmark;"
        "Benchmark(['seen'], ['cma-mae'], Path()); print(json.dumps('ribs' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
