"""How often an open cell was shot at from close by, in vain: each time, half of the hope for it is gone."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree

PLACES = 16381  # a prime; cells of larger archives share places, which may cost hope, never a cell
MOST = 100


@pytree
class Misses:
    """A table of fixed size, so that it costs the same whatever the number of cells."""

    counts: Array  # (PLACES,)

    @staticmethod
    def none() -> Misses:
        return Misses(jnp.zeros(PLACES, jnp.int8))

    def of(self, cells: Array) -> Array:
        return self.counts[cells % PLACES]

    def after(self, cells: Array, missed: Array) -> Misses:
        """One more for each of these cells that was missed, however often in this batch."""
        counts = jnp.where(missed, jnp.minimum(self.of(cells), MOST) + 1, 0)
        return Misses(self.counts.at[cells % PLACES].max(counts.astype(jnp.int8)))
