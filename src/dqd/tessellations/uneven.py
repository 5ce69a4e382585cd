"""A grid whose cells are as wide as one likes: edges for every measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dqd.tessellations.lattice import lattice, numbered
from dqd.tessellations.tessellation import A, Raster, floating

PIXELS = 400, 1000  # along an axis of a figure, at least and at most; if there is room, four per cell
_COUNTS, _EDGES = "uneven_counts", "uneven_edges"


@dataclass(frozen=True, eq=False, repr=False)
class UnevenGrid:
    """Cells between edges: along measure j, cell i reaches from edges[j][i] up to, but not including, edges[j][i + 1].

    Choose it where a measure has bins of its own, or is dense in one part of its range and thin in another. Cells are
    numbered in C order, measure 0 slowest. A measure outside belongs to the border cell on its side.

    Args:
        edges: for every measure its edges in ascending order, one more than cells. Equal ones leave a cell empty.

    >>> ages = UnevenGrid([[0, 13, 18, 65, 120]])
    >>> ages.index_of(np.array([[12.9], [13.0], [40.0], [300.0]])).tolist()
    [0, 1, 2, 3]
    """

    edges: tuple[np.ndarray, ...]
    kind: ClassVar[str] = "uneven"

    def __post_init__(self) -> None:
        edges = tuple(np.array(row, np.float64) for row in self.edges)
        for j, row in enumerate(edges):
            if row.ndim != 1 or len(row) < 2 or not np.isfinite(row).all() or np.any(np.diff(row) < 0):
                raise ValueError(f"UnevenGrid: measure {j}: expected two or more finite edges, ascending, got {row}")
        if not edges or math.prod(len(row) - 1 for row in edges) >= 2**31:
            raise ValueError("UnevenGrid: expected edges for one measure or more, and fewer than 2**31 cells")
        object.__setattr__(self, "edges", edges)

    @staticmethod
    def between(edges: Sequence[Any]) -> UnevenGrid:
        """Cells between edges that JAX may be tracing: nothing is checked."""
        grid = object.__new__(UnevenGrid)
        object.__setattr__(grid, "edges", tuple(edges))
        return grid

    @classmethod
    def fitted(cls, points: Any, shape: Sequence[int]) -> UnevenGrid:
        """Edges at the quantiles of points (m, k), such as the measures of a data set: every slice has as many.

        >>> UnevenGrid.fitted([[1.0], [2.0], [4.0], [9.0]], shape=[2]).edges[0].tolist()
        [1.0, 4.0, 9.0]
        """
        rows = np.asarray(points, np.float64)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all() or len(shape) != rows.shape[1]:
            raise ValueError(
                f"UnevenGrid: expected finite points (m, k) and a number of cells for each of k measures, got shape "
                f"{rows.shape} and {tuple(shape)}"
            )
        return cls(tuple(quantiles(np, column, len(rows), int(s)) for column, s in zip(rows.T, shape, strict=True)))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(row.shape[-1] - 1 for row in self.edges)

    @property
    def lower(self) -> tuple[Any, ...]:
        """The lowest edge of every measure."""
        return tuple(row[0] for row in self.edges)

    @property
    def upper(self) -> tuple[Any, ...]:
        """The highest edge of every measure."""
        return tuple(row[-1] for row in self.edges)

    @property
    def num_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def num_measures(self) -> int:
        return len(self.edges)

    def index_of(self, measures: A) -> A:
        """Cell of each row of measures (..., k) -> (...); C order, measure 0 slowest."""
        return numbered(self._position(measures), self.shape)

    def _position(self, measures: Any) -> Any:
        """How many inner edges lie at or below each measure, (..., k)."""
        xp, rows = floating(measures)
        inner = (xp.asarray(row, rows.dtype)[1:-1] for row in self.edges)
        found = [xp.searchsorted(row, rows[..., j], side="right") for j, row in enumerate(inner)]
        return xp.stack(found, axis=-1).astype(xp.int32)

    def outside(self, measures: A) -> A:
        """Which rows of measures (..., k) lie outside the edges and are moved to a border cell."""
        xp, rows = floating(measures)
        low, high = (xp.stack([xp.asarray(row, rows.dtype)[end] for row in self.edges]) for end in (0, -1))
        return xp.any((rows < low) | (rows > high), axis=-1)

    def near(self, measures: A, count: int) -> tuple[A, A]:
        """The cells around each row of measures (..., k), and a point in each: its own, those beside it, and so on.

        (..., count) and (..., count, k), counted in cells from its own; -1 beyond the border. The point is the middle,
        but in a cell that is wider than the row's own no deeper than the middle of that: from a narrow cell all of its
        neighbours are within reach, however wide they are.
        """
        xp, rows = floating(measures)
        position = self._position(rows)[..., None, :] + xp.asarray(lattice(self.shape, count), xp.int32)
        inside = xp.all((position >= 0) & (position < xp.asarray(self.shape, xp.int32)), axis=-1)
        middles, own = self._middles(xp, rows.dtype, position), self._extents(xp, rows.dtype, position[..., :1, :])
        spare = xp.maximum(self._extents(xp, rows.dtype, position) - own, 0) / 2
        nearer = middles - spare * xp.sign(position - position[..., :1, :])
        return xp.where(inside, numbered(position, self.shape), -1), nearer

    def widths(self, measures: A) -> A:
        """How far the cell of each row of measures (..., k) extends along each of them."""
        xp, rows = floating(measures)
        return self._extents(xp, rows.dtype, self._position(rows))

    def middles(self, cells: A) -> A:
        """The middle of each of some cells (...) -> (..., k), for NumPy and for JAX."""
        xp = cells.__array_namespace__()  # type: ignore[attr-defined]
        position = xp.stack(xp.unravel_index(cells, self.shape), axis=-1)
        return self._middles(xp, xp.asarray(self.edges[0]).dtype, position)

    def _middles(self, xp: Any, dtype: Any, position: Any) -> Any:
        """Of cells by their positions (..., k), clipped to those that there are."""
        columns = []
        for j, row in enumerate(self.edges):
            edges = xp.asarray(row, dtype)
            columns.append(((edges[1:] + edges[:-1]) / 2)[xp.clip(position[..., j], 0, self.shape[j] - 1)])
        return xp.stack(columns, axis=-1)

    def _extents(self, xp: Any, dtype: Any, position: Any) -> Any:
        """How far cells extend by their positions (..., k), clipped to those that there are."""
        columns = []
        for j, row in enumerate(self.edges):
            columns.append(xp.diff(xp.asarray(row, dtype))[xp.clip(position[..., j], 0, self.shape[j] - 1)])
        return xp.stack(columns, axis=-1)

    def centers(self) -> np.ndarray:
        """Middle of every cell, (num_cells, k), in index order."""
        return self._middles(np, np.float64, np.stack(np.unravel_index(np.arange(self.num_cells), self.shape), axis=-1))

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        """Rows whose measures do not lie in their cell: edges are compared exactly, so there is no rounding."""
        return self.index_of(measures) != cell

    def check_precision(self, dtype: Any) -> None:
        """Raise ValueError if edges that differ are the same in numbers of that type."""
        for j, row in enumerate(np.asarray(row, np.float64) for row in self.edges):
            with np.errstate(over="ignore"):
                rounded = row.astype(dtype)
            if not np.isfinite(rounded).all() or np.any((np.diff(row) > 0) & (np.diff(rounded) <= 0)):
                raise ValueError(
                    f"UnevenGrid: the edges of measure {j} cannot be told apart by {np.dtype(dtype)}; shift or scale "
                    "the measure, or search in float64 (jax_enable_x64)"
                )

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            _COUNTS: np.asarray(self.shape, np.int64),
            _EDGES: np.concatenate([np.asarray(row, np.float64) for row in self.edges]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> UnevenGrid:
        counts, edges = (np.asarray(arrays[name], np.float64).reshape(-1) for name in (_COUNTS, _EDGES))
        if not counts.size or np.any((counts < 1) | (counts != np.floor(counts)) | (counts >= 2**31)):
            raise ValueError(f"{_COUNTS}: expected numbers of cells, got {counts}")
        ends = np.cumsum(counts.astype(np.int64) + 1)
        if ends[-1] != len(edges):
            raise ValueError(f"{_EDGES}: expected {ends[-1]:,} edges for cells {counts}, got {len(edges):,}")
        return cls(tuple(np.split(edges, ends[:-1])))

    def raster(self) -> Raster:
        if self.num_measures > 2:
            raise ValueError(f"heatmap: expected an archive with 1 or 2 measures, got {self.num_measures}")
        lower, upper = ([float(row[end]) for row in self.edges] for end in (0, -1))
        upper = [high if high > low else low + 1.0 for low, high in zip(lower, upper, strict=True)]
        axes = []
        for low, high, count in zip(lower, upper, self.shape, strict=True):
            side = int(np.clip(4 * count, *PIXELS))
            axes.append(low + (np.arange(side) + 0.5) * (high - low) / side)
        pixels = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes[0]), self.num_measures)
        vertical = (lower[1], upper[1]) if self.num_measures == 2 else (0.0, 1.0)
        return Raster(self.index_of(pixels), (lower[0], upper[0], *vertical))

    def __repr__(self) -> str:
        return f"UnevenGrid({' x '.join(map(str, self.shape))} cells)"


def quantiles(xp: Any, column: Any, count: Any, cells: int) -> Any:
    """Edges (cells + 1,) that cut the first `count` of a column's sorted numbers into slices of as many each."""
    ascending = xp.sort(column)
    cuts = xp.arange(cells) * count // cells
    return ascending[xp.concatenate([cuts, xp.reshape(xp.asarray(count - 1, cuts.dtype), (1,))])]
