"""`dqd.Workers`: what it refuses, and the engine it chooses."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reliability import evaluators

import dqd
from dqd.workers.here import Here

MISTAKES = [
    ({"rows": 0}, ValueError, "rows: expected a whole number of solutions, at least 1, got 0"),
    ({"rows": 2.0}, ValueError, "rows: .*got 2.0"),
    ({"rows": True}, ValueError, "rows: .*got True"),
    ({"on_failure": "ignore"}, ValueError, 'on_failure: expected "raise" or "skip", got \'ignore\''),
    ({"executor": lambda: 3, "timeout": 0.0}, ValueError, "timeout: expected seconds, above 0, got 0.0"),
    ({"timeout": 1.0}, ValueError, "timeout: .*in this process cannot be stopped; give an executor"),
    ({"executor": 3}, TypeError, "executor: expected a concurrent.futures.Executor.*got 3"),
    ({"executor": ThreadPoolExecutor}, TypeError, "a function that makes one.*got <class"),
    ({"executor": lambda: 3}, TypeError, "the function must return a concurrent.futures.Executor, got 3"),
    ({"executor": "tcp://10.1.2.3:8786"}, ValueError, "neither on this machine nor encrypted.*tls://10.1.2.3:8786"),
]


@pytest.mark.parametrize(("options", "kind", "words"), MISTAKES, ids=[words[:30] for _, _, words in MISTAKES])
def test_mistakes_are_explained(options, kind, words):
    with pytest.raises(kind, match=words):
        dqd.Workers(**options).engine(evaluators.Sphere())


def test_a_batch_is_cut_for_workers_only_unless_so_told():
    with ThreadPoolExecutor(1) as pool:
        assert dqd.Workers().rows_per_call is None
        assert dqd.Workers(pool).rows_per_call == 4
        assert dqd.Workers(pool, rows=9).rows_per_call == dqd.Workers(rows=9).rows_per_call == 9
        assert type(dqd.Workers(rows=np.int64(9)).rows_per_call) is int  # which JSON knows


def test_the_engine_is_that_of_the_executor():
    with ThreadPoolExecutor(1) as pool:
        assert isinstance(dqd.Workers().engine(evaluators.Sphere()), Here)
        assert dqd.Workers(pool).engine(evaluators.Sphere()).executor is pool
        made = dqd.Workers(lambda: pool).engine(evaluators.Sphere())
        assert made.executor is made.make() is pool
