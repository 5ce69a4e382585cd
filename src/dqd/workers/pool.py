"""Evaluations in anybody's `concurrent.futures.Executor`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, TypeVar, cast

from dqd.workers.engine import ClusterError, Task, WorkerDiedError
from dqd.workers.worker import begin, leaving

if TYPE_CHECKING:
    from dqd.inputs.evaluator import Evaluator

GLANCE = 1.0  # seconds after which a signal is noticed that came while Python began to wait
T = TypeVar("T")


class Pool:
    """An executor of the standard interface. One that breaks, or hangs, is replaced if we know how to make another."""

    deaths = 3

    def __init__(self, executor: Executor, make: Callable[[], Executor] | None = None) -> None:
        self.executor, self.make = self._begun(executor), make

    @staticmethod
    def of(executor: Executor, evaluator: Evaluator, make: Callable[[], Executor] | None = None) -> Pool:
        """A user's executor, looked at before it is used."""
        if not isinstance(executor, Executor):
            raise TypeError(f"executor: the function must return a concurrent.futures.Executor, got {executor!r}")
        if isinstance(executor, ProcessPoolExecutor):
            _check_processes(executor, evaluator)
        return Pool(executor, make)

    @property
    def slots(self) -> int | None:
        return getattr(self.executor, "_max_workers", None)  # of the standard library's

    def submit(self, function: Callable[..., T], *arguments: object) -> Task[T]:
        try:
            return self.executor.submit(function, *arguments)
        except BrokenExecutor as error:
            self._replace("a worker died", error)
            return self.executor.submit(function, *arguments)

    def wait(self, tasks: Sequence[Task[T]], seconds: float | None) -> list[Task[T]]:
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        futures = cast("Sequence[Future[T]]", tasks)
        ended = {future for future in futures if future.done()}
        while not ended and (left := deadline - time.monotonic()) > 0:
            ended = wait(futures, min(left, GLANCE), FIRST_COMPLETED).done
        return [task for task in tasks if task in ended]

    def result(self, task: Task[T]) -> T:
        try:
            return task.result()
        except BrokenExecutor as error:
            if self.make is None:
                self._replace("a worker died", error)
            raise WorkerDiedError("its worker died") from error
        except CancelledError as error:
            raise WorkerDiedError("its worker was stopped") from error
        except Exception:
            raise
        except BaseException as error:
            if task.exception() is not error:
                raise
            if isinstance(error, KeyboardInterrupt):  # a terminal sends Ctrl-C to all processes
                raise WorkerDiedError("its worker was interrupted") from error
            raise RuntimeError(leaving(error)) from error

    def stop(self, tasks: Sequence[Task[T]]) -> list[Task[T]]:
        self._replace("an evaluation hangs", None)
        return list(tasks)

    def close(self) -> None:
        if self.make is None:
            return
        if isinstance(self.executor, ProcessPoolExecutor) and self.executor._pending_work_items:
            _kill(self.executor)  # interrupted: nobody waits for what is still being evaluated
        else:
            self.executor.shutdown(cancel_futures=True)

    def _replace(self, why: str, cause: BaseException | None) -> None:
        broken = self.executor
        if self.make is None or not isinstance(broken, ProcessPoolExecutor):
            raise ClusterError(
                f"executor: {why}, and this executor cannot be replaced. Give a function that makes a pool of "
                "processes, executor=lambda: ProcessPoolExecutor(4, mp_context=get_context('spawn')), or a Dask cluster"
            ) from cause
        _kill(broken)
        self.executor = self._begun(self.make())

    def _begun(self, executor: Executor) -> Executor:
        """One process is there before the first evaluation, so that its start does not count as a hanging one."""
        if isinstance(executor, ProcessPoolExecutor):
            try:
                executor.submit(begin).result()
            except BrokenExecutor as error:
                raise ClusterError(
                    "executor: its processes die as they begin. A script that starts processes must do so "
                    'under `if __name__ == "__main__":`, because every process imports it'
                ) from error
        return executor


def _kill(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):  # kill_workers() from Python 3.14 on
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def _check_processes(pool: ProcessPoolExecutor, evaluator: Evaluator) -> None:
    """They must not be forked from one that runs JAX, and the evaluator must be able to travel."""
    if pool._mp_context.get_start_method() == "fork":  # type: ignore[union-attr]
        raise ValueError(
            "executor: this pool forks, and a fork of a process that runs JAX can hang; "
            "give ProcessPoolExecutor mp_context=multiprocessing.get_context('spawn')"
        )
    try:
        ForkingPickler.dumps(evaluator)
    except Exception as error:
        raise TypeError(
            f"evaluator: it cannot be sent to another process ({error}); define it at the top of a module"
        ) from error
