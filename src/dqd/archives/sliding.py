"""Boundaries that slide: edges at the quantiles of the measures met lately (Fontaine et al. 2019, "MESB").

Every so many candidates the edges of measure j are moved to

    edge_i = the (i m / s_j)-th of the m last measures, sorted,   i = 0 .. s_j - 1;     edge_(s_j) = the highest

so that each slice of the s_j has met about as many. Elites are put into the new cells, the best of each kept.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.movable import checked_range
from dqd.archives.neighbours import check_count
from dqd.archives.rivals import number_before
from dqd.tessellations.uneven import UnevenGrid, quantiles
from dqd.types import pytree, replace, static


@pytree
class Slides:
    """Where the edges are, and what has been met since."""

    edges: tuple[Array, ...]  # (s_j + 1,) each
    recent: Array  # (remembered, k) measures of the last candidates, a ring
    next: Array  # () where in the ring the next one goes
    filled: Array  # () how many there are in it
    since: Array  # () candidates since the edges moved
    patience: Array  # () how many they wait for


@pytree
class SlidingBoundaries:
    """A grid of `shape` whose edges follow where measures are, so that cells are small where they crowd.

    For measures of unknown or very uneven distribution. Moving the edges reads and writes the whole archive, so it
    should be rare. In pyribs the last candidates compete for the new cells once more; here only elites do.

    Args:
        shape: how many cells along every measure; fewer than 2**31 in all.
        lower, upper: ends of equal cells to begin with, if they are known; else the first batch tells.
        every: candidates between two moves; where no range is known, edges move sooner at first.
        remembered: last candidates whose quantiles count.

    >>> SlidingBoundaries(shape=[20, 10]).num_cells
    200
    """

    shape: tuple[int, ...] = static()
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    every: int = 10_000
    remembered: int = static(default=10_000)

    def __post_init__(self) -> None:
        for name in ("every", "remembered"):
            check_count("SlidingBoundaries", name, getattr(self, name))
        for name, value in checked_range("SlidingBoundaries", self.shape, self.lower, self.upper).items():
            object.__setattr__(self, name, value)
        if self.remembered * max(self.shape) >= 2**31:
            raise ValueError(f"SlidingBoundaries: remembered: {self.remembered:,} are too many; 10,000 or so will do")

    @property
    def num_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def num_measures(self) -> int:
        return len(self.shape)

    def begin(self, dtype: jnp.dtype) -> Slides:
        unknown = self.lower is None
        ends = [(0.0,) * self.num_measures, (1.0,) * self.num_measures] if unknown else [self.lower, self.upper]
        even = [np.linspace(low, high, count + 1) for low, high, count in zip(*ends, self.shape, strict=True)]
        UnevenGrid(tuple(even)).check_precision(dtype)
        return Slides(
            edges=tuple(jnp.asarray(row, dtype) for row in even),
            recent=jnp.zeros((self.remembered, self.num_measures), dtype),
            next=jnp.array(0, jnp.int32),
            filled=jnp.array(0, jnp.int32),
            since=jnp.array(0, jnp.int32),
            patience=jnp.array(0 if unknown else self.every, jnp.int32),
        )

    def at(self, places: Slides) -> UnevenGrid:
        return UnevenGrid.between(places.edges)

    def due(self, places: Slides, measures: Array, valid: Array) -> Array:
        return (places.since >= places.patience) & ((places.filled > 0) | jnp.any(valid))

    def moved(self, places: Slides, measures: Array, valid: Array) -> Slides:
        """Before anything was met, the batch itself tells."""
        there = jnp.arange(self.remembered) < places.filled
        rows = jnp.concatenate([places.recent, measures.astype(places.recent.dtype)])
        counts = jnp.concatenate([there, valid & (places.filled == 0)])
        columns = jnp.where(counts[:, None], rows, jnp.inf).T
        number = jnp.sum(counts, dtype=jnp.int32)
        edges = (quantiles(jnp, column, number, count) for column, count in zip(columns, self.shape, strict=True))
        patience = jnp.minimum(2 * jnp.maximum(places.patience, number), self.every)
        return replace(places, edges=tuple(edges), since=jnp.zeros_like(places.since), patience=patience)

    def after(self, places: Slides, measures: Array, valid: Array) -> Slides:
        """The last of the batch, if there are more than are remembered, in place of the oldest."""
        number, before = jnp.sum(valid, dtype=jnp.int32), number_before(valid)
        kept = valid & (before >= number - self.remembered)
        row = jnp.where(kept, (places.next + before) % self.remembered, self.remembered)
        return replace(
            places,
            recent=places.recent.at[row].set(measures.astype(places.recent.dtype), mode="drop"),
            next=(places.next + number) % self.remembered,
            filled=jnp.minimum(places.filled + number, self.remembered),
            since=jnp.minimum(places.since, self.every) + number,  # never above 32 bits
        )
