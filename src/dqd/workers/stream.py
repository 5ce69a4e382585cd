"""Solutions evaluated one by one, as workers become free. What a dying worker was busy with is given out again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.inputs.fields import nested
from dqd.types import Evaluation
from dqd.workers.batches import Batch, Evaluations, Outputs
from dqd.workers.engine import Task, WorkerDiedError

SINGLE = slice(0, 1)
TORN = (WorkerDiedError, TimeoutError)  # what a neighbour may be to blame for
AHEAD = 2  # solutions for every worker: one to evaluate, and one that it finds when that has ended


@dataclass(frozen=True)
class Given:
    """A solution that was given out: its id, and a batch of this one."""

    id: int
    batch: Batch
    torn: Exception | None = None  # why it was given out before in vain: its worker died, or was stopped


class Stream:
    """Evaluations that end when they like. One that is torn along is given out again; the second time, all alone."""

    def __init__(self, evaluations: Evaluations) -> None:
        self.evaluations = evaluations
        self._tasks: dict[Task[Outputs], Given] = {}
        self._ended: deque[tuple[int, Evaluation]] = deque()

    def room(self, most: int) -> int:
        """How many more solutions keep all workers busy, `most` if nobody knows how many there are."""
        slots = self.evaluations.engine.slots
        return most if slots is None else max(0, min(most, AHEAD * slots - len(self._tasks)))

    def give(self, id: int, solution: np.ndarray, iteration: int, jacobian: bool) -> None:
        phase = "points" if jacobian else "solutions"
        self._submit(Given(id, Batch(solution[None], iteration, phase, jacobian)))

    def next(self) -> tuple[int, Evaluation]:
        """The id of one that has ended, and what was found: NaN if it was skipped. Waits until there is one."""
        while not self._ended:
            self._wait()
        return self._ended.popleft()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _submit(self, given: Given) -> None:
        self._tasks[self.evaluations.submit(given.batch, SINGLE)] = given

    def _wait(self) -> None:
        engine, timeout = self.evaluations.engine, self.evaluations.workers.timeout
        outcomes: list[tuple[Given, Outputs | Exception]] = []
        for task in engine.wait(list(self._tasks), timeout):
            given = self._tasks.pop(task)
            outcomes.append((given, self.evaluations.outcome(task, given.batch, SINGLE)))
        if not outcomes:
            hanging = TimeoutError(f"not finished after {timeout:g} s")
            outcomes = [(self._tasks.pop(task), hanging) for task in engine.stop(list(self._tasks))]
        again = []
        for given, outcome in outcomes:
            if isinstance(outcome, TORN) and given.torn is None:
                again.append(Given(given.id, given.batch, outcome))
            else:
                self._ended.append((given.id, self._evaluation(given, outcome)))
        for given in again:  # now, so that those of the second time were alone
            self._submit(given)

    def _evaluation(self, given: Given, outcome: Outputs | Exception) -> Evaluation:
        batch = given.batch
        found = self.evaluations.settled(batch, SINGLE, outcome)
        if given.torn is not None and not isinstance(outcome, Exception):
            self.evaluations.failures.overcome(batch.iteration, batch.phase, SINGLE, given.torn)
        outputs: Any = found[0][1] if found else self.evaluations.nothing(batch)
        return Evaluation(**nested(outputs)).astype(batch.solutions.dtype)
