"""Rounds side by side on workers: nobody waits, nothing is lost, everything is judged once."""

import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from conformance.table import quick_to_compile
from reliability import evaluators

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
ME = dqd.cma_me(0.5, batch_size=6)


@pytest.fixture(autouse=True)
def quickly():
    with quick_to_compile(True):
        yield


def run(evaluator, executor, emitter=ME, *, iterations=12, rounds=3, workers=None, **options):
    evaluator = evaluator if isinstance(evaluator, dqd.Evaluator) else dqd.evaluator(evaluator)
    where = dqd.Workers(executor, rounds=rounds, **(workers or {}))
    start = {"x0": np.zeros(evaluators.N), "seed": 3, "progress": False}
    return dqd.illuminate(evaluator, emitter, GRID, iterations=iterations, where=where, **start, **options)


def processes():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


class Seen:
    """Remembers what it evaluated, and takes its time for some of it."""

    def __init__(self):
        self.solutions, self.lock = [], threading.Lock()

    def __call__(self, solutions):
        with self.lock:
            self.solutions.extend(solutions.tolist())
        time.sleep(0.02 if solutions[0, 0] > 0.5 else 0)
        return evaluators.sphere(solutions)


@pytest.mark.parametrize(
    "emitter", [ME, dqd.map_elites(0.5, batch_size=1, initial_population=5)], ids=["cma_me", "map_elites"]
)
def test_every_solution_is_evaluated_and_judged_once(emitter):
    seen = Seen()
    with ThreadPoolExecutor(4) as pool:
        result = run(seen, pool, emitter, iterations=20)
    assert result.evaluations == len(seen.solutions) == 20 * emitter.batch_size + emitter.initial_population
    assert (result.iterations, len(result.history["iteration"])) == (20, 20)
    objective, measures = evaluators.sphere(np.array(seen.solutions, np.float32))
    cells = GRID.index_of(measures)
    best = {int(cell): objective[cells == cell].max() for cell in cells}
    assert dict(zip(result.elites.cell.tolist(), result.elites.objective.tolist(), strict=True)) == best
    assert result.elites.found.max() <= 20
    assert result.asynchronous


def test_workers_go_on_while_a_round_waits_for_its_slowest():
    others, slowest = threading.Semaphore(0), threading.Lock()

    def simulate(solutions):
        if slowest.acquire(blocking=False):  # the first solution ends after 30 others, five rounds, or never
            assert all(others.acquire(timeout=60) for _ in range(30))
        else:
            others.release()
        return evaluators.sphere(solutions)

    with ThreadPoolExecutor(2) as pool:
        assert run(simulate, pool, iterations=10).iterations == 10


def test_jacobians_and_estimates_of_them_come_from_workers():
    mega = dqd.cma_mega(0.5, batch_size=6)
    with ThreadPoolExecutor(2) as pool:
        exact = run(evaluators.Sphere(), pool, mega)
        estimated = run(dqd.evaluator(evaluators.sphere, jacobian="fd"), pool, mega, bounds=(-2.0, 2.0))
    assert exact.gradients == estimated.gradients == 12
    assert estimated.evaluations == exact.evaluations + 12 * 2 * evaluators.N
    assert np.abs(estimated.elites.solutions).max() <= 2


def test_killed_workers_lose_nothing(tmp_path):
    kills = evaluators.KillsAWorker(tmp_path, kills=2)
    with pytest.warns(UserWarning, match="evaluation repeated with success") as caught:
        result = run(kills, processes, iterations=10)
    assert len(list(tmp_path.iterdir())) == 2
    assert (result.iterations, result.evaluations, result.nonfinite) == (10, 60, 0)
    assert not [warning for warning in caught if "skipped" in str(warning.message)]


def test_a_solution_that_kills_every_worker_costs_itself_alone():
    first = dqd.AskTellAsync(ME, GRID, x0=np.zeros(evaluators.N), rounds=3, seed=3).ask(5).solutions
    with pytest.warns(UserWarning, match="evaluation skipped.*its worker died"):
        result = run(evaluators.DiesAt(first[4]), processes, iterations=6, workers={"on_failure": "skip"})
    assert (result.iterations, result.evaluations, result.nonfinite) == (6, 36, 1)


def test_a_solution_that_hangs_costs_itself_alone():
    first = dqd.AskTellAsync(ME, GRID, x0=np.zeros(evaluators.N), rounds=3, seed=3).ask(5).solutions
    workers = {"on_failure": "skip", "timeout": 0.5}
    with pytest.warns(UserWarning, match="evaluation skipped.*not finished after 0.5 s"):
        result = run(evaluators.HangsAt(first[4]), processes, iterations=6, workers=workers)
    assert (result.iterations, result.evaluations, result.nonfinite) == (6, 36, 1)


def test_a_solution_that_fails_is_named():
    def broken(solutions):
        raise ArithmeticError("diverged")

    with ThreadPoolExecutor(2) as pool, pytest.raises(dqd.EvaluationError, match=r"iteration 1, solutions.*diverged"):
        run(broken, pool)


def test_a_run_that_was_stopped_goes_on(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        first = run(evaluators.sphere, pool, out=tmp_path / "run", until=lambda now: now["iteration"] >= 5)
        assert (first.stopped, first.iterations) == ("until", 5)
        second = run(evaluators.sphere, pool, out=tmp_path / "run")
    assert (second.iterations, second.evaluations) == (12, 72)
    assert second.qd_score > first.qd_score or second.coverage > first.coverage
    assert dqd.load(tmp_path / "run").config["asynchronous"] is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounds": 0}, "rounds: expected a whole number"),
        ({"rounds": 2, "executor": None}, "rounds: this process evaluates one after the other; give an executor"),
        ({"rounds": 2, "rows": 4}, "rows: asynchronous workers are given one solution at a time, got 4"),
    ],
)
def test_workers_that_cannot_be_asynchronous_say_so(options, words):
    with pytest.raises(ValueError, match=words):
        dqd.Workers(**{"executor": processes, **options})
