"""The figures of an archive: what they follow from, and how."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.exact_sum import ExactSum
from dqd.types import pytree, static


@pytree
class Metrics:
    """QD-score (mean over *all* cells of f - offset), coverage in percent, best ever evaluated, mean of the elites."""

    qd_score: Array
    coverage: Array
    best: Array
    mean: Array


@pytree
class Standing:
    """What the metrics follow from, kept up to date with every batch: one row of words, which is written as one."""

    words: Array  # (..., words) int32: the digits of the sum, the bits of the best objective, the count
    dtype: Any = static()  # of objectives

    @staticmethod
    def of(total: ExactSum, count: Array, best: Array) -> Standing:
        """The sum of f - offset over the elites, how many there are, and the best objective ever evaluated."""
        bits = jax.lax.bitcast_convert_type(best, jnp.int32).reshape(*best.shape, -1)
        return Standing(jnp.concatenate([total.digits, bits, count[..., None]], axis=-1), total.dtype)

    def metrics(self, num_cells: int, offset: float) -> Metrics:
        """Of one row, or of many."""
        dtype, count = self.dtype, self.words[..., -1]
        digits, bits = self.words[..., : -1 - dtype.itemsize // 4], self.words[..., -1 - dtype.itemsize // 4 : -1]
        best = jax.lax.bitcast_convert_type(bits[..., 0] if dtype.itemsize == 4 else bits, dtype)
        total = ExactSum(digits, dtype)
        offsets = ExactSum.zero(dtype).add(jnp.asarray(offset, dtype)[None]).times(count[..., None])
        mean = total.plus(offsets).share(jnp.maximum(count, 1).astype(dtype))
        return Metrics(
            qd_score=total.share(num_cells),
            coverage=jnp.minimum(100.0 * count.astype(dtype) / num_cells, 100.0),  # by a reciprocal it may be more
            best=best,
            mean=jnp.where(count > 0, mean, jnp.nan),
        )
