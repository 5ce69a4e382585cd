"""Where evaluations run: in this process, in anybody's `concurrent.futures.Executor`, or on a Dask cluster.

All that the rest needs is to submit tasks, wait for some of them, read what became of each, and stop those that hang.
"""

from __future__ import annotations

import ipaddress
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol
from urllib.parse import urlsplit

from dqd.console import saying
from dqd.workers.worker import begin, leaving

CONNECT_SECONDS = 30.0
GLANCE = 1.0  # seconds after which a signal is noticed that came while Python began to wait
LONELY_SECONDS = 60.0  # between two looks whether there are workers at all


class ClusterError(RuntimeError):
    """The workers as a whole are gone, or cannot do what was asked; no single evaluation is to blame."""


class WorkerDiedError(RuntimeError):
    """The process that evaluated died."""


class Engine(Protocol):
    """Interface of whatever evaluates.

    A task is blamed for the death of its worker if that happens `deaths` times in a row while nothing else is running.
    """

    deaths: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any: ...

    def wait(self, tasks: Sequence[Any], seconds: float | None) -> list[Any]:
        """Those that have ended, at least one; none if that takes longer than `seconds`."""
        ...

    def result(self, task: Any) -> Any:
        """What an ended task returned; raises what it raised."""
        ...

    def stop(self, tasks: Sequence[Any]) -> list[Any]:
        """Take those that a worker is busy with away from it; they are returned. The others are still to come."""
        ...

    def close(self) -> None: ...


def engine_of(executor: Any, evaluator: Any, timeout: float | None, insecure: bool) -> Engine:
    """The engine behind whatever the user gave as `executor`."""
    if executor is None:
        if timeout is not None:
            raise ValueError("timeout: an evaluation in this process cannot be stopped; give an executor as well")
        return Pool(Here())
    if isinstance(executor, str):
        return Cluster(connect(executor, insecure), owned=True)
    if _is_client(executor):
        check_address(executor.scheduler.address, insecure)
        return Cluster(executor, owned=False)
    if isinstance(executor, Executor):
        return Pool(_checked(executor, evaluator))
    if callable(executor) and not isinstance(executor, type):
        return Pool(_checked(executor(), evaluator), make=executor)
    raise TypeError(
        "executor: expected a concurrent.futures.Executor, a function that makes one, a distributed.Client "
        f"or its address, got {executor!r}"
    )


# Executors ------------------------------------------------------------------------------------------------------------


class Here(Executor):
    """Evaluates at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool:
    """An executor of the standard interface. One that breaks, or hangs, is replaced if we know how to make another."""

    deaths = 3

    def __init__(self, executor: Executor, make: Callable[[], Executor] | None = None) -> None:
        self.executor, self.make = self._begun(executor), make

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        try:
            return self.executor.submit(function, *arguments)
        except BrokenExecutor as error:
            self._replace("a worker died", error)
            return self.executor.submit(function, *arguments)

    def wait(self, tasks: Sequence[Future[Any]], seconds: float | None) -> list[Future[Any]]:
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        ended: set[Future[Any]] = set()
        while not ended and (left := deadline - time.monotonic()) > 0:
            ended = wait(tasks, min(left, GLANCE), FIRST_COMPLETED).done
        return [task for task in tasks if task in ended]

    def result(self, task: Future[Any]) -> Any:
        try:
            return task.result()
        except BrokenExecutor as error:
            if self.make is None:
                self._replace("a worker died", error)
            raise WorkerDiedError("its worker died") from error
        except Exception:
            raise
        except BaseException as error:
            if task.exception() is not error:
                raise
            if isinstance(error, KeyboardInterrupt):  # a terminal sends Ctrl-C to all processes
                raise WorkerDiedError("its worker was interrupted") from error
            raise RuntimeError(leaving(error)) from error

    def stop(self, tasks: Sequence[Future[Any]]) -> list[Future[Any]]:
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


def _checked(executor: Any, evaluator: Any) -> Executor:
    """Processes must not be forked from one that runs JAX, and the evaluator must be able to travel."""
    if not isinstance(executor, Executor):
        raise TypeError(f"executor: the function must return a concurrent.futures.Executor, got {executor!r}")
    if not isinstance(executor, ProcessPoolExecutor):
        return executor
    if executor._mp_context.get_start_method() == "fork":  # type: ignore[union-attr]
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
    return executor


# Dask -----------------------------------------------------------------------------------------------------------------


class Cluster:
    """A Dask cluster. It gives the tasks of a worker that dies to another one by itself.

    Tasks go through the client, not its `get_executor()`: that one looks at a future's status after it has fetched the
    result, and takes a result whose worker dies in between for an error.
    """

    deaths = 1  # Dask itself tries again, three times unless configured otherwise

    def __init__(self, client: Any, owned: bool) -> None:
        self.client, self.owned = client, owned
        self._begin()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def wait(self, tasks: Sequence[Any], seconds: float | None) -> list[Any]:
        distributed = _distributed()
        while True:
            try:
                patience = LONELY_SECONDS if seconds is None else seconds
                with self.client.as_current():
                    ended = distributed.wait(tasks, timeout=patience, return_when="FIRST_COMPLETED").done
                return [task for task in tasks if task in ended]
            except TimeoutError:
                if not self.client.nthreads():
                    saying.warn("executor: the Dask cluster has no workers; waiting for some to join", stacklevel=2)
                if seconds is not None:
                    return []
            except Exception as error:
                raise self._lost(error) from error

    def result(self, task: Any) -> Any:
        try:
            return task.result()
        except _distributed().KilledWorker as error:
            raise WorkerDiedError("its workers died") from error
        except Exception as error:
            if self.client.status != "running":
                raise self._lost(error) from error
            raise

    def stop(self, tasks: Sequence[Any]) -> list[Any]:
        processing = self.client.processing()
        ours = {task.key for task in tasks}
        workers = [worker for worker, keys in processing.items() if ours.intersection(keys)]
        stuck = ours.intersection(key for worker in workers for key in processing[worker])
        taken = [task for task in tasks if task.key in stuck]
        self.client.cancel(taken, force=True)
        try:
            self.client.restart_workers(workers)
        except ValueError as error:
            raise ClusterError(
                f"executor: an evaluation hangs, and its worker cannot be restarted: {error}. "
                "Start workers with a nanny, which is the default of `dask worker`"
            ) from error
        self._begin()
        return taken

    def close(self) -> None:
        if self.owned:
            self.client.close()

    def _begin(self) -> None:
        """Every worker imports what it needs, so that this does not count as a hanging evaluation."""
        for worker, answer in self.client.run(begin, on_error="return").items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):  # not one that is just dying
                raise ClusterError(
                    f"executor: the worker {worker} cannot import dqd ({answer}); install it there, in the same version"
                )

    def _lost(self, error: Exception) -> ClusterError:
        return ClusterError(f"executor: the Dask cluster does not answer any more ({type(error).__name__}: {error})")


def connect(address: str, insecure: bool = False) -> Any:
    """A client of the Dask scheduler at an address."""
    check_address(address, insecure)
    if address.startswith("tls://"):
        _check_certificate(address)
    try:
        return _distributed().Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler` ({error})"
        ) from error


def _check_certificate(address: str) -> None:
    """Looked for ahead: a client that finds none while it connects waits for ever when the program ends."""
    try:
        found = _distributed().Security().get_connection_args("client").get("ssl_context") is not None
        reason = "" if found else "this process has no certificate"
    except OSError as error:
        reason = f"the certificate that this process names cannot be read ({error})"
    if reason:
        raise ConnectionError(
            f"executor: {address} is encrypted, and {reason}; set one in Dask's configuration "
            "(distributed.comm.tls), or give a Client with a Security"
        )


def check_address(address: str, insecure: bool, name: str = "executor") -> None:
    """Who can talk to a scheduler can run code on every machine of its cluster: across a network only encrypted."""
    scheme, _, rest = address.rpartition("://")
    if scheme not in ("", "tcp", "tls", "inproc"):
        raise ValueError(f"{name}: expected an address such as tls://host:8786, got {address!r}")
    host = urlsplit(f"//{rest}").hostname or ""
    if scheme in ("tls", "inproc") or insecure or _is_loopback(host):
        return
    raise ValueError(
        f"{name}: {address} is neither on this machine nor encrypted, so anybody on the way could run code on the "
        f"cluster; use tls://{rest}, or accept that with insecure=True (--insecure)"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_client(executor: Any) -> bool:
    distributed = sys.modules.get("distributed")  # whoever holds a client has imported it
    return distributed is not None and isinstance(executor, distributed.Client)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a Dask cluster needs the package distributed: pip install 'dqd[cluster]'") from error
    return distributed
