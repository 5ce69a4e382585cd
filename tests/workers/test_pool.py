"""Pools: who may be one, and what happens to one that breaks or hangs."""

import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from reliability import evaluators

from dqd.workers.engine import ClusterError, WorkerDiedError
from dqd.workers.pool import Pool


def test_a_pool_that_forks_is_refused():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(ValueError, match=r"this pool forks.*get_context\('spawn'\)"),
    ):
        Pool.of(pool, evaluators.Sphere())


def test_an_evaluator_that_cannot_travel_is_named():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(TypeError, match=r"evaluator: it cannot be sent to another process.*top of a module"),
    ):
        Pool.of(pool, lambda x: x)


def test_a_function_that_makes_no_executor_is_told_so():
    with pytest.raises(TypeError, match=r"the function must return a concurrent.futures.Executor, got 3"):
        Pool.of(3, evaluators.Sphere(), make=lambda: 3)


def test_a_dead_process_costs_a_pool_that_can_be_made_again_nothing_else():
    pools = []

    def make():
        pools.append(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        return pools[-1]

    pool = Pool.of(make(), evaluators.Sphere(), make)
    try:
        with pytest.raises(WorkerDiedError, match="its worker died"):
            pool.result(pool.submit(evaluators.die))
        assert pool.result(pool.submit(abs, -3)) == 3
        assert len(pools) == 2
    finally:
        pool.close()


def test_a_pool_that_cannot_be_replaced_says_so():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        pool = Pool.of(executor, evaluators.Sphere())
        with pytest.raises(ClusterError, match=r"a worker died.*function that makes a pool"):
            pool.result(pool.submit(evaluators.die))


def test_a_thread_that_hangs_is_an_error_since_nobody_can_stop_it():
    release = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        pool = Pool.of(threads, evaluators.Sphere())
        task = pool.submit(release.wait)
        try:
            assert pool.wait([task], 0.05) == []
            with pytest.raises(ClusterError, match="an evaluation hangs"):
                pool.stop([task])
        finally:
            release.set()


def test_a_pool_that_is_somebody_elses_stays_open():
    with ThreadPoolExecutor(1) as threads:
        Pool.of(threads, evaluators.Sphere()).close()
        assert threads.submit(abs, -3).result() == 3


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "import dqd\n"
        "dqd.Workers(ProcessPoolExecutor(1, mp_context=get_context('spawn'))).engine(abs)\n"
    )
    answer = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert answer.returncode == 1
    assert 'under `if __name__ == "__main__":`' in answer.stderr
