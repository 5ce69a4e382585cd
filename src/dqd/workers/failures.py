"""Evaluations that failed: which, and why. One JSON object per line in `failures.jsonl` of the run's folder.

A run of days may have thousands: warnings name the first, and count all of them when the run ends.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from dqd.console import saying
from dqd.storage.record import CONFIG, FAILURES
from dqd.storage.writer import explained


class EvaluationError(RuntimeError):
    """One solution could not be evaluated; `solution` holds it. `dqd.Workers(on_failure="skip")` goes on without it."""

    def __init__(self, words: str, solution: np.ndarray) -> None:
        super().__init__(words)
        self.solution = solution


def digest(solution: np.ndarray) -> str:
    """The same solution has the same digest in every run."""
    return hashlib.sha256(np.ascontiguousarray(solution).tobytes()).hexdigest()[:16]


class Notices:
    """Something that may happen again and again: a warning when it first does, and one that counts in the end."""

    def __init__(self, what: str) -> None:
        self.what, self.kinds = what, Counter[str]()

    def add(self, error: Exception, words: str) -> None:
        self.kinds[type(error).__name__] += 1
        if self.kinds.total() == 1:
            saying.warn(f"{self.what}: {words}; if there are more, they are counted at the end", stacklevel=2)

    def sum_up(self, hint: str = "") -> None:
        if self.kinds.total() > 1:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.most_common())
            saying.warn(f"{self.what} {self.kinds.total():,} times: {kinds}{hint}", stacklevel=2)


class Failures:
    """Every failure becomes a line of a file, as soon as the folder is the record of a run."""

    def __init__(self, out: str | os.PathLike[str] | None) -> None:
        self.folder = None if out is None else Path(out)
        self.unwritten: list[dict[str, Any]] = []
        self.skipped, self.repeated = Notices("evaluation skipped"), Notices("evaluation repeated with success")

    def add(self, iteration: int, phase: str, index: int, solution: np.ndarray, error: BaseException) -> str:
        """The failure in words."""
        reason = _reason(error)
        row = {"iteration": iteration, "phase": phase, "index": index, "digest": digest(solution), "error": reason}
        words = f"iteration {iteration:,}, {phase}, index {index} (digest {row['digest']}): {reason}"
        if self.folder is not None:
            self.unwritten.append(row)
            self.write()
        return words

    def overcome(self, iteration: int, phase: str, piece: slice, error: Exception) -> None:
        """A piece of a batch failed, and nothing of it when it was tried again."""
        rows = f"index {piece.start} to {piece.stop - 1}"
        self.repeated.add(error, f"iteration {iteration:,}, {phase}, {rows}: {_reason(error)}")

    def close(self) -> None:
        self.write()
        self.skipped.sum_up("" if self.folder is None else f"; {self.folder / FAILURES} has a line for each")
        self.repeated.sum_up()

    def write(self) -> None:
        """Append what is not written yet."""
        if self.folder is None or not self.unwritten or not (self.folder / CONFIG).exists():
            return
        path, lines = self.folder / FAILURES, "".join(json.dumps(row) + "\n" for row in self.unwritten)
        with explained(path, "report a failed evaluation", len(lines)), open(path, "ab", opener=_no_link) as file:
            file.write((_newline(path) + lines).encode())
        self.unwritten.clear()


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _reason(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return "; ".join([said, *getattr(error, "__notes__", ())])


def _newline(path: Path) -> str:
    """What ends a line that a kill or a full disk has torn, so that the next one is whole."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return "" if file.read() in (b"", b"\n") else "\n"
