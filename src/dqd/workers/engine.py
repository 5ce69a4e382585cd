"""What every place of evaluation is, be it this process, a pool or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
Returned = TypeVar("Returned", covariant=True)


class ClusterError(RuntimeError):
    """The workers as a whole are gone, or cannot do what was asked; no single evaluation is to blame."""


class WorkerDiedError(RuntimeError):
    """The process that evaluated died."""


class Task(Protocol[Returned]):
    """A call that somebody works on. The futures of the standard library are such, and those of Dask."""

    def result(self) -> Returned: ...

    def exception(self) -> BaseException | None: ...

    def cancel(self) -> object: ...


class Engine(Protocol):
    """Interface: tasks are submitted, waited for and read; those that hang are stopped.

    A task is blamed for the death of its worker if that happens `deaths` times in a row while nothing else is running.
    """

    deaths: int

    @property
    def slots(self) -> int | None:
        """How many tasks run at once, if that is known."""
        ...

    def submit(self, function: Callable[..., T], *arguments: object) -> Task[T]:
        """Let some worker call the function; the arguments may travel to another machine."""
        ...

    def wait(self, tasks: Sequence[Task[T]], seconds: float | None) -> list[Task[T]]:
        """Those that have ended, at least one; none if that takes longer than `seconds`."""
        ...

    def result(self, task: Task[T]) -> T:
        """What an ended task returned; raises what it raised, a WorkerDiedError or a ClusterError."""
        ...

    def stop(self, tasks: Sequence[Task[T]]) -> list[Task[T]]:
        """Take those that a worker is busy with away from it; they are returned. The others are still to come."""
        ...

    def close(self) -> None:
        """End what was begun here; what the user has made stays."""
        ...
