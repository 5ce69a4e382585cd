"""The field runs, goes on where it stopped, and says what the numbers say."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as scipy_stats
from typer.testing import CliRunner

import dqd
from dqd.benchmark import run as running
from dqd.benchmark.entry import Entry
from dqd.benchmark.function import fields
from dqd.benchmark.page import _speedups
from dqd.benchmark.run import Benchmark, run
from dqd.benchmark.seen import linear, seen
from dqd.benchmark.standings import suites
from dqd.benchmark.trials import compiled
from dqd.benchmark.truss import bracket, truss
from dqd.cli import app
from dqd.search.search import Search
from dqd.storage.settings import SettingsChangedError

MARKS = (90, 180)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def entry(algorithm, qd_score, function="f", **others):
    """Curves (seeds, points) at 100, 200, ... evaluations."""
    qd_score = np.asarray(qd_score, float)
    steps = 100 * np.arange(1, 1 + qd_score.shape[1])
    about = {"ceiling": None, "batch": 36, "jacobians": 1, "sigmas": [], "seconds": 1.0} | others
    sizes = {"n": 5, "seeds": len(qd_score), "budget": int(steps[-1]), "k": 2}
    return Entry("seen", function, algorithm, algorithm, **sizes, **about, evaluations=steps, qd_score=qd_score,
                 coverage=qd_score)  # fmt: skip


# The functions --------------------------------------------------------------------------------------------------------


def test_every_function_starts_in_its_grid_with_finite_gradients():
    functions = seen(20)
    starts = {name: jnp.asarray(function.x0) for name, function in functions.items()}

    @jax.jit
    def look(starts):
        return {
            name: (functions[name].score(x0), jax.jacrev(functions[name].score)(x0 + 0.01))
            for name, x0 in starts.items()
        }

    for name, ((objective, measures), (gradient, rows)) in look(starts).items():
        assert not functions[name].grid.outside(np.asarray(measures)), name
        assert objective <= 100.001, name
        assert np.isfinite(gradient).all(), name
        assert np.isfinite(rows).all(), name
        assert np.abs(rows).max(axis=-1).min() > 0 or name == "partly-flat", name


def test_a_field_is_the_function_that_was_chosen():
    functions = {name: seen(20)[name] for name in ("arm", "network", "network-k4")}
    every = fields(functions)
    assert len(every["arm"].scores) == 2
    assert len(every["network-k4"].scores) == 1
    x = jnp.linspace(-1, 1, 20)
    for name, function in functions.items():
        np.testing.assert_allclose(every[name].score(x)[1], function.score(x)[1], rtol=1e-5)


def test_a_truss_obeys_statics():
    """Bars carry the load: forces balance at every free node, and thicker bars give way less."""
    directions, lengths, load = bracket(2)
    assert len(lengths) == 20
    areas = np.linspace(1, 2, 20)
    moved = np.linalg.solve((directions.T * (areas / lengths)) @ directions, load)
    forces = areas / lengths * (directions @ moved)
    np.testing.assert_allclose(directions.T @ forces, load, atol=1e-9)
    score = truss(20).score
    (thin, (mass, _)), (thick, (more, _)) = score(jnp.zeros(20)), score(jnp.ones(20))
    assert thick > thin
    assert float(thin) == pytest.approx(50, rel=1e-4)
    assert float(more - mass) == pytest.approx(2 * np.tanh(0.5), rel=1e-4)
    with pytest.raises(ValueError, match=r"20, 36, 52, ... bars, got 21"):
        truss(21)


# Running --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmark")
    wanted = Benchmark(["seen"], ["cma-mega"], out, seeds=2, budget=180, n=20, only=["sphere"])
    lines = []
    return wanted, {entry.algorithm: entry for entry in run(wanted, MARKS, lines.append)}, lines


def test_an_entry_is_what_illuminate_finds(ran):
    _, entries, lines = ran
    found = entries["cma-mega"]
    domain = dqd.LinearProjection("sphere", 20)
    emitter = dqd.cma_mega(found.sigmas[0])
    results = dqd.illuminate(
        domain, emitter, domain.grid(), x0=jnp.zeros(20), iterations=5, seeds=[0, 1], progress=False
    )
    np.testing.assert_allclose(found.at(180), results.qd_score, rtol=1e-3)
    assert found.evaluations.tolist() == [36, 72, 108, 144, 180]
    assert lines[0] == "dqd: 1 of 1 entries to run"


def test_what_is_there_is_not_run_again(ran):
    wanted, entries, _ = ran
    lines = []
    again = {entry.algorithm: entry for entry in run(wanted, MARKS, lines.append)}
    assert lines == ["dqd: 0 of 1 entries to run"]
    np.testing.assert_allclose(again["cma-mega"].qd_score, entries["cma-mega"].qd_score, atol=1e-4)
    with pytest.raises(SettingsChangedError, match=r"other settings \(seeds differ\); give another --out"):
        run(dataclasses.replace(wanted, seeds=3), MARKS, lines.append)


@pytest.mark.parametrize("name", ["cma-mae", "dns", "dns-g"])
def test_who_searches_in_another_archive_is_judged_by_the_grid(name):
    function = linear("sphere", np.zeros(6))
    empty = running.archive(name, function, Search(running.CONTESTANTS[name].emitters()[0]))
    assert empty.reported.tessellation == function.grid
    assert (empty.threshold is not None) == (name == "cma-mae")


def test_who_searches_in_the_grid_keeps_no_second_archive():
    function = linear("sphere", np.zeros(6))
    assert running.archive("cma-mega", function, Search(dqd.cma_mega(1.0))).results is None


def test_of_several_sigmas_the_best_counts_at_every_point():
    scores = np.array([[[1.0, 9.0], [1.0, 9.0]], [[2.0, 8.0], [4.0, 8.0]]])  # (searches, seeds, iterations)
    function = linear("sphere", np.zeros(6))
    field = fields({"sphere": function})["sphere"]
    own = running.searches("cma-mega-tuned", function, field)[:2]
    empty = running.archive("cma-mega-tuned", function, own[0])
    task = running.Task(function, field, tuple(own), empty, seeds=2, iterations=2, ready=compiled)
    asked = {"suite": "seen", "function": "sphere", "algorithm": "cma-mega-tuned", "n": 6, "seeds": 2, "budget": 72}
    made = running._entry(asked, task, slice(0, 2), scores, scores, [72], 1.0)
    assert made.qd_score.tolist() == [[2.0, 9.0], [4.0, 9.0]]
    assert made.sigmas == [0.03, 0.1]


def test_an_initial_population_is_part_of_the_budget():
    wanted = Benchmark(["seen"], ["map-elites"], Path(), seeds=1, budget=180, n=20)
    function = linear("sphere", np.zeros(6))
    search = Search(dqd.map_elites(0.1))
    empty = running.archive("map-elites", function, search)
    task = running._task(wanted, function, fields({"f": function})["f"], [search], empty, compiled)
    assert task.iterations == 2  # of 36, after 100


# What it amounts to ---------------------------------------------------------------------------------------------------


def test_standings_by_hand():
    fast = entry("targeting", [[4, 10, 12], [5, 11, 13], [6, 12, 14]])
    slow = entry("cma-mega", [[1, 2, 10], [2, 3, 11], [3, 4, 12]], batch=36, jacobians=0)
    (suite,) = suites([fast, slow], [100, 300], jacobian_cost=4.0)
    assert suite.reference == "cma-mega"
    assert suite.ranks(300)["targeting"][0] == 1.0
    assert suite.speedup("f", "targeting") == 300 / 200  # 11 is reached after 200 by two of three
    assert suite.speedup("f", "targeting", cost=True) == pytest.approx(300 / (200 * (1 + 3 / 36)))
    assert suite.ahead("targeting", 100) == {"ahead": 1, "surely_ahead": 0, "surely_behind": 0, "functions": 1}
    assert suite.share_of_best("cma-mega", 300) == {"f": pytest.approx(100 * 11 / 13)}


def test_a_score_that_never_comes_is_no_speedup():
    entries = [entry("targeting", [[1, 2], [1, 2]]), entry("cma-mega", [[5, 9], [5, 9]])]
    (suite,) = suites(entries, [200], None)
    assert suite.speedup("f", "targeting") == 0.0
    assert _speedups(suite).splitlines()[-1] == "| *median* | < 1.00 | < 1.00 |"


def test_tests_are_paired_and_corrected():
    random = np.random.default_rng(0)
    base = random.normal(size=(10, 1))
    better = [entry("targeting", base + 0.1, name) for name in "fg"]
    (suite,) = suites([*better, *(entry("cma-mega", base, name) for name in "fg")], [100], None)
    p = scipy_stats.wilcoxon(base[:, 0] + 0.1, base[:, 0]).pvalue
    assert suite.tests("targeting", 100) == {"f": pytest.approx(2 * p), "g": pytest.approx(2 * p)}
    assert suite.ahead("targeting", 100)["surely_ahead"] == 2


def test_the_command_writes_a_page(ran, monkeypatch):
    wanted, entries, _ = ran
    rival = dataclasses.replace(entries["cma-mega"], algorithm="targeting", title="Targeting")
    monkeypatch.setattr("dqd.benchmark.run.run", lambda *_: [rival, *entries.values()])
    result = invoke("benchmark", "--quick", "--out", wanted.out)
    assert result.exit_code == 0, result.output
    page, figures = (wanted.out / "benchmark.md").read_text(), json.loads((wanted.out / "benchmark.json").read_text())
    assert "| sphere | " in page
    assert "| *median* | " in page
    assert (wanted.out / "seen.png").stat().st_size > 10_000
    assert len(figures["seen"]["scores"]) == 2
    assert figures["seen"]["scores"][0]["percent_of_ceiling"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithms", "cma-maga"], "unknown algorithm 'cma-maga'; did you mean"),
        (["--suite", "sen"], "unknown suite 'sen'; did you mean 'seen'"),
        (["--only", "sfere"], "unknown function 'sfere'; did you mean 'sphere'"),
    ],
)
def test_an_unknown_name_is_answered(arguments, words, tmp_path):
    result = invoke("benchmark", "--quick", "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in result.output
