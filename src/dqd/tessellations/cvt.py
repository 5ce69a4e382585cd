"""Cells around centroids, such as those of a centroidal Voronoi tessellation (Vassiliades et al. 2018)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dqd.tessellations.buckets import Buckets
from dqd.tessellations.k_means import k_means
from dqd.tessellations.nearest import least, squares
from dqd.tessellations.products import Products
from dqd.tessellations.tessellation import A, Raster, floating

SAMPLES = 10  # per cell, for `uniform`
FEWEST_SAMPLES, MOST_SAMPLES = 20_000, 2_000_000  # never fewer than 2 per cell
PIXELS = 400, 1000  # along an axis of a figure, at least and at most; if there is room, eight per cell
CHECKED = 2**33  # distances that reading a file may cost, at most
_NAMES = ("cvt_centroids", "cvt_lower", "cvt_upper")


@dataclass(frozen=True, eq=False, repr=False)
class CVT:
    """Every point of measure space belongs to the nearest of some centroids; of equally near ones to the first.

    Choose it for more measures than a grid can cut, or for measures that fill only a part of their range. Distances
    are Euclidean, so scale measures alike. With up to three measures a cell is found in constant time, whatever the
    number of cells; with more by one matrix product with all centroids.

    Args:
        centroids: (cells, k), all different.
        lower, upper: both ends of every measure, for figures, and to tell what lies outside; nothing is refused. By
            default half a cell beyond the centroids.

    >>> cells = CVT([[0, 0], [1, 0], [0, 2]])
    >>> cells.index_of(np.array([[0.1, 0.9], [7.0, 1.0], [0.5, 0.0]])).tolist()
    [0, 1, 0]
    >>> CVT.uniform([-1, 0], [1, 5], 100).num_cells
    100
    """

    centroids: np.ndarray
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    finder: Buckets | Products = field(init=False, compare=False)  # follows from the centroids
    kind: ClassVar[str] = "cvt"

    def __post_init__(self) -> None:
        centroids = _centroids(self.centroids)
        object.__setattr__(self, "centroids", centroids)
        margin = _widths(centroids) / 2
        ends = {"lower": centroids.min(axis=0) - margin, "upper": centroids.max(axis=0) + margin}
        for name, default in ends.items():
            object.__setattr__(self, name, _numbers(name, getattr(self, name), default))
        for j, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low < high:
                raise ValueError(f"CVT: lower must lie below upper; measure {j} has lower={low}, upper={high}")
        object.__setattr__(self, "finder", _finder(centroids.tobytes(), self.lower, self.upper))

    @classmethod
    def uniform(cls, lower: Any, upper: Any, cells: int, *, seed: int = 0) -> CVT:
        """Cells of about equal size between `lower` and `upper`: k-means of uniform points."""
        low, high = np.atleast_1d(np.asarray(lower, float)), np.atleast_1d(np.asarray(upper, float))
        if low.ndim != 1 or low.shape != high.shape or not np.all(low < high):
            raise ValueError(f"CVT: expected one number per measure, lower below upper, got {lower} and {upper}")
        count = max(min(max(SAMPLES * _count(cells), FEWEST_SAMPLES), MOST_SAMPLES), 2 * cells)
        points = np.random.default_rng(seed).uniform(low, high, (count, len(low)))
        return cls(k_means(points, cells, seed), tuple(low), tuple(high))

    @classmethod
    def fitted(cls, points: Any, cells: int, *, seed: int = 0) -> CVT:
        """Cells where points (m, k) are, such as the measures of a data set: smaller where they crowd."""
        points = np.unique(_centroids(points), axis=0)
        if _count(cells) > len(points):
            raise ValueError(f"CVT: {cells:,} cells need as many different points, got {len(points):,}")
        low, high = points.min(axis=0), points.max(axis=0)
        wide = np.where(high > low, 0, 0.5)  # a measure that is always the same
        return cls(k_means(points, cells, seed), tuple(low - wide), tuple(high + wide))

    @property
    def num_cells(self) -> int:
        return self.centroids.shape[0]

    @property
    def num_measures(self) -> int:
        return self.centroids.shape[1]

    def index_of(self, measures: A) -> A:
        """Cell of each row of measures (..., k) -> (...)."""
        xp, rows = floating(measures)
        centroids = xp.asarray(self.centroids, rows.dtype)
        with np.errstate(over="ignore"):  # then all are equally far away
            found = self.finder.nearest(xp, rows.reshape(-1, self.num_measures), centroids)
        return found.reshape(rows.shape[:-1])

    def outside(self, measures: A) -> A:
        """Which rows of measures (..., k) lie outside `lower` and `upper`."""
        xp, rows = floating(measures)
        lower, upper = xp.asarray(self.lower, rows.dtype), xp.asarray(self.upper, rows.dtype)
        return xp.any((rows < lower) | (rows > upper), axis=-1)

    def centers(self) -> np.ndarray:
        """The centroids, (num_cells, k)."""
        return np.asarray(self.centroids)

    def middles(self, cells: A) -> A:
        """The centroid of each of some cells (...) -> (..., k), for NumPy and for JAX."""
        return cells.__array_namespace__().asarray(self.centroids)[cells]  # type: ignore[attr-defined]

    def near(self, measures: A, count: int) -> tuple[A, A]:
        """The cells whose centroids are nearest to each row of measures (..., k), its own first, and these centroids.

        >>> CVT([[0.0], [1.0], [3.0]]).near(np.array([1.8]), 2)[0].tolist()
        [1, 2]
        """
        xp, rows = floating(measures)
        centroids = xp.asarray(self.centroids, rows.dtype)
        cells = least(xp, squares(rows, centroids), min(count, self.num_cells))
        return cells, centroids[cells]

    def widths(self, measures: A) -> A:
        """How far a cell extends along every measure, (k,): on average."""
        xp, rows = floating(measures)
        extent = xp.asarray(self.upper, rows.dtype) - xp.asarray(self.lower, rows.dtype)
        return extent / self.num_cells ** (1 / self.num_measures)

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        """Rows to which another centroid is nearer, up to rounding. Of very many rows only some are looked at."""
        cost = 1 if isinstance(self.finder, Buckets) else self.num_cells
        checked = np.arange(0, len(cell), max(1, len(cell) * cost // CHECKED))
        rows, centroids = measures[checked].astype(np.float64), np.asarray(self.centroids, np.float64)
        own, best = (squares(rows, centroids[index][:, None])[:, 0] for index in (cell[checked], self.index_of(rows)))
        size = np.abs(centroids).max() + np.abs(rows).max(axis=1, initial=0)
        wrong = np.zeros(len(cell), bool)
        wrong[checked] = own > best + 64 * np.finfo(measures.dtype).eps * size**2
        return wrong

    def check_precision(self, dtype: Any) -> None:
        """Raise ValueError if some centroids are the same in numbers of that type."""
        with np.errstate(over="ignore"):
            rounded = np.asarray(self.centroids).astype(dtype)
        different = len(np.unique(rounded, axis=0)) if np.isfinite(rounded).all() else 0
        if different < self.num_cells:
            raise ValueError(
                f"CVT: of {self.num_cells:,} centroids {different:,} are different in {np.dtype(dtype)}; leave out "
                "what occurs twice, scale the measures, or search in float64 (jax_enable_x64)"
            )

    def arrays(self) -> dict[str, np.ndarray]:
        values = (self.centroids, self.lower, self.upper)
        return {name: np.asarray(value, np.float64) for name, value in zip(_NAMES, values, strict=True)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> CVT:
        centroids, lower, upper = (np.asarray(arrays[name], np.float64) for name in _NAMES)
        return cls(centroids, tuple(lower.reshape(-1)), tuple(upper.reshape(-1)))

    def raster(self) -> Raster:
        if self.num_measures > 2:
            raise ValueError(f"heatmap: expected an archive with 1 or 2 measures, got {self.num_measures}")
        side = int(np.clip(8 * self.num_cells ** (1 / self.num_measures), *PIXELS))
        axes = [
            low + (np.arange(side) + 0.5) * (high - low) / side
            for low, high in zip(self.lower, self.upper, strict=True)
        ]
        pixels = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, side, self.num_measures)
        vertical = (float(self.lower[1]), float(self.upper[1])) if self.num_measures == 2 else (0.0, 1.0)
        return Raster(self.index_of(pixels), (float(self.lower[0]), float(self.upper[0]), *vertical))

    def __repr__(self) -> str:
        return f"CVT({self.num_cells:,} cells, {self.num_measures} measures)"


@functools.lru_cache(maxsize=4)  # archives and figures are often made of the same arrays
def _finder(content: bytes, lower: tuple[float, ...], upper: tuple[float, ...]) -> Buckets | Products:
    centroids = np.frombuffer(content).reshape(-1, len(lower))
    return Buckets.of(centroids, np.asarray(lower), np.asarray(upper)) or Products.of(centroids)


def _widths(centroids: np.ndarray) -> np.ndarray:
    """How far a cell extends along each measure, about; never 0."""
    extent = np.ptp(centroids, axis=0)
    return np.where(extent > 0, extent, 1) / len(centroids) ** (1 / centroids.shape[1])


def _centroids(values: Any) -> np.ndarray:
    array = np.ascontiguousarray(values, np.float64)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all() or len(array) >= 2**31:
        raise ValueError(f"CVT: expected finite numbers (cells, k), fewer than 2**31 rows, got shape {array.shape}")
    return array


def _numbers(name: str, values: Any, default: np.ndarray) -> tuple[float, ...]:
    array = np.atleast_1d(np.asarray(values, np.float64)) if np.size(values) else default
    if array.shape != default.shape or not np.isfinite(array).all():
        raise ValueError(f"CVT: {name}: expected a finite number for each of {len(default)} measures, got {values}")
    return tuple(array.tolist())


def _count(cells: int) -> int:
    if isinstance(cells, bool) or not isinstance(cells, int | np.integer) or cells < 1:
        raise ValueError(f"CVT: cells: expected a whole number, at least 1, got {cells!r}")
    return int(cells)
