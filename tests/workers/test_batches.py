"""Batches in pieces: order, retries, and who is blamed. The engine is this process, or one whose worker dies."""

import warnings
from concurrent.futures import Executor, Future

import numpy as np
import pytest

import dqd
from dqd.inputs.evaluator import BatchFunction
from dqd.workers.batches import Evaluations
from dqd.workers.engine import WorkerDiedError

X = np.arange(20.0).reshape(10, 2)


def score(solutions):
    return solutions.sum(1), solutions[:, :1]


def evaluations(function, executor=None, *, rows=4, on_failure="raise", out=None):
    return Evaluations(BatchFunction(function), dqd.Workers(executor, rows, on_failure=on_failure), 1, out)


class Dying(Executor):
    """Its worker dies, the first times a row of a batch is evaluated."""

    def __init__(self, row, times):
        self.row, self.times = row, times

    def submit(self, function, *arguments):
        future = Future()
        if self.times and (arguments[2] == X[self.row]).all(axis=1).any():
            self.times -= 1
            future.set_exception(WorkerDiedError("its worker died"))
        else:
            future.set_result(function(*arguments))
        return future


def told(caught):
    return [str(warning.message) for warning in caught]


@pytest.fixture(autouse=True)
def every_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield


def test_pieces_have_as_many_rows_and_are_put_together_in_order():
    seen = []

    def evaluator(solutions):
        seen.append(len(solutions))
        return score(solutions)

    found = evaluations(evaluator).evaluate(X, 1, "solutions")
    assert seen == [4, 4, 2]
    np.testing.assert_array_equal(found.objective, X.sum(1))
    np.testing.assert_array_equal(found.measures, X[:, :1])


def test_without_a_number_of_rows_a_batch_stays_whole():
    seen = []
    evaluations(lambda x: seen.append(len(x)) or score(x), rows=None).evaluate(X, 1, "solutions")
    assert seen == [10]


def test_an_empty_batch_is_not_evaluated():
    assert evaluations(None).evaluate(X[:0], 1, "points").jacobian.shape == (0, 2, 2)


def fails_at(*rows):
    def function(solutions):
        if any((solutions == X[row]).all(axis=1).any() for row in rows):
            raise ArithmeticError("diverged")
        return score(solutions)

    return function


def test_failures_cost_themselves_only_and_one_line_counts_them(tmp_path, recwarn):
    (tmp_path / "config.json").touch()
    bad = [1, 2, 9]
    every = evaluations(fails_at(*bad), on_failure="skip", out=tmp_path)
    found = every.evaluate(X, 7, "solutions")
    assert np.flatnonzero(np.isnan(found.objective)).tolist() == bad
    np.testing.assert_array_equal(np.delete(found.objective, bad), np.delete(X.sum(1), bad))
    (first,) = told(recwarn)
    assert first.startswith("evaluation skipped: iteration 7, solutions, index 1 (digest ")
    every.close()
    assert told(recwarn)[1:] == [
        f"evaluation skipped 3 times: 3 ArithmeticError; {tmp_path / 'failures.jsonl'} has a line for each"
    ]
    assert len((tmp_path / "failures.jsonl").read_text().splitlines()) == 3


def test_by_default_the_first_failure_stops_and_carries_its_solution():
    with pytest.raises(dqd.EvaluationError, match=r"iteration 7, .* index 6 .*ArithmeticError: diverged") as stop:
        evaluations(fails_at(6)).evaluate(X, 7, "solutions")
    np.testing.assert_array_equal(stop.value.solution, X[6])


def test_a_retry_that_helped_is_told(recwarn):
    dying = Dying(row=5, times=2)
    every = evaluations(score, dying)
    np.testing.assert_array_equal(every.evaluate(X, 3, "solutions").objective, X.sum(1))
    (words,) = told(recwarn)
    assert words.startswith(
        "evaluation repeated with success: iteration 3, solutions, index 4 to 7: WorkerDiedError: its worker died"
    )
    dying.times = 1
    every.evaluate(X, 4, "solutions")
    every.close()
    assert told(recwarn)[1:] == ["evaluation repeated with success 2 times: 2 WorkerDiedError"]


def test_an_error_that_does_not_come_again_is_told_too(recwarn):
    times = iter([True])

    def once(solutions):
        if next(times, False):
            raise ConnectionError("the licence server is busy")
        return score(solutions)

    found = evaluations(once).evaluate(X, 3, "solutions")
    np.testing.assert_array_equal(found.objective, X.sum(1))
    (words,) = told(recwarn)
    assert "index 0 to 3: ConnectionError: the licence server is busy" in words


def test_a_solution_that_kills_its_worker_again_and_again_is_blamed(recwarn):
    every = evaluations(score, Dying(row=5, times=1 + 3 + 3), on_failure="skip")  # side by side, its piece, itself
    found = every.evaluate(X, 3, "solutions")
    assert np.flatnonzero(np.isnan(found.objective)).tolist() == [5]
    (words,) = told(recwarn)
    assert words.startswith("evaluation skipped: iteration 3, solutions, index 5 ")
