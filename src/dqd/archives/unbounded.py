"""A grid for measures of which nobody knows the range: it stretches when they leave it (Vassiliades et al. 2017).

Along each measure j, with [low_j, high_j] where the candidates of a batch lie, an end that they pass moves to

    lower_j <- low_j - (range_j / 8),        upper_j <- high_j + (range_j / 8)

where range_j is from the lowest to the highest that has to lie inside. The number of cells stays, so they grow.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.movable import checked_range
from dqd.tessellations.grid import Grid
from dqd.types import pytree, static

BEYOND = 1 / 8  # of the range: how far it reaches beyond the measures that it was stretched for
RESOLVED = 24  # units in the last place of a measure: no cell is smaller
SMALLEST = 1e-30  # range
LARGEST = 1 / 64  # of the largest number: what lies beyond belongs to the border cells


@pytree
class UnboundedGrid:
    """Cells of equal size, `shape[j]` along measure j, between ends that move outward when measures lie beyond them.

    Without a range to begin with, the first batch tells where measures lie. When the range is stretched, elites that
    come to lie in one cell compete for it, and coverage falls for a while. It never shrinks: one solution far away
    makes all cells large. Measures with such outliers are better served by `dqd.SlidingBoundaries`.

    Args:
        shape: how many cells along every measure; fewer than 2**31 in all.
        lower, upper: a range to begin with, if one is known.

    >>> UnboundedGrid(shape=[100, 50]).num_cells
    5000
    """

    shape: tuple[int, ...] = static()
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, value in checked_range("UnboundedGrid", self.shape, self.lower, self.upper).items():
            object.__setattr__(self, name, value)

    @property
    def num_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def num_measures(self) -> int:
        return len(self.shape)

    def begin(self, dtype: jnp.dtype) -> Array:
        """Both ends of every measure, (2, k); NaN where nothing is known."""
        if self.lower is None or self.upper is None:
            return jnp.full((2, self.num_measures), jnp.nan, dtype)
        Grid(self.lower, self.upper, self.shape).check_precision(dtype)
        return jnp.asarray([self.lower, self.upper], dtype)

    def at(self, places: Array) -> Grid:
        """Before anything was met, cells in which nobody lies."""
        lower, upper = jnp.where(jnp.isnan(places), jnp.array([[0], [1]], places.dtype), places)
        return Grid.between(lower, upper, self.shape)

    def due(self, places: Array, measures: Array, valid: Array) -> Array:
        low, high = _extremes(measures, valid)
        inside = (low >= places[0]) & (high <= places[1])  # not so where an end is NaN
        return jnp.any(valid) & ~jnp.all(inside)

    def moved(self, places: Array, measures: Array, valid: Array) -> Array:
        low, high = _extremes(measures, valid)
        lowest, highest = jnp.fmin(low, places[0]), jnp.fmax(high, places[1])
        size = jnp.maximum(jnp.abs(lowest), jnp.abs(highest))
        finest = RESOLVED * jnp.finfo(places.dtype).eps * np.asarray(self.shape, places.dtype) * size
        room = jnp.maximum(BEYOND * (highest - lowest), jnp.maximum(finest, SMALLEST) / 2)
        lower = jnp.where(low >= places[0], places[0], lowest - room)
        upper = jnp.where(high <= places[1], places[1], highest + room)
        return jnp.stack([lower, upper])

    def after(self, places: Array, measures: Array, valid: Array) -> Array:
        return places


def _extremes(measures: Array, valid: Array) -> tuple[Array, Array]:
    """The lowest and the highest of each measure, (k,) each."""
    most = LARGEST * jnp.finfo(measures.dtype).max
    kept = jnp.clip(measures, -most, most)
    low = jnp.min(jnp.where(valid[:, None], kept, jnp.inf), axis=0, initial=jnp.inf)
    return low, jnp.max(jnp.where(valid[:, None], kept, -jnp.inf), axis=0, initial=-jnp.inf)
