"""The improvement ranking: new cells first, then improvements, then rejections, each by value.

With the acceptance thresholds of CMA-MAE the value alone counts: a new cell is worth what it lies above its threshold,
like any other (Fontaine & Nikolaidis 2023). With learning rate 0 that ranks by the objective, as plain CMA-ES does.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.types import AddResult


def improvement_ranks(result: AddResult, archive: Archive) -> Array:
    """Rank of each candidate, 0 best, by (status, value, batch index) descending. Counted, not sorted: (b,)."""
    value = result.value
    status = result.status if archive.threshold is None else jnp.zeros_like(result.status)
    higher_status = status[None, :] > status[:, None]  # [i, j]: j stands above i
    same_status = status[None, :] == status[:, None]
    higher_value = value[None, :] > value[:, None]
    same_value = value[None, :] == value[:, None]
    later = ~np.tri(status.size, dtype=bool)  # of equals the later one, as in the authors' code
    above = higher_status | (same_status & (higher_value | (same_value & later)))
    return jnp.sum(above, axis=1, dtype=jnp.int32)
