"""Jobs: handed out once, told once, in any order."""

import numpy as np
import pytest

from dqd.search.jobs import Jobs
from dqd.types import Evaluation

X = np.arange(8.0).reshape(4, 2)


def jobs():
    """Four solutions, then two with jacobians; and what was closed."""
    work, closed = Jobs(), []
    work.add(X, False, closed.append)
    work.add(X[:2], True, closed.append)
    return work, closed


def told(*objective, **more):
    return Evaluation(np.array(objective), np.array(objective)[:, None], **more)


def test_a_batch_is_closed_in_its_own_order_when_the_last_of_it_is_told():
    work, closed = jobs()
    first, rest = work.ask(3), work.ask(3)
    assert (first.ids.tolist(), rest.ids.tolist()) == ([0, 1, 2], [3])
    work.tell([3, 1], told(3.0, 1.0))
    work.tell([0], told(0.0))
    assert not closed
    work.tell([2], told(2.0))
    (evaluation,) = closed
    assert evaluation.objective.tolist() == [0, 1, 2, 3]
    assert evaluation.measures.tolist() == [[0], [1], [2], [3]]


def test_what_wants_jacobians_is_not_mixed_with_what_does_not():
    work, _ = jobs()
    first, second = work.ask(99), work.ask(99)
    assert (len(first), first.jacobian, len(second), second.jacobian) == (4, False, 2, True)
    np.testing.assert_array_equal(second.solutions, X[:2])
    assert work.ask(1) is None
    assert work.check("tell", [5])
    with pytest.raises(ValueError, match="tell: of these ids some ask for jacobians"):
        work.check("tell", [0, 5])


def test_ids_are_told_once():
    work, closed = jobs()
    work.ask(2)
    for ids in ([0, 0], [1, 0, 1]):
        with pytest.raises(ValueError, match=r"tell: id \d was told already"):
            work.check("tell", ids)
    for number in (2, -1):
        with pytest.raises(ValueError, match=rf"tell: id {number} was never handed out"):
            work.check("tell", [number])
    work.tell([0], told(0.0))
    with pytest.raises(ValueError, match="tell: id 0 was told already"):
        work.check("tell", [0])
    assert work.out == [1]
    assert not closed


def test_what_some_leave_out_is_as_usual():
    work, closed = jobs()
    work.ask(4)
    work.tell([0], told(0.0, feasible=np.array([False])))
    work.tell([1, 2, 3], told(1.0, 2.0, 3.0))
    assert closed[0].feasible.tolist() == [False, True, True, True]
