"""Evaluations outside the compiled program: the same search as inside, and words for what does not fit."""

import functools
import json
from dataclasses import dataclass

import numpy as np
import pytest
from conformance.table import EMITTERS, PROBLEMS, RESOLUTION, assert_same, problem, search, start
from reliability import evaluators

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])


def run(evaluator=evaluators.sphere, emitter=None, **options):
    emitter = emitter or dqd.map_elites(0.3, batch_size=6, initial_population=7)
    settings = {"x0": np.zeros(evaluators.N), "iterations": 3, "progress": False}
    evaluator = evaluator if isinstance(evaluator, dqd.Evaluator) else dqd.evaluator(evaluator)
    return dqd.illuminate(evaluator, emitter, GRID, **{**settings, **options})


@pytest.mark.x64
def test_hosted_equals_compiled_bit_for_bit():
    name = "og_map_elites"  # which wants only some of its points
    compiled = search(name, iterations=5, chunk=5)
    emitter, grid = EMITTERS[name](), PROBLEMS[0].grid(RESOLUTION)
    hosted = dqd.illuminate(
        problem(0),
        emitter,
        grid,
        x0=start(),
        iterations=5,
        where=dqd.Workers(rows=emitter.batch_size),
        progress=False,
    )
    assert_same(hosted.state, compiled.state)


def test_a_function_that_returns_three_things_serves_gradients():
    def all_three(solutions):
        return evaluators.Sphere().evaluate_with_jacobian(solutions)

    emitter = dqd.cma_mega(0.5, batch_size=6)
    one, other = run(all_three, emitter), run(evaluators.Sphere(), emitter)
    np.testing.assert_array_equal(one.elites.solutions, other.elites.solutions)
    assert one.gradients == 3


def test_a_function_of_its_own_for_gradients_is_asked_for_points_only():
    asked = []

    def with_jacobian(solutions):
        asked.append(len(solutions))
        return evaluators.Sphere().evaluate_with_jacobian(solutions)

    emitter = dqd.cma_mega(0.5, batch_size=6)
    both = dqd.evaluator(evaluators.sphere, jacobian=with_jacobian)
    assert_same(run(both, emitter).state, run(evaluators.Sphere(), emitter).state)
    assert asked == [1, 1, 1]


def test_until_and_progress_come_after_every_iteration():
    seen = []
    result = run(iterations=50, until=lambda metrics: seen.append(metrics["iteration"]) or len(seen) == 4)
    assert (seen, result.iterations, result.stopped) == ([1, 2, 3, 4], 4, "until")


@pytest.mark.parametrize("evaluator", [evaluators.sphere, evaluators.Sphere()], ids=["function", "object"])
def test_a_run_goes_on_where_it_stopped(evaluator, tmp_path):
    emitter = dqd.cma_me(0.5, batch_size=6)
    whole = run(evaluator, emitter, iterations=6)
    run(evaluator, emitter, iterations=2, out=tmp_path / "run")
    resumed = run(evaluator, emitter, iterations=6, out=tmp_path / "run")
    assert_same(resumed.state, whole.state)
    np.testing.assert_array_equal(resumed.history["qd_score"], whole.history["qd_score"])


def test_a_run_that_goes_on_does_not_evaluate_its_initial_population_again(tmp_path):
    seen = []

    def evaluator(solutions):
        seen.extend(solutions)
        return evaluators.sphere(solutions)

    run(evaluator, iterations=1, out=tmp_path / "run")
    assert len(seen) == 7 + 6
    run(evaluator, iterations=2, out=tmp_path / "run")
    assert len(seen) == 7 + 6 + 6


def test_the_settings_of_a_run_name_its_evaluator(tmp_path):
    names = {}
    for evaluator in (evaluators.sphere, evaluators.Sphere(), dqd.Arm(evaluators.N)):
        where = dqd.Workers() if isinstance(evaluator, dqd.Domain) else None
        run(evaluator, iterations=1, out=tmp_path / str(len(names)), where=where)
        config = json.loads((tmp_path / str(len(names)) / "config.json").read_text())
        names[len(names)] = config["domain"]["evaluator"]
    assert names[0]["function"] == "reliability.evaluators.sphere"
    assert names[1] == "reliability.evaluators.Sphere"
    assert names[2]["n"] == evaluators.N


def scaled(scale, solutions):
    objective, measures = evaluators.sphere(solutions)
    return scale * objective, measures


@dataclass
class Scaled:
    scale: float

    def __call__(self, solutions):
        return scaled(self.scale, solutions)


@pytest.mark.parametrize("make", [lambda scale: functools.partial(scaled, scale), Scaled], ids=["partial", "dataclass"])
def test_an_evaluator_of_another_setting_is_another_run(make, tmp_path):
    run(make(1.0), iterations=1, out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"domain\.evaluator\..*: 1\.0 there, 2\.0 here"):
        run(make(2.0), iterations=2, out=tmp_path / "run")
    assert run(make(1.0), iterations=2, out=tmp_path / "run").iterations == 2


def test_another_number_of_rows_is_another_run(tmp_path):
    run(iterations=1, out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"domain\.rows"):
        run(iterations=2, out=tmp_path / "run", where=dqd.Workers(rows=3))


MISTAKES = [
    ({"evaluator": 3}, TypeError, r"evaluator: function: expected a function of a batch \(b, n\)"),
    ({"evaluator": lambda x: x.sum(1)}, TypeError, "evaluator: expected it to return objective and measures"),
    ({"evaluator": lambda x: (x.sum(1), x)}, ValueError, r"evaluator: measures: expected \(7, 2\) = .*got \(7, 6\)"),
    ({"evaluator": lambda x: (x.sum(), x[:, :2])}, ValueError, r"evaluator: objective: expected \(7,\)"),
    ({"emitter": dqd.cma_mega(0.5)}, TypeError, "uses gradients; expected objective, measures and jacobian"),
    ({"seeds": [0, 1]}, ValueError, "seeds: .*one seed at a time"),
    ({"where": 3}, TypeError, "executor: expected a concurrent.futures.Executor"),
]


@pytest.mark.parametrize(("options", "kind", "words"), MISTAKES, ids=[words[:30] for _, _, words in MISTAKES])
def test_mistakes_are_explained(options, kind, words):
    with pytest.raises(kind, match=words):
        run(**options)
