"""The figures of an archive: what they follow from, and how."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.archives.exact_sum import ExactSum
from dqd.types import pytree


@pytree
class Metrics:
    """QD-score (mean over *all* cells of f - offset), coverage in percent, best ever evaluated, mean of the elites."""

    qd_score: Array
    coverage: Array
    best: Array
    mean: Array


@pytree
class Standing:
    """What the metrics follow from, kept up to date with every batch. Also a row of these for every iteration."""

    total: ExactSum  # of f - offset over the elites
    count: Array  # occupied cells
    best: Array  # best objective ever evaluated

    def metrics(self, num_cells: int, offset: float) -> Metrics:
        dtype = self.best.dtype
        offsets = ExactSum.zero(dtype).add(jnp.asarray(offset, dtype)[None]).times(self.count)
        mean = self.total.plus(offsets).share(jnp.maximum(self.count, 1).astype(dtype))
        return Metrics(
            qd_score=self.total.share(num_cells),
            coverage=jnp.minimum(100.0 * self.count.astype(dtype) / num_cells, 100.0),  # by a reciprocal it may be more
            best=self.best,
            mean=jnp.where(self.count > 0, mean, jnp.nan),
        )
