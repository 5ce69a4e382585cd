"""Evaluations on a Dask cluster. Importing this module imports Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from dqd.console import saying
from dqd.workers.address import check_address
from dqd.workers.engine import ClusterError, Task, WorkerDiedError
from dqd.workers.worker import begin

try:
    import distributed
except ImportError as error:
    raise ImportError("a Dask cluster needs the package distributed: pip install 'dqd[cluster]'") from error

CONNECT_SECONDS = 30.0
LONELY_SECONDS = 60.0  # between two looks whether there are workers at all
T = TypeVar("T")


class Cluster:
    """A Dask cluster. It gives the tasks of a worker that dies to another one by itself.

    Tasks go through the client, not its `get_executor()`: that one looks at a future's status after it has fetched the
    result, and takes a result whose worker dies in between for an error.
    """

    slots = None  # workers come and go
    deaths = 1  # Dask itself tries again, three times unless configured otherwise

    def __init__(self, client: distributed.Client, owned: bool) -> None:
        self.client, self.owned = client, owned
        self._begin()

    @staticmethod
    def of(where: str | distributed.Client, insecure: bool) -> Cluster:
        """The cluster of an address, or of a client that is somebody else's to close."""
        if isinstance(where, str):
            return Cluster(connect(where, insecure), owned=True)
        check_address(where.scheduler.address, insecure)
        return Cluster(where, owned=False)

    def submit(self, function: Callable[..., T], *arguments: object) -> Task[T]:
        return self.client.submit(function, *arguments, pure=False)

    def wait(self, tasks: Sequence[Task[T]], seconds: float | None) -> list[Task[T]]:
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

    def result(self, task: Task[T]) -> T:
        try:
            return task.result()
        except distributed.KilledWorker as error:
            raise WorkerDiedError("its workers died") from error
        except Exception as error:
            if self.client.status != "running":
                raise self._lost(error) from error
            raise

    def stop(self, tasks: Sequence[Task[T]]) -> list[Task[T]]:
        processing = self.client.processing()
        ours = {cast("distributed.Future", task).key: task for task in tasks}
        workers = [worker for worker, keys in processing.items() if not ours.keys().isdisjoint(keys)]
        stuck = {key for worker in workers for key in processing[worker]}
        taken = [task for key, task in ours.items() if key in stuck]
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


def connect(address: str, insecure: bool = False) -> distributed.Client:
    """A client of the Dask scheduler at an address."""
    check_address(address, insecure)
    if address.startswith("tls://"):
        _check_certificate(address)
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address}; start one with `dask scheduler` ({error})"
        ) from error


def _check_certificate(address: str) -> None:
    """Looked for ahead: a client that finds none while it connects waits for ever when the program ends."""
    try:
        found = distributed.Security().get_connection_args("client").get("ssl_context") is not None
        reason = "" if found else "this process has no certificate"
    except OSError as error:
        reason = f"the certificate that this process names cannot be read ({error})"
    if reason:
        raise ConnectionError(
            f"executor: {address} is encrypted, and {reason}; set one in Dask's configuration "
            "(distributed.comm.tls), or give a Client with a Security"
        )
