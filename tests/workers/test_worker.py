"""What a worker does with the rows it is given."""

import numpy as np
import pytest
from reliability import evaluators

from dqd.inputs.evaluator import BatchFunction, MisuseError
from dqd.types import Evaluation
from dqd.workers import worker
from dqd.workers.worker import evaluate_rows

X = np.arange(2.0 * evaluators.N).reshape(2, -1)


def evaluated(evaluator, jacobian=False):
    return evaluate_rows(f"run of {id(evaluator)}", evaluator, X, jacobian)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(worker, "_kept", {})


def test_functions_objects_and_evaluations_answer_alike():
    class Told(evaluators.Sphere):
        def evaluate(self, solutions):
            return Evaluation(*super().evaluate(solutions))

        def evaluate_with_jacobian(self, solutions):
            return Evaluation(*super().evaluate_with_jacobian(solutions))

    expected = evaluators.Sphere().evaluate_with_jacobian(X)
    every = BatchFunction(evaluators.Sphere().evaluate_with_jacobian)
    for evaluator in (every, evaluators.Sphere(), Told()):
        for jacobian in (False, True):
            answer = evaluated(evaluator, jacobian)
            assert len(answer) == 2 + jacobian
            for got, wanted in zip(answer.values(), expected, strict=False):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("function", "jacobian", "words"),
    [
        (lambda x: x.sum(1), False, "expected it to return objective and measures, got ndarray"),
        (lambda x: [x.sum(1)], False, "expected it to return objective and measures, got list"),
        (evaluators.sphere, True, "uses gradients; expected objective, measures and jacobian"),
        (lambda x: ([None, None], x), False, "objective must be real numbers, got an array of object"),
    ],
    ids=["one thing", "a list of one", "no jacobian", "no numbers"],
)
def test_an_answer_of_another_kind_is_a_mistake_whatever_the_solution(function, jacobian, words):
    with pytest.raises(MisuseError, match=words):
        evaluated(BatchFunction(function), jacobian)


def test_an_error_that_cannot_be_made_again_travels_as_words():
    class DivergedError(evaluators.DivergedError):
        """A new class: Dask teaches those that it has seen how to travel."""

    def diverging(solutions):
        raise DivergedError(3, "a corner")

    with pytest.raises(RuntimeError, match="DivergedError: diverged at 3 in a corner"):
        evaluated(BatchFunction(diverging))


def test_a_worker_keeps_the_first_copy_of_an_evaluator_and_few_of_them():
    calls = []

    def copy(number):
        return BatchFunction(lambda solutions: (calls.append(number), evaluators.sphere(solutions))[1])

    for number in range(3):
        evaluate_rows("run", copy(number), X, False)
    assert calls == [0, 0, 0]
    for other in range(20):
        evaluate_rows(f"other {other}", copy(other), X, False)
    assert len(worker._kept) == worker.KEPT
