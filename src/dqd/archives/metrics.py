"""The figures of an archive, kept as running sums that do not drift."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree


def two_sum(total: Array, term: Array) -> Array:
    """Add a term to a sum kept as (sum, lost digits): Knuth's exact two-sum (1969), so round-off never accumulates."""
    high, low = total[0], total[1]
    added = high + term
    shadow = added - high
    lost = (high - (added - shadow)) + (term - shadow)
    return jnp.stack([added, low + lost])


@pytree
class Metrics:
    """QD-score (mean over *all* cells of f - offset), coverage in percent, best ever evaluated, mean of the elites."""

    qd_score: Array
    coverage: Array
    best: Array
    mean: Array

    @staticmethod
    def of(total: Array, count: Array, best: Array, num_cells: int, offset: float) -> Metrics:
        summed = (total[0] - offset * count) + total[1]
        return Metrics(
            qd_score=summed / num_cells,
            coverage=100.0 * count.astype(total.dtype) / num_cells,
            best=best,
            mean=jnp.where(count > 0, (total[0] + total[1]) / jnp.maximum(count, 1), jnp.nan),
        )
