"""A uniform grid over measure space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dqd.tessellations.lattice import lattice, numbered
from dqd.tessellations.tessellation import A, Raster, floating

EPSILON = 1e-6  # moves a measure that lies on an edge into the upper cell, as the paper's archive does
MAX_MEASURES = 32
_NAMES = ("grid_lower", "grid_upper", "grid_shape")


@dataclass(frozen=True)
class Grid:
    """Cells of equal size between `lower` and `upper`, `shape[j]` of them along measure j.

    With e = 1e-6, at most a thousandth of a cell, the cell along measure j is the whole part of

        shape[j] (clip(m_j + e, lower[j], upper[j] - e) - lower[j]) / (upper[j] - lower[j])

    and cells are numbered in C order, measure 0 slowest. A measure outside the range belongs to the border cell on its
    side; nothing is refused. Finding the cell of a solution costs the same whatever their number.

    Args:
        lower, upper: both ends of every measure, in the units of the measures.
        shape: how many cells along every measure; fewer than 2**31 in all.

    >>> grid = Grid(lower=[-1, 0], upper=[1, 5], shape=[20, 50])
    >>> grid.num_cells
    1000
    >>> grid.index_of(np.array([[-1.0, 0.0], [0.5, 9.0]])).tolist()
    [0, 799]
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    shape: tuple[int, ...] = field(metadata={"static": True})
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", _numbers("lower", self.lower))
        object.__setattr__(self, "upper", _numbers("upper", self.upper))
        object.__setattr__(self, "shape", _counts(self.shape))
        sizes = {"lower": len(self.lower), "upper": len(self.upper), "shape": len(self.shape)}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"Grid: lower, upper and shape need one entry per measure, got lengths {sizes}")
        if not 1 <= len(self.shape) <= MAX_MEASURES:
            raise ValueError(f"Grid: expected 1 to {MAX_MEASURES} measures, got {len(self.shape)}")
        for j, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low < high:
                raise ValueError(f"Grid: lower must lie below upper; measure {j} has lower={low}, upper={high}")

    @property
    def num_measures(self) -> int:
        return len(self.shape)

    @property
    def num_cells(self) -> int:
        return math.prod(self.shape)

    @staticmethod
    def between(lower: Any, upper: Any, shape: tuple[int, ...]) -> Grid:
        """Cells between ends that JAX may be tracing: nothing is checked."""
        grid = object.__new__(Grid)
        for name, value in {"lower": lower, "upper": upper, "shape": shape}.items():
            object.__setattr__(grid, name, value)
        return grid

    def index_of(self, measures: A) -> A:
        """Cell of each row of measures (..., k) -> (...); C order, measure 0 slowest."""
        return numbered(self._position(measures), self.shape)

    def _position(self, measures: Any) -> Any:
        """The cell of each row of measures, counted along each of them: (..., k)."""
        xp, real, lower, upper = self._real(measures)
        counts = xp.asarray(self.shape, real.dtype)
        shift = _shift(lower, upper, counts, xp)
        # Clamp before the cast (1e12 does not fit an integer) and after it (in float32, high - 1e-6 is high).
        inside = xp.clip(real + shift, lower, upper - shift)
        # Times the reciprocal: XLA makes that of a division here, and the last bit decides at an edge.
        position = ((inside - lower) * (1 / (upper - lower)) * counts).astype(xp.int32)
        return xp.clip(position, 0, xp.asarray(self.shape, xp.int32) - 1)

    def outside(self, measures: A) -> A:
        """Which rows of measures (..., k) lie outside the range and are moved to a border cell."""
        xp, real, lower, upper = self._real(measures)
        return xp.any((real < lower) | (real > upper), axis=-1)

    def near(self, measures: A, count: int) -> tuple[A, A]:
        """The cells around each row of measures (..., k), and their middles: its own, those beside it, and so on.

        (..., count) and (..., count, k), nearest first, counted in cells from its own; -1 beyond the border. A small
        grid has fewer.

        >>> Grid(lower=[0, 0], upper=[4, 3], shape=[4, 3]).near(np.array([0.5, 1.5]), 5)[0].tolist()
        [1, -1, 0, 2, 4]
        """
        xp, real, lower, _ = self._real(measures)
        position = self._position(measures)[..., None, :] + xp.asarray(lattice(self.shape, count), xp.int32)
        inside = xp.all((position >= 0) & (position < xp.asarray(self.shape, xp.int32)), axis=-1)
        middles = lower + (position.astype(real.dtype) + 0.5) * self.widths(measures)
        return xp.where(inside, numbered(position, self.shape), -1), middles

    def widths(self, measures: A) -> A:
        """The extent of a cell along every measure, (k,): the same everywhere."""
        xp, real, lower, upper = self._real(measures)
        return (upper - lower) / xp.asarray(self.shape, real.dtype)

    def middles(self, cells: A) -> A:
        """The middle of each of some cells (...) -> (..., k), for NumPy and for JAX."""
        xp = cells.__array_namespace__()  # type: ignore[attr-defined]
        position = xp.stack(xp.unravel_index(cells, self.shape), axis=-1)
        lower, upper = xp.asarray(self.lower), xp.asarray(self.upper)
        return lower + (position + 0.5) * ((upper - lower) / xp.asarray(self.shape))

    def _real(self, measures: Any) -> tuple[Any, Any, Any, Any]:
        """NumPy or JAX, whosever the measures are; the measures and both edges in one floating type."""
        xp, measures = floating(measures)
        return xp, measures, xp.asarray(self.lower, measures.dtype), xp.asarray(self.upper, measures.dtype)

    def centers(self) -> np.ndarray:
        """Middle of every cell, (num_cells, k), in index order."""
        axes = [
            low + (np.arange(count) + 0.5) * (high - low) / count
            for low, high, count in zip(*self._edges(), self.shape, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(self.num_cells, self.num_measures)

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        """Rows whose measures do not lie in their cell, up to rounding at its edges. Border cells reach to infinity."""
        lower, upper = self._edges()
        counts = np.asarray(self.shape, np.float64)
        position = np.stack(np.unravel_index(cell, self.shape), axis=-1)  # (b, k)
        width = (upper - lower) / counts
        slack = 2 * _shift(lower, upper, counts, np) + _rounding(lower, upper, measures.dtype)
        low = np.where(position == 0, -np.inf, lower + position * width - slack)
        high = np.where(position == counts - 1, np.inf, lower + (position + 1) * width + slack)
        return np.any((measures < low) | (measures > high), axis=-1)

    def check_precision(self, dtype: Any) -> None:
        """Raise ValueError if numbers of that type cannot tell neighbouring cells apart."""
        lower, upper = self._edges()
        with np.errstate(over="ignore"):
            reach = (np.asarray(upper, dtype) - np.asarray(lower, dtype)) * np.asarray(self.shape, dtype)
            width = (upper - lower) / np.asarray(self.shape)
        small = (width <= 2 * _rounding(lower, upper, dtype)) & (np.asarray(self.shape) > 1)
        for j in np.flatnonzero(~np.isfinite(reach) | (reach <= 0) | small):
            raise ValueError(
                f"Grid: measure {j} from {lower[j]} to {upper[j]} in {self.shape[j]:,} cells cannot be told apart by "
                f"{np.dtype(dtype)}; shift or scale the measure, or search in float64 (jax_enable_x64)"
            )

    def arrays(self) -> dict[str, np.ndarray]:
        lower, upper = self._edges()
        return dict(zip(_NAMES, (lower, upper, np.asarray(self.shape, np.int64)), strict=True))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Grid:
        lower, upper, shape = (np.asarray(arrays[name], np.float64).reshape(-1) for name in _NAMES)
        return cls(tuple(lower), tuple(upper), tuple(shape))

    def raster(self) -> Raster:
        if self.num_measures > 2:
            raise ValueError(f"heatmap: expected an archive with 1 or 2 measures, got {self.num_measures}")
        columns, rows = (*self.shape, 1)[:2]
        lower, upper = (tuple(edges.tolist()) for edges in self._edges())
        vertical = (lower[1], upper[1]) if self.num_measures == 2 else (0.0, 1.0)
        return Raster(np.arange(self.num_cells).reshape(columns, rows).T, (lower[0], upper[0], *vertical))

    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(self.lower, np.float64), np.asarray(self.upper, np.float64)


def _shift(lower: Any, upper: Any, counts: Any, xp: Any) -> Any:
    """Never more than a thousandth of a cell."""
    return xp.minimum(xp.asarray(EPSILON, lower.dtype), (upper - lower) / (1000 * counts))


def _rounding(lower: np.ndarray, upper: np.ndarray, dtype: Any) -> np.ndarray:
    """How far measures of that type may be off, near the edges of the range."""
    return 8 * float(np.finfo(dtype).eps) * np.maximum(np.abs(lower), np.abs(upper))


def _per_measure(name: str, values: Any) -> np.ndarray:
    array = np.atleast_1d(values)
    if array.ndim != 1:
        raise ValueError(f"Grid: {name} needs one number per measure, got an array of shape {array.shape}")
    return array


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in _per_measure(name, values))
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"Grid: {name} must be finite, got {numbers}")
    return numbers


def _counts(shape: Any) -> tuple[int, ...]:
    values = _per_measure("shape", shape)
    if not all(float(value).is_integer() and value >= 1 for value in values):
        raise ValueError(f"Grid: shape must hold whole numbers of cells, at least 1 each, got {tuple(values.tolist())}")
    counts = tuple(int(value) for value in values)
    if math.prod(counts) >= 2**31:
        raise ValueError(f"Grid: {math.prod(counts):,} cells are more than the 2**31 - 1 that an index can name")
    return counts
