"""A grid some of whose measures are categories: a cell for each, and no order among them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import A, Raster

_NAMES = ("categorical_lower", "categorical_upper", "categorical_shape", "categorical_names")


@dataclass(frozen=True, repr=False)
class CategoricalGrid:
    """Cells along categories, or along categories and numbers.

    As a measure, a category is its number: 0 for the first, 1 for the second, and so on. `encode` and `decode`
    translate for programs that know names. Nothing can be differentiated by a category: its gradient is zero.

    Args:
        axes: for every measure the names of its categories, or (lower, upper, cells) for one that is a number.

    >>> cells = CategoricalGrid([["wood", "steel", "stone"], (0.0, 10.0, 5)])
    >>> cells.num_cells
    15
    >>> measures = cells.encode([["steel", 3.5], ["wood", 9.0]])
    >>> measures.tolist(), cells.index_of(measures).tolist()
    ([[1.0, 3.5], [0.0, 9.0]], [6, 4])
    """

    axes: tuple[tuple[Any, ...], ...] = field(metadata={"static": True})
    grid: Grid = field(init=False, compare=False)  # follows from the axes
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        axes = tuple(_axis(j, axis) for j, axis in enumerate(self.axes))
        ends = [(-0.5, len(axis) - 0.5, len(axis)) if _named(axis) else axis for axis in axes]
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "grid", Grid(*(tuple(column) for column in zip(*ends, strict=True))))

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The categories of every measure; none for a measure that is a number."""
        return tuple(axis if _named(axis) else () for axis in self.axes)

    def encode(self, rows: Sequence[Sequence[Any]]) -> np.ndarray:
        """Measures (b, k) of rows in which categories are named."""
        return np.array([self._numbers(row) for row in rows], np.float64).reshape(-1, self.num_measures)

    def _numbers(self, row: Sequence[Any]) -> list[float]:
        if isinstance(row, str) or len(row) != self.num_measures:
            raise ValueError(f"measures: expected {self.num_measures} in a row, got {row!r}")
        return [_number(j, names, value) for j, (names, value) in enumerate(zip(self.names, row, strict=True))]

    def decode(self, measures: Any) -> list[tuple[Any, ...]]:
        """Rows in which categories are named, of measures (b, k)."""
        rows: Any = np.asarray(measures, np.float64).reshape(-1, self.num_measures)
        position = np.stack(np.unravel_index(self.index_of(rows), self.grid.shape), axis=-1)
        return [
            tuple(names[at] if names else value for names, at, value in zip(self.names, *row, strict=True))
            for row in zip(position.tolist(), rows.tolist(), strict=True)
        ]

    @property
    def num_cells(self) -> int:
        return self.grid.num_cells

    @property
    def num_measures(self) -> int:
        return self.grid.num_measures

    def index_of(self, measures: A) -> A:
        return self.grid.index_of(measures)

    def outside(self, measures: A) -> A:
        return self.grid.outside(measures)

    def near(self, measures: A, count: int) -> tuple[A, A]:
        return self.grid.near(measures, count)

    def widths(self, measures: A) -> A:
        return self.grid.widths(measures)

    def middles(self, cells: A) -> A:
        return self.grid.middles(cells)

    def centers(self) -> np.ndarray:
        return self.grid.centers()

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        return self.grid.misplaced(cell, measures)

    def check_precision(self, dtype: Any) -> None:
        self.grid.check_precision(dtype)

    def arrays(self) -> dict[str, np.ndarray]:
        words = np.frombuffer(json.dumps(self.names).encode(), np.uint8).astype(np.int32)
        return dict(zip(_NAMES, (*self.grid.arrays().values(), words), strict=True))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> CategoricalGrid:
        *numbers, words = (np.asarray(arrays[name]).reshape(-1) for name in _NAMES)
        try:
            names = json.loads(bytes(words.astype(np.uint8)))
            columns = zip(names, *(column.tolist() for column in numbers), strict=True)
            axes = tuple(tuple(own) or (low, high, int(count)) for own, low, high, count in columns)
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"{_NAMES[-1]}: expected the names of categories: {error}") from None
        return cls(axes)

    def raster(self) -> Raster:
        return self.grid.raster()

    def __repr__(self) -> str:
        sizes = (f"{len(axis)} categories" if _named(axis) else f"{axis[2]} cells" for axis in self.axes)
        return f"CategoricalGrid({' x '.join(sizes)})"


def _named(axis: tuple[Any, ...]) -> bool:
    return isinstance(axis[0], str)


def _axis(j: int, axis: Any) -> tuple[Any, ...]:
    values = () if isinstance(axis, str) else tuple(axis)
    if values and all(isinstance(name, str) for name in values):
        if len(set(values)) < len(values):
            raise ValueError(f"CategoricalGrid: measure {j}: expected different categories, got {values}")
        return values
    if len(values) == 3 and not any(isinstance(value, str) for value in values):
        return float(values[0]), float(values[1]), int(values[2])
    raise ValueError(
        f"CategoricalGrid: measure {j}: expected names of categories, such as ['wood', 'steel'], or (lower, upper, "
        f"cells), got {axis!r}"
    )


def _number(j: int, names: tuple[str, ...], value: Any) -> float:
    if not names:
        return float(value)
    if value not in names:
        raise ValueError(f"measure {j}: expected one of {', '.join(names)}, got {value!r}")
    return float(names.index(value))


def grid_of(tessellation: object) -> Grid | None:
    """The grid that cells lie in, if they do: theirs, or themselves."""
    if isinstance(tessellation, CategoricalGrid):
        return tessellation.grid
    return tessellation if isinstance(tessellation, Grid) else None


def names_of(tessellation: object, count: int) -> tuple[tuple[str, ...], ...]:
    """The categories of every measure; none where it is a number."""
    return tessellation.names if isinstance(tessellation, CategoricalGrid) else ((),) * count
