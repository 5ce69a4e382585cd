"""The figures of an archive: what they follow from, and how."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from dqd.archives.exact_sum import ExactSum
from dqd.types import pytree, static


@pytree
class Metrics:
    """QD-score (mean over *all* cells of f - offset), coverage in percent, best ever evaluated, mean of the elites.

    Figures for people: they are worked out on the host, where they cost no compilation.
    """

    qd_score: np.ndarray
    coverage: np.ndarray
    best: np.ndarray
    mean: np.ndarray


@pytree
class Standing:
    """What the metrics follow from, kept up to date with every batch: one row of words, which is written as one."""

    words: Any  # (..., words) int32: the digits of the sum, the bits of the best objective, the count, two of `spent`
    dtype: Any = static()  # of objectives

    @staticmethod
    def of(total: ExactSum, count: Any, best: Any, spent: Any = None) -> Standing:
        """The sum of f - offset over the elites, how many there are, and the best objective ever evaluated.

        `spent`, (..., 2), is the number of evaluations so far: the first word times 2**20, and the second.
        """
        xp = np if isinstance(best, np.ndarray) else jnp
        bits = best[..., None].view(np.int32)
        spent = xp.zeros((*count.shape, 2), np.int32) if spent is None else spent
        return Standing(xp.concatenate([total.digits, bits, count[..., None], spent], axis=-1), total.dtype)

    def metrics(self, num_cells: int, offset: Any) -> Metrics:
        """Of one row, or of many: NumPy's, on the host."""
        words, dtype = np.ascontiguousarray(self.words), self.dtype
        digits, bits = np.split(words[..., :-3], [-(dtype.itemsize // 4)], axis=-1)
        count, total = words[..., -3], ExactSum(digits, dtype)
        with np.errstate(invalid="ignore"):
            offsets = ExactSum.of(offset, dtype).times(count[..., None])
            mean = total.plus(offsets).share(np.maximum(count, 1).astype(dtype))
        return Metrics(
            qd_score=total.share(num_cells),
            coverage=np.minimum(100.0 * count.astype(dtype) / num_cells, 100.0),  # by a reciprocal it may be more
            best=np.ascontiguousarray(bits).view(dtype)[..., 0],
            mean=np.where(count > 0, mean, np.nan).astype(dtype),
        )

    def columns(self, num_cells: int, offset: Any) -> dict[str, np.ndarray]:
        """The metrics by name, and `evaluations`, all of them so far."""
        high, low = np.moveaxis(np.asarray(self.words, np.int64)[..., -2:], -1, 0)
        return {"evaluations": (high << 20) + low, **vars(self.metrics(num_cells, offset))}
