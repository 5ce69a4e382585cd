"""Evaluations in this process: whatever is submitted is done at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from dqd.workers.engine import Task

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Done(Generic[T]):
    """A call that has ended, only itself. A future would do, but takes as long to make as a small evaluation."""

    returned: T | None
    raised: Exception | None = None

    def result(self) -> T:
        if self.raised is not None:
            raise self.raised
        return cast("T", self.returned)

    def exception(self) -> Exception | None:
        return self.raised

    def cancel(self) -> bool:
        return False


class Here:
    """This process as an engine. Nothing dies in it, and nothing can be stopped."""

    deaths = slots = 1

    def submit(self, function: Callable[..., T], *arguments: object) -> Task[T]:
        try:
            return Done(function(*arguments))
        except Exception as error:  # not Ctrl-C, which nobody is to wait for
            return Done(None, error)

    def wait(self, tasks: Sequence[Task[T]], seconds: float | None) -> list[Task[T]]:
        return list(tasks)

    def result(self, task: Task[T]) -> T:
        return task.result()

    def stop(self, tasks: Sequence[Task[T]]) -> list[Task[T]]:
        return []

    def close(self) -> None:
        pass
