"""An archive read back: NumPy arrays and the figures that follow from them. Never imports JAX.

archive = dqd.load("runs/x")
archive.qd_score, archive.best
archive.retrieve([0.5, -1.0])
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.inputs.fields import FIELD
from dqd.saved import words
from dqd.saved.archived import Archived
from dqd.saved.elites import Elites
from dqd.tessellations.tessellation import Tessellation

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class SavedArchive(Archived):
    """The elites of a run, in the order of their cells, and the cells they lie in, as NumPy arrays.

    `dqd.load` reads it; `result.to_numpy()` makes it. It answers like a result: `qd_score`, `coverage`, `best`, `mean`,
    `retrieve`, `best_solution`, `plot`, `show`, `to_pandas`, `save`. JAX is not needed. Checked when it is made.

    >>> grid = dqd.Grid(lower=[0], upper=[1], shape=[4])
    >>> rows = {"objective": np.array([3.0, 5.0]), "measures": np.array([[0.1], [0.6]]), "found": None}
    >>> saved = dqd.SavedArchive(cell=np.array([0, 2]), solutions=np.eye(2), tessellation=grid, **rows)
    >>> saved.qd_score, saved.coverage, saved.retrieve([0.7]).objective.tolist()
    (2.0, 50.0, [5.0])
    """

    cell: np.ndarray  # (elites,)
    objective: np.ndarray  # (elites,)
    measures: np.ndarray  # (elites, k)
    solutions: np.ndarray | None  # (elites, n), or None if they were not saved
    found: np.ndarray | None  # (elites,) iteration, or None if that is not known
    tessellation: Tessellation
    qd_score_offset: float = 0.0
    config: Mapping[str, Any] = field(default_factory=dict)  # of the run, if it was read from one
    metrics: Sequence[Mapping[str, Any]] = field(default_factory=list)
    timings: Sequence[Mapping[str, Any]] = field(default_factory=list)  # seconds and evaluations at some iterations
    fields: Mapping[str, np.ndarray] = field(default_factory=dict)  # (elites, ...) numbers of the user's own, by name

    def __post_init__(self) -> None:
        if not math.isfinite(self.qd_score_offset):
            raise ValueError(f"qd_score_offset: expected a finite number, got {self.qd_score_offset}")
        _check_arrays(self)

    @property
    def num_cells(self) -> int:
        return self.tessellation.num_cells

    @property
    def qd_score(self) -> float:
        """Sum of (objective - offset) over the elites, divided by the number of all cells."""
        return (math.fsum(self.objective.tolist()) - self.qd_score_offset * len(self)) / self.num_cells

    @property
    def coverage(self) -> float:
        """Occupied cells in percent."""
        return 100.0 * len(self) / self.num_cells

    @property
    def best(self) -> float:
        """Objective of the best elite; -inf if there is none."""
        return float(np.max(self.objective, initial=-np.inf))

    @property
    def mean(self) -> float:
        """Mean objective of the elites; NaN if there is none."""
        return math.fsum(self.objective.tolist()) / len(self) if len(self) else math.nan

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def labels(self) -> tuple[str, ...]:
        """What the measures are called: as the run says, or by their numbers."""
        return tuple(words.measures(self.config, self.tessellation.num_measures))

    @property
    def elites(self) -> Elites:
        """All elites, as a live archive gives them."""
        return self._rows(np.arange(len(self)), self.cell)

    def retrieve(self, measures: Any) -> Elites:
        """The elite of the cell of each row of measures, (b, k) or (k,); `occupied` says where there is one."""
        cells = self.tessellation.index_of(checked_measures(measures, self.measures))
        row = np.minimum(np.searchsorted(self.cell, cells), max(len(self) - 1, 0))
        there = self.cell[row] == cells if len(self) else np.zeros(len(cells), bool)
        return self._rows(np.where(there, row, -1), cells)

    def best_solution(self) -> np.ndarray:
        """The solution of the elite with the best objective."""
        if self.solutions is None:
            raise KeyError("the archive was saved without its solutions")
        if not len(self):
            raise KeyError("the archive is empty")
        return self.solutions[np.argmax(self.objective)]

    def to_numpy(self, solutions: bool = True) -> SavedArchive:
        return self

    def _rows(self, row: np.ndarray, cell: np.ndarray) -> Elites:
        """Rows by number; those of empty cells, -1, hold nothing."""
        occupied = row >= 0

        def taken(values: np.ndarray | None, nothing: float) -> Any:
            if values is None:
                return None
            rows = np.full((len(row), *values.shape[1:]), nothing, values.dtype)
            rows[occupied] = values[row[occupied]]
            return rows

        columns = ((self.solutions, 0), (self.objective, -np.inf), (self.measures, 0), (self.found, -1))
        fields = {name: taken(values, np.nan) for name, values in self.fields.items()}
        solutions, objective, measures, found = (taken(values, nothing) for values, nothing in columns)
        return Elites(cell, occupied, solutions, objective, measures, found, fields)

    def arrays(self, solutions: bool = True) -> dict[str, np.ndarray]:
        """The arrays that a file holds, and that figures are drawn from."""
        kept = {"objective": self.objective, "measures": self.measures}
        kept |= {"solutions": self.solutions} if solutions and self.solutions is not None else {}
        kept |= {"found": self.found} if self.found is not None else {}
        kept |= {FIELD + name: values for name, values in self.fields.items()}
        return {
            "cell": self.cell,
            **kept,
            **self.tessellation.arrays(),
            "qd_score_offset": np.asarray([self.qd_score_offset], np.float64),
        }

    def columns(self, solutions: bool = True) -> dict[str, np.ndarray]:
        """One column per number of an elite: cell, objective, measure_0..., solution_0..., found, `field_...`."""
        columns = {"cell": self.cell, "objective": self.objective}
        columns |= {f"measure_{j}": column for j, column in enumerate(self.measures.T)}
        if solutions and self.solutions is not None:
            columns |= {f"solution_{i}": column for i, column in enumerate(self.solutions.T)}
        columns |= {} if self.found is None else {"found": self.found}
        for name, values in self.fields.items():
            many = {f"{FIELD}{name}_{i}": column for i, column in enumerate(values.T)} if values.ndim > 1 else {}
            columns |= many or {FIELD + name: values}
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """One row per elite: cell, objective, measure_0..., solution_0..., found."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'dqd[pandas]'") from None
        return pandas.DataFrame(self.columns())

    def save(self, path: str | os.PathLike[str], *, solutions: bool = True) -> Path:
        """Write a file that `dqd.load` reads: .parquet, .csv, .npz or .safetensors."""
        from dqd.saved.save import save

        return save(self, path, solutions=solutions)

    def __repr__(self) -> str:
        figures = f"qd_score={self.qd_score:.4g}, coverage={self.coverage:.2f} %, best={self.best:.4g}"
        return f"SavedArchive({figures}, elites={len(self):,}, cells={self.num_cells:,})"


def placed(
    objective: np.ndarray,
    measures: np.ndarray,
    solutions: np.ndarray | None,
    found: np.ndarray | None,
    cells: Tessellation,
    fields: Mapping[str, np.ndarray] = MappingProxyType({}),
    **about: Any,
) -> SavedArchive:
    """Every row in the cell of its measures, the best of each cell kept; of equal ones the first."""
    cell = cells.index_of(measures)
    best = best_of_each(cell, objective)
    kept, when = (None if each is None else each[best] for each in (solutions, found))
    about |= {"fields": {name: values[best] for name, values in fields.items()}}
    return SavedArchive(cell[best], objective[best], measures[best], kept, when, cells, **about)


def best_of_each(cell: np.ndarray, objective: np.ndarray) -> np.ndarray:
    """Which rows are the best of their cell, in the order of the cells; of equal ones the first."""
    order = np.lexsort((np.arange(len(cell)), -objective, cell))
    return order[np.unique(cell[order], return_index=True)[1]]


def checked_measures(measures: Any, like: Any) -> np.ndarray:
    """Rows (b, k) that cells are looked up with, in the type of an archive's own."""
    rows = np.atleast_2d(np.asarray(measures, like.dtype))
    if rows.ndim != 2 or rows.shape[1] != like.shape[1]:
        raise ValueError(f"measures: expected (batch, {like.shape[1]}), got {np.shape(measures)}")
    if not np.isfinite(rows).all():
        raise ValueError("measures: expected finite numbers, got NaN or infinity")
    return rows


def _check_arrays(archive: SavedArchive) -> None:
    """Shapes and types agree, numbers are finite, cells are in order, and elites lie in theirs."""
    cell, objective, measures = archive.cell, archive.objective, archive.measures
    elites = len(cell) if cell.ndim == 1 else -1
    _check("cell", cell, "i", (elites,))
    _check("objective", objective, "f", (elites,))
    _check("measures", measures, "f", (elites, archive.tessellation.num_measures))
    if archive.solutions is not None:
        _check("solutions", archive.solutions, "f", (elites, *archive.solutions.shape[1:2]))
    if archive.found is not None:
        _check("found", archive.found, "i", (elites,))
    for name, values in archive.fields.items():
        _check(FIELD + name, values, "f", (elites, *values.shape[1:2]))
    if elites == 0:
        return
    if not np.all(np.diff(cell.astype(np.int64)) > 0) or cell[0] < 0 or cell[-1] >= archive.num_cells:
        raise ValueError(f"cell: expected every cell once, in order, from 0 to {archive.num_cells - 1:,}")
    wrong = np.flatnonzero(archive.tessellation.misplaced(cell, measures))
    if len(wrong):
        raise ValueError(f"measures: row {wrong[0]} does not lie in its cell ({len(wrong):,} rows do not)")


def _check(name: str, array: np.ndarray, kind: str, shape: tuple[int, ...]) -> None:
    meaning = {"f": "float32 or float64", "i": "int32 or int64"}[kind]
    if array.dtype.kind != kind or array.dtype.itemsize not in (4, 8):
        raise ValueError(f"{name}: expected {meaning}, got {array.dtype}")
    if array.shape != shape or (name == "solutions" and array.ndim != 2):
        raise ValueError(f"{name}: expected shape {shape}, one row per elite, got {array.shape}")
    if kind == "f" and not name.startswith(FIELD) and not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
