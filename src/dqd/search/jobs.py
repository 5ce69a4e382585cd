"""Batches handed out solution by solution, and told so, in any order: a batch is closed when all of it was told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dqd.inputs.arrays import EXTRAS
from dqd.inputs.fields import flat, nested
from dqd.types import Evaluation

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Asked:
    """Solutions (m, n) to be evaluated, all of them with jacobians or all without, and the ids to tell them by."""

    ids: np.ndarray  # (m,)
    solutions: Any
    jacobian: bool

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Batch:
    """What belongs together: all of it is told before `close` is called with the evaluation of all."""

    solutions: np.ndarray
    jacobian: bool
    close: Callable[[Evaluation], None]
    handed: int = 0  # rows handed out, the first ones
    told: dict[int, Rows] = field(default_factory=dict)  # by row, each without an axis for the batch

    def whole(self) -> Evaluation:
        """What was told, in the order of the rows. Where some left out what others told, it is as usual."""
        names = dict.fromkeys(name for row in self.told.values() for name in row)
        rows = [self.told[number] for number in range(len(self.solutions))]

        def column(name: str) -> np.ndarray:
            return np.stack([row[name] if name in row else EXTRAS[name][1] for row in rows])

        return Evaluation(**nested({name: column(name) for name in names}))


class Jobs:
    """Every solution is handed out once, under an id of its own, and counts once."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()  # of which not all is handed out
        self._out: dict[int, tuple[Batch, int]] = {}  # handed out and not told: batch and row by id
        self._ids = 0  # ids given so far

    def add(self, solutions: Any, jacobian: bool, close: Callable[[Evaluation], None]) -> None:
        self._batches.append(Batch(np.asarray(solutions), jacobian, close))

    @property
    def ready(self) -> int:
        """Solutions that are not handed out."""
        return sum(len(batch.solutions) - batch.handed for batch in self._batches)

    @property
    def out(self) -> list[int]:
        """Ids that were handed out and not told."""
        return list(self._out)

    def ask(self, count: int) -> Asked | None:
        """The next solutions, `count` at most, all of one kind; None if there are none."""
        rows: list[tuple[Batch, int]] = []
        jacobian = self._batches[0].jacobian if self._batches else False
        while self._batches and len(rows) < count and self._batches[0].jacobian == jacobian:
            batch = self._batches[0]
            rows.append((batch, batch.handed))
            batch.handed += 1
            if batch.handed == len(batch.solutions):
                self._batches.popleft()
        if not rows:
            return None
        ids = list(range(self._ids, self._ids + len(rows)))
        self._ids += len(rows)
        self._out.update(zip(ids, rows, strict=True))
        return self.again(ids)

    def again(self, ids: Sequence[int]) -> Asked:
        """What was handed out under these ids, which are of one kind."""
        rows = [self._out[number] for number in ids]
        solutions = np.stack([batch.solutions[row] for batch, row in rows])
        return Asked(np.asarray(ids), solutions, rows[0][0].jacobian)

    def check(self, call: str, ids: Sequence[int]) -> bool:
        """Whether jacobians were asked for with these ids. Raise ValueError unless they can be told now, together."""
        for place, number in enumerate(ids):
            if not 0 <= number < self._ids:
                raise ValueError(f"{call}: id {number} was never handed out; tell the ids that ask() returned")
            if number not in self._out or number in ids[:place]:
                raise ValueError(f"{call}: id {number} was told already; every solution is told once")
        kinds = {self._out[number][0].jacobian for number in ids}
        if len(kinds) > 1:
            raise ValueError(f"{call}: of these ids some ask for jacobians and some do not; tell them apart")
        return kinds == {True}

    def tell(self, ids: Sequence[int], evaluation: Evaluation) -> None:
        """What was found, a row for each id. Batches that are complete are closed."""
        parts = {name: np.asarray(part) for name, part in flat(vars(evaluation)).items()}
        for place, number in enumerate(ids):
            batch, row = self._out.pop(number)
            batch.told[row] = {name: part[place] for name, part in parts.items()}
            if len(batch.told) == len(batch.solutions):
                batch.close(batch.whole())
