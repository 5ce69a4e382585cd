"""The improvement ranking: new cells first, then improvements, then rejections, each by value."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import AddResult


def improvement_ranks(result: AddResult) -> Array:
    """Rank of each candidate, 0 best, by (status, value, batch index) descending. Counted, not sorted: (b,)."""
    status, value = result.status, result.value
    higher_status = status[None, :] > status[:, None]  # [i, j]: j stands above i
    same_status = status[None, :] == status[:, None]
    higher_value = value[None, :] > value[:, None]
    same_value = value[None, :] == value[:, None]
    later = ~np.tri(status.size, dtype=bool)  # of equals the later one, as in the authors' code
    above = higher_status | (same_status & (higher_value | (same_value & later)))
    return jnp.sum(above, axis=1, dtype=jnp.int32)
