"""Rows of an archive, taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Elites:
    """Rows of an archive as NumPy arrays."""

    def __init__(
        self,
        cell: np.ndarray,
        occupied: np.ndarray,
        solutions: Any,
        objective: np.ndarray,
        measures: np.ndarray,
        found: Any,
        fields: Mapping[str, np.ndarray],
    ) -> None:
        self.cell, self.occupied = cell, occupied  # (b,), (b,)
        self.solutions = solutions  # (b, n); None if they were not saved
        self.objective = objective  # (b,) -inf where the cell is empty
        self.measures = measures  # (b, k)
        self.found = found  # (b,) iteration; None if that is not known
        self.fields = fields  # (b, ...) numbers of the user's own, by name

    def __len__(self) -> int:
        return len(self.cell)

    def __repr__(self) -> str:
        best = float(np.max(self.objective, initial=-np.inf))
        return f"Elites(rows={len(self):,}, occupied={int(np.sum(self.occupied)):,}, best={best:.4g})"

    def __iter__(self) -> Iterator[tuple[int, np.ndarray, float, np.ndarray]]:
        """Cell, solution, objective and measures of one elite after the other."""
        for cell, solution, objective, measures in zip(
            self.cell, self.solutions, self.objective, self.measures, strict=True
        ):
            yield int(cell), solution, float(objective), measures
