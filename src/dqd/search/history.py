"""How the metrics of a search went, and how many evaluations that took."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dqd.inputs.names import METRICS

COLUMNS = ("evaluations", *METRICS)
Rows = Mapping[str, np.ndarray]  # by COLUMNS, (rows,) or (rows, seeds)

MOST_ROWS = 2**17
MANY_PARTS = 256


class History:
    """The metrics after every iteration, and all evaluations until then, for one seed or for several side by side.

    A run of days would fill the memory with them. So whenever there are more than MOST_ROWS, every second one is
    dropped: rows stand at the multiples of `stride`, a power of two that depends on the number of iterations alone.
    """

    def __init__(self) -> None:
        self.done = 0  # iterations so far
        self.stride = 1
        self._parts: list[Rows] = []
        self._small = 0  # how many of the last parts are single chunks
        self._last: Rows | None = None  # of the newest iteration, whether it stays or not

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> History:
        """From what `arrays` gave."""
        history, iteration = cls(), arrays["iteration"]
        if not len(iteration):
            return history
        history.done = int(iteration[-1])
        while history._full():
            history.stride *= 2
        if not np.array_equal(iteration, history._iterations()):
            raise ValueError("the checkpoint does not fit: its history has other rows; another version wrote it")
        every = {name: arrays[name] for name in COLUMNS}
        history._last = _rows(every, slice(-1, None))
        history._parts = [_rows(every, slice(history.done // history.stride))]
        return history

    def append(self, rows: Rows) -> None:
        """What the next iterations gave, one row each."""
        first = self.done + 1
        self.done += len(rows["qd_score"])
        # Copies: a view would keep a device buffer alive.
        self._last = _rows(rows, slice(-1, None))
        self._parts.append(_rows(rows, slice(-first % self.stride, None, self.stride)))
        self._small += 1
        if self._small == MANY_PARTS:  # many small arrays take more memory than the numbers in them
            self._parts[-MANY_PARTS:] = [_joined(self._parts[-MANY_PARTS:])]
            self._small = 0
        while self._full():
            self._parts, self._small = [_rows(_joined(self._parts), slice(1, None, 2))], 0
            self.stride *= 2

    def latest(self) -> dict[str, float]:
        """Newest metrics, averaged over seeds."""
        assert self._last is not None
        return {name: float(np.mean(self._last[name])) for name in METRICS}

    def ago(self, iterations: int) -> dict[str, float] | None:
        """The metrics so many iterations ago, or of the last row before; None where there was none."""
        behind = self.done // self.stride - (self.done - iterations) // self.stride  # rows since then
        if self.done - iterations < self.stride:
            return None
        for part in reversed(self._parts):
            if behind < len(part["qd_score"]):
                row = len(part["qd_score"]) - 1 - behind
                return {name: float(np.mean(part[name][row])) for name in METRICS}
            behind -= len(part["qd_score"])
        return None

    def arrays(self) -> dict[str, np.ndarray]:
        """`iteration` (rows,); `evaluations` and every metric (rows,) or (rows, seeds). The last row is the newest."""
        if not self.done:
            counts = {name: np.zeros(0, np.int64) for name in ("iteration", "evaluations")}
            return {**counts, **{name: np.zeros(0) for name in METRICS}}
        tail = [self._last] if self.done % self.stride and self._last is not None else []
        rows = _joined([*self._parts, *tail])
        return {"iteration": self._iterations(), **rows}

    def _full(self) -> bool:
        return self.done // self.stride > MOST_ROWS

    def _iterations(self) -> np.ndarray:
        regular = np.arange(self.stride, self.done + 1, self.stride, dtype=np.int64)
        return np.append(regular, self.done) if self.done % self.stride else regular


def _rows(rows: Rows, which: slice) -> Rows:
    return {name: np.array(np.asarray(values)[which]) for name, values in rows.items()}


def _joined(parts: list[Rows]) -> Rows:
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
