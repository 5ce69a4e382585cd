"""Workers come, go, die, hang and fail, and the archive is the same (rows E2 and C3 of docs/reliability.md)."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import dask
import numpy as np
import pytest
from conformance.table import quick_to_compile
from distributed import Client, LocalCluster
from reliability import evaluators

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
SPAWN = get_context("spawn")
DASK = {
    "distributed.deploy.lost-worker-timeout": "1 hour",  # else LocalCluster gives up one that dies twice in 15 s
    "distributed.scheduler.allowed-failures": 1,  # a task is blamed for the second death, not for the fourth
}


def run(evaluator, executor=None, *, iterations=8, emitter=None, grid=GRID, quick=True, workers=None, **options):
    evaluator = evaluator if isinstance(evaluator, dqd.Evaluator) else dqd.evaluator(evaluator)
    with quick_to_compile(quick):
        return dqd.illuminate(
            evaluator,
            emitter or dqd.cma_me(0.5, batch_size=10),
            grid,
            x0=np.zeros(evaluators.N),
            iterations=iterations,
            seed=3,
            progress=False,
            where=dqd.Workers(executor, **(workers or {})),
            **options,
        )


def assert_same(one, other):
    for name in ("cell", "solutions", "objective", "measures", "found"):
        np.testing.assert_array_equal(getattr(one.elites, name), getattr(other.elites, name), err_msg=name)
    assert (one.evaluations, one.nonfinite) == (other.evaluations, other.nonfinite)


def processes(workers):
    return ProcessPoolExecutor(workers, mp_context=SPAWN)


@pytest.fixture(scope="module")
def serial():
    return run(evaluators.sphere)


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set(DASK),
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


# E2: the same archive from any number of workers of any kind ----------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_threads_give_the_serial_archive(serial, workers):
    with ThreadPoolExecutor(workers) as pool:
        assert_same(run(evaluators.sphere, pool), serial)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_processes_give_the_serial_archive(serial, workers):
    with processes(workers) as pool:
        assert_same(run(evaluators.sphere, pool), serial)


def test_dask_gives_the_serial_archive_through_client_address_and_executor(serial, cluster, client):
    assert_same(run(evaluators.sphere, client), serial)
    assert_same(run(evaluators.sphere, cluster.scheduler_address), serial)
    one_worker = next(iter(client.nthreads()))
    assert_same(run(evaluators.sphere, client.get_executor(workers=[one_worker], pure=False)), serial)


def test_four_dask_workers_give_the_serial_archive(serial, cluster, client):
    cluster.scale(4)
    client.wait_for_workers(4, timeout=120)
    assert_same(run(evaluators.sphere, client), serial)
    cluster.scale(2)


def test_gradients_travel_too(client):
    emitter = dqd.cma_mega(0.5, batch_size=10)
    serial = run(evaluators.Sphere(), emitter=emitter)
    assert serial.gradients == 8
    with ThreadPoolExecutor(2) as pool:
        assert_same(run(evaluators.Sphere(), pool, emitter=emitter), serial)
    assert_same(run(evaluators.Sphere(), client, emitter=emitter), serial)


@pytest.mark.exact
def test_a_domain_is_evaluated_by_other_processes(client):
    domain, emitter = dqd.Arm(evaluators.N), dqd.cma_mega(0.5, batch_size=10)
    options = {"emitter": emitter, "grid": domain.grid(12)}  # here and there compiled alike: without optimisations
    here = run(domain, **options)
    assert here.coverage > 5
    assert_same(run(domain, client, **options), here)


def test_killed_processes_of_a_pool_are_replaced(serial, tmp_path):
    killing = evaluators.KillsAWorker(tmp_path, kills=2)
    assert_same(run(killing, lambda: processes(2)), serial)
    assert len(list(tmp_path.iterdir())) == 2


# C3: killed, poisonous, hanging and raising ---------------------------------------------------------------------------


class Killer(threading.Thread):
    """Kills workers of a local cluster from outside while they evaluate, each kill some iterations after the last."""

    def __init__(self, cluster, kills):
        super().__init__(daemon=True)
        self.cluster, self.kills, self.killed, self.iteration = cluster, kills, [], 0

    def run(self):
        last = 0
        while len(self.killed) < self.kills:
            time.sleep(0.002)
            busy = self.busy() if self.iteration >= last + 2 else []
            if busy:
                os.kill(busy[len(self.killed) % len(busy)], signal.SIGKILL)
                self.killed.append(busy[len(self.killed) % len(busy)])
                last = self.iteration

    def busy(self):
        """Processes that have been given rows."""
        workers = self.cluster.scheduler.workers
        known = ((nanny.pid, workers.get(nanny.worker_address)) for nanny in list(self.cluster.workers.values()))
        return [pid for pid, worker in known if worker and worker.processing and pid not in (None, *self.killed)]

    def is_done(self, metrics):
        self.iteration = metrics["iteration"]
        return len(self.killed) == self.kills


def assert_survives(client, cluster, kills):
    killer = Killer(cluster, kills)
    killer.start()
    disturbed = run(evaluators.slow_sphere, client, iterations=100_000, until=killer.is_done)
    killer.join()
    assert len(killer.killed) == kills
    assert disturbed.iterations >= 2 * kills
    assert_same(run(evaluators.sphere, iterations=disturbed.iterations), disturbed)


def test_killed_dask_workers_lose_nothing(client, cluster):
    assert_survives(client, cluster, kills=5)


@pytest.mark.long
def test_fifty_killed_dask_workers_lose_nothing(client, cluster):
    assert_survives(client, cluster, kills=50)


ITERATIONS = 3  # 30 evaluations, one of them bad


@pytest.fixture(scope="module")
def holes():
    result = run(evaluators.with_holes, iterations=ITERATIONS)
    assert result.nonfinite == 1
    return result


def skipping(evaluator, executor, folder, **options):
    """The run, and the one failure it reports."""
    with pytest.warns(UserWarning, match="evaluation skipped: iteration"):
        result = run(
            evaluator,
            executor,
            iterations=ITERATIONS,
            out=folder,
            workers={"on_failure": "skip", "rows": 2, **options},
        )
    (line,) = (folder / "failures.jsonl").read_text().splitlines()
    return result, json.loads(line)


def where(failure):
    return {name: failure[name] for name in ("iteration", "phase", "index", "digest")}


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    return skipping(evaluators.raising, None, tmp_path_factory.mktemp("raised"))


def test_a_raising_evaluation_costs_itself_only(holes, raised):
    result, failure = raised
    assert_same(result, holes)
    assert failure["phase"] == "solutions"
    assert 1 <= failure["iteration"] <= ITERATIONS
    assert 0 <= failure["index"] < 10
    assert failure["error"] == "ArithmeticError: the simulation diverged"


def test_an_evaluator_that_overwrites_its_solutions_spoils_nothing(holes, raised, tmp_path):
    result, failure = skipping(evaluators.spoiling, None, tmp_path)
    assert_same(result, holes)
    assert failure == raised[1]


@pytest.mark.parametrize(
    ("evaluator", "options", "error"),
    [
        (evaluators.raising, {}, "ArithmeticError: the simulation diverged"),
        (evaluators.raising_an_odd_error, {}, "RuntimeError: DivergedError: diverged at 3 in a corner"),
        (evaluators.leaving, {}, "RuntimeError: the evaluator called sys.exit(3)"),
        (evaluators.raising_no_exception, {}, "RuntimeError: the evaluator raised LeavingError: for good"),
        (evaluators.poisonous, {}, "WorkerDiedError: its worker died"),
        (evaluators.hanging, {"timeout": 2.0}, "TimeoutError: not finished after 2 s"),
    ],
    ids=["raising", "raising oddly", "leaving", "raising no exception", "poisonous", "hanging"],
)
def test_a_pool_reports_and_goes_on(evaluator, options, error, holes, raised, tmp_path):
    result, failure = skipping(evaluator, lambda: processes(2), tmp_path, **options)
    assert_same(result, holes)
    assert failure == {**where(raised[1]), "error": error}


@pytest.mark.parametrize(
    ("evaluator", "options", "error"),
    [
        (evaluators.raising, {}, "ArithmeticError: the simulation diverged"),
        (evaluators.leaving, {}, "RuntimeError: the evaluator called sys.exit(3)"),
        (evaluators.interrupting, {}, "RuntimeError: the evaluator raised KeyboardInterrupt"),
        (evaluators.raising_no_exception, {}, "RuntimeError: the evaluator raised LeavingError: for good"),
        (evaluators.poisonous, {}, "WorkerDiedError: its workers died"),
        (evaluators.hanging, {"timeout": 4.0, "rows": 1}, "TimeoutError: not finished after 4 s"),
    ],
    ids=["raising", "leaving", "interrupting", "raising no exception", "poisonous", "hanging"],
)
def test_a_dask_cluster_reports_and_goes_on(evaluator, options, error, holes, raised, client, tmp_path):
    result, failure = skipping(evaluator, client, tmp_path, **options)
    assert_same(result, holes)
    assert failure == {**where(raised[1]), "error": error}


def test_a_failure_that_ends_a_program_does_not_end_a_dask_worker(cluster, client):
    workers = {nanny.pid for nanny in cluster.workers.values()}
    with pytest.raises(dqd.EvaluationError, match=r"iteration 2, .*the evaluator called sys.exit\(3\)"):
        run(evaluators.leaving, client, iterations=ITERATIONS)
    assert {nanny.pid for nanny in cluster.workers.values()} == workers


@pytest.mark.parametrize("on_failure", ["raise", "skip"])
@pytest.mark.parametrize("where", ["here", "pool", "dask"])
@pytest.mark.parametrize(
    ("evaluator", "error", "words"),
    [
        (evaluators.misshapen, ValueError, r"evaluator: measures: expected \(\d+, 2\) .* got \(\d+, 1\)"),
        (evaluators.answering_nothing, TypeError, "evaluator: objective must be real numbers, got an array of object"),
    ],
    ids=["shape", "kind"],
)
def test_an_answer_of_another_shape_or_kind_always_stops(evaluator, error, words, where, on_failure, client):
    executor = {"here": None, "pool": lambda: processes(1), "dask": client}[where]
    with pytest.raises(error, match=words):
        run(evaluator, executor, iterations=ITERATIONS, workers={"on_failure": on_failure})


@pytest.mark.parametrize("evaluator", [evaluators.as_lists, evaluators.as_float64])
def test_answers_of_other_kinds_travel_too(evaluator, client):
    assert_same(run(evaluator, client), run(evaluator))


def test_by_default_a_failure_stops_and_names_the_solution(raised):
    place = where(raised[1])
    with pytest.raises(
        dqd.EvaluationError, match=f"iteration {place['iteration']}, .* index {place['index']} "
    ) as stop:
        run(evaluators.raising, iterations=ITERATIONS)
    assert evaluators.bad(stop.value.solution[None]).all()


INTERRUPTED = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
import dqd

def slow(x):
    import time; time.sleep(0.05)
    return -(x**2).sum(1), x[:, :2]

def pool():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))

if __name__ == "__main__":
    result = dqd.illuminate(
        dqd.evaluator(slow), dqd.map_elites(0.1, batch_size=16), dqd.Grid([-1, -1], [1, 1], [9, 9]), x0=np.zeros(3),
        iterations=10_000, where=pool, until=lambda m: print("iteration", flush=True),
    )
    print(result.stopped, result.nonfinite, result.evaluations == 100 + 16 * result.iterations, flush=True)
"""


def test_ctrl_c_in_a_terminal_reaches_the_workers_and_still_ends_well(tmp_path):
    (tmp_path / "script.py").write_text(INTERRUPTED)
    program = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout.readline() == "iteration\n"
    os.killpg(program.pid, signal.SIGINT)
    words, errors = program.communicate(timeout=60)
    assert program.returncode == 0, errors
    assert words.splitlines()[-1] == "interrupted 0 True"


LINGERING = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from reliability.evaluators import lingering
if __name__ == "__main__":
    from reliability.test_workers import processes, run
    run(lingering, lambda: processes(2))
"""


def test_a_second_ctrl_c_does_not_wait_for_a_pool(tmp_path):
    (tmp_path / "script.py").write_text(LINGERING)
    program = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout.readline() == "evaluating\n"
        program.send_signal(signal.SIGINT)  # to this process only, not to those of its pool
        while "stopping after this chunk" not in program.stderr.readline():
            pass
        program.send_signal(signal.SIGINT)
        told = time.monotonic()
        _, words = program.communicate(timeout=30)  # until the pool's processes have ended, too
    finally:
        program.kill()
    assert time.monotonic() - told < 10
    assert "KeyboardInterrupt" in words
