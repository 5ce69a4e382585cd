"""What every tessellation is: a rule that gives measures a cell, and the same rule for files and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

A = TypeVar("A")  # an array, NumPy's or JAX's


class Raster(NamedTuple):
    """Measure space as pixels, for figures: measure 0 to the right, measure 1 upward."""

    cells: np.ndarray  # (rows, columns) the cell that each pixel shows, row 0 at the bottom; -1: none
    extent: tuple[float, float, float, float]  # left, right, bottom, top


@runtime_checkable
class Tessellation(Protocol):
    """Interface: cells 0 .. num_cells - 1 that share measure space among them.

    It is a frozen dataclass. In a search JAX traces it: decorate your own with `dqd.types.pytree`, and mark what is
    part of the program with `dqd.types.static()`; with `dqd.tessellations.register` on top, files are read back as it.
    `index_of` and `outside` serve NumPy and JAX with one formula (`floating` says which it is), so that an archive that
    was read back has every elite in the cell in which it was found. docs/extending.md builds one.

    >>> isinstance(dqd.Grid(lower=[0], upper=[1], shape=[4]), dqd.Tessellation)
    True
    """

    kind: ClassVar[str]
    """One word; the names of its arrays in a file begin with it and an underscore."""

    @property
    def num_cells(self) -> int: ...

    @property
    def num_measures(self) -> int: ...

    def index_of(self, measures: A) -> A:
        """Cell of each row of measures (..., k) -> (...), int32; arrays come back as they went in, NumPy's or JAX's."""
        ...

    def outside(self, measures: A) -> A:
        """Which rows of measures (..., k) lie outside the cells and are moved to the nearest one."""
        ...

    def centers(self) -> np.ndarray:
        """The middle of every cell, (num_cells, k)."""
        ...

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        """Rows whose measures do not lie in their cell, up to rounding at its edges."""
        ...

    def check_precision(self, dtype: Any) -> None:
        """Raise ValueError if cells cannot be told apart by numbers of that type."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of it, named `kind_...`; its fields may be JAX's by then."""
        ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The tessellation of these arrays; whatever does not fit raises ValueError, as the file may be anybody's."""
        ...

    def raster(self) -> Raster:
        """How a figure draws it, for one measure (a single row) or two; ValueError for more."""
        ...


@runtime_checkable
class Neighbourhood(Tessellation, Protocol):
    """A tessellation that also knows what lies around a point. Algorithms that aim at cells need it."""

    def near(self, measures: A, count: int) -> tuple[A, A]:
        """Cells around each row of measures (..., k), (..., count) int32, and a point in each, (..., count, k).

        Its own cell comes first, then those beside it, 2k or so, then others, nearest first; -1 where there is none.
        `count` is at most what was asked for.
        """
        ...

    def widths(self, measures: A) -> A:
        """How far the cell of each row of measures (..., k) extends along each of them."""
        ...


def neighbourhood(tessellation: Tessellation) -> Neighbourhood:
    """The same; TypeError unless it knows its neighbourhood."""
    if not isinstance(tessellation, Neighbourhood):
        raise TypeError(
            f"tessellation: this algorithm aims at cells near a point; {type(tessellation).__name__} has no methods "
            "near and widths to find them. Add them, take a dqd.Grid, or another algorithm"
        )
    return tessellation


def floating(measures: Any) -> tuple[Any, Any]:
    """NumPy or JAX, whosever the measures are, and the measures in a floating type: one formula serves both."""
    xp = measures.__array_namespace__() if hasattr(measures, "__array_namespace__") else np
    measures = xp.asarray(measures)
    return xp, measures if measures.dtype.kind == "f" else measures.astype(xp.result_type(measures, float))
