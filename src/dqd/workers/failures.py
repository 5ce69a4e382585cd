"""Evaluations that failed: which, and why. One JSON object per line in `failures.jsonl` of the run's folder."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from dqd.storage.record import CONFIG, FAILURES
from dqd.storage.writer import explained


class EvaluationError(RuntimeError):
    """One solution could not be evaluated; `solution` holds it."""

    def __init__(self, words: str, solution: np.ndarray) -> None:
        super().__init__(words)
        self.solution = solution


def digest(solution: np.ndarray) -> str:
    """The same solution has the same digest in every run."""
    return hashlib.sha256(np.ascontiguousarray(solution).tobytes()).hexdigest()[:16]


class Failures:
    """Every failure becomes a line of a file, as soon as the folder is the record of a run."""

    def __init__(self, out: str | os.PathLike[str] | None) -> None:
        self.folder = None if out is None else Path(out)
        self.unwritten: list[dict[str, Any]] = []

    def add(self, iteration: int, phase: str, index: int, solution: np.ndarray, error: BaseException) -> str:
        """The failure in words."""
        reason = f"{type(error).__name__}: {error}".strip().removesuffix(":")
        row = {"iteration": iteration, "phase": phase, "index": index, "digest": digest(solution), "error": reason}
        words = f"iteration {iteration:,}, {phase}, index {index} (digest {row['digest']}): {reason}"
        if self.folder is not None:
            self.unwritten.append(row)
            self.write()
        return words

    def write(self) -> None:
        """Append what is not written yet."""
        if self.folder is None or not self.unwritten or not (self.folder / CONFIG).exists():
            return
        path, lines = self.folder / FAILURES, "".join(json.dumps(row) + "\n" for row in self.unwritten)
        with explained(path, "report a failed evaluation", len(lines)), path.open("ab") as file:
            file.write((_newline(path) + lines).encode())
        self.unwritten.clear()


def _newline(path: Path) -> str:
    """What ends a line that a kill or a full disk has torn, so that the next one is whole."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return "" if file.read() in (b"", b"\n") else "\n"
