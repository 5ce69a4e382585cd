"""A run ends when it is told to, on every path, and ends so again."""

import jax.numpy as jnp
import numpy as np
import pytest
import small

import dqd
from dqd.runners.until import Now
from dqd.search.history import COLUMNS, MOST_ROWS, History

GRID = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[20, 20])
OPTIONS = {"x0": jnp.zeros(5), "progress": False}
MEGA = dqd.cma_mega(0.5)


def score(x):
    return -jnp.sum(x**2), x[:2]


def told(*coverages):
    history = History()
    for value in coverages:
        history.append(dict.fromkeys(COLUMNS, np.full(1, value)))
    return history


def test_a_run_stops_when_its_coverage_is_reached():
    result = dqd.illuminate(score, MEGA, GRID, **OPTIONS, iterations=10_000, chunk=10, until=dqd.coverage(40))
    assert result.stopped == "until"
    assert result.iterations % 10 == 0
    assert result.history["coverage"][-1] >= 40 > result.history["coverage"][-11]


@pytest.mark.parametrize("path", ["compiled", "evaluator"])
def test_a_run_stops_when_its_time_is_over_whatever_the_chunk(path):
    """Ten million iterations, looked at after each million, would take hours."""
    numpy = dqd.evaluator(lambda x: (-(x**2).sum(axis=1), x[:, :2]))
    problem, emitter = (score, MEGA) if path == "compiled" else (numpy, dqd.map_elites(0.1))
    options = {"iterations": 10**7, "chunk": 10**6, "until": dqd.seconds(0.2)}
    assert dqd.illuminate(problem, emitter, GRID, **OPTIONS, **options).stopped == "until"


def test_a_time_limit_is_one_more_condition():
    options = {"iterations": 10**7, "chunk": 10, **OPTIONS}
    assert dqd.illuminate(score, MEGA, GRID, **options, time_limit=0.2).stopped == "until"
    both = dqd.illuminate(score, MEGA, GRID, **options, time_limit=600, until=lambda now: now["iteration"] >= 50)
    assert both.stopped == "until"
    assert both.iterations < 10**6


@pytest.mark.parametrize("path", ["compiled", "evaluator"])
def test_a_run_stops_after_so_many_evaluations_and_stays_so(path, tmp_path):
    numpy = dqd.evaluator(lambda x: (-(x**2).sum(axis=1), x[:, :2]))
    problem, emitter = (score, MEGA) if path == "compiled" else (numpy, dqd.map_elites(0.1, batch_size=36))
    begin, seen = emitter.initial_population, []
    stop = dqd.evaluations(begin + 36 * 25) | (lambda now: seen.append((now["iteration"], now["evaluations"])))
    options = {"iterations": 1000, "chunk": 10, "until": stop, "out": tmp_path / "run"}
    result = dqd.illuminate(problem, emitter, GRID, **OPTIONS, **options)
    assert (result.stopped, result.iterations, result.evaluations) == ("until", 30, begin + 36 * 30)
    assert seen == [(10, begin + 360), (20, begin + 720)]
    assert dqd.illuminate(problem, emitter, GRID, **OPTIONS, **options).iterations == 30


def test_evaluations_of_several_seeds_are_those_of_each():
    options = {"iterations": 50, "chunk": 10, "until": dqd.evaluations(36 * 20), "seeds": [0, 1, 2]}
    assert dqd.illuminate(score, MEGA, GRID, **OPTIONS, **options)[0].evaluations == 36 * 20


def test_a_run_that_stagnates_stops_and_stays_so(tmp_path):
    options = {"iterations": 10_000, "chunk": 20, "until": dqd.stagnation(iterations=40, tolerance=10.0)}
    result = dqd.illuminate(score, MEGA, GRID, **OPTIONS, **options, out=tmp_path / "run")
    assert (result.stopped, result.iterations) == ("until", 60)  # the first row stands after iteration 1
    again = dqd.illuminate(score, MEGA, GRID, **OPTIONS, **options, out=tmp_path / "run")
    assert again.iterations == 60


def test_stagnation_compares_with_the_metric_so_many_iterations_ago():
    stop = dqd.stagnation(iterations=3, tolerance=0.1, metric="coverage")
    assert not stop(Now(told(10, 10, 10), 0.0, 0))
    assert stop(Now(told(10, 10, 10, 10.9), 0.0, 0))
    assert not stop(Now(told(10, 10, 10, 12), 0.0, 0))
    assert stop(Now(told(5, 10, 10, 10, 10.9), 0.0, 0))


def test_what_was_long_ago_is_found_in_a_thinned_history():
    history = History()
    for first in range(0, 2 * MOST_ROWS + 1000, 500):
        history.append({name: np.arange(first + 1, first + 501.0) for name in COLUMNS})
    for iterations in (0, 1, 37, 1000, MOST_ROWS):
        then = history.ago(iterations)["qd_score"]
        assert history.done - iterations - history.stride < then <= history.done - iterations
    assert history.ago(history.done) is None


def test_conditions_are_joined_also_with_functions():
    early = dqd.coverage(90) | (lambda now: now["iteration"] >= 2)
    assert early(Now(told(1, 1), 0.0, 0))
    assert not early(Now(told(1), 0.0, 0))
    assert not early.any_time
    assert ((lambda now: False) | dqd.seconds(1))(Now(told(1), 2.0, 0))
    assert (dqd.coverage(90) | dqd.seconds(1)).any_time


def test_until_is_given_what_is_documented():
    seen = []
    dqd.illuminate(score, MEGA, GRID, **OPTIONS, iterations=20, chunk=10, until=lambda now: seen.append(dict(now)))
    assert [now["iteration"] for now in seen] == [10, 20]
    assert all(
        set(now) == {"iteration", "seconds", "evaluations", "qd_score", "coverage", "best", "mean"} for now in seen
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dqd.seconds(0), "seconds: expected a finite number above 0"),
        (lambda: dqd.coverage("90"), "coverage: expected"),
        (lambda: dqd.stagnation(iterations=0), "iterations: expected"),
        (lambda: dqd.stagnation(metric="qd"), "unknown metric 'qd'"),
    ],
)
def test_mistakes_are_said_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("until", [5, [dqd.seconds(60)]], ids=["number", "list"])
def test_what_is_no_condition_is_refused_at_once(until):
    with pytest.raises(TypeError, match="until: expected a condition such as"):
        small.illuminate(until=until)
