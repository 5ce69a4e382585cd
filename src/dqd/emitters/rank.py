"""The improvement ranking: new cells first, then improvements, then rejections, each by value.

With the acceptance thresholds of CMA-MAE the value alone counts: a new cell is worth what it lies above its threshold,
like any other (Fontaine & Nikolaidis 2023). With learning rate 0 that ranks by the objective, as plain CMA-ES does.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.rivals import few
from dqd.types import AddResult, how_many


def improvement_ranks(result: AddResult, archive: Archive) -> Array:
    """Rank of each candidate, 0 best, by (status, value, batch index) descending: (b,)."""
    status = result.status if archive.competition.new_first else jnp.zeros_like(result.status)
    ranks = counted if few(status.size) else sorted_out
    return ranks(status, result.value)


def counted(status: Array, value: Array) -> Array:
    """Ranks as the number of those that stand above: quickest for tens of candidates."""
    numbers = jnp.arange(status.size)
    higher_status = status[:, None] > status[None, :]  # [j, i]: j stands above i
    same_status = status[:, None] == status[None, :]
    higher_value = value[:, None] > value[None, :]
    same_value = value[:, None] == value[None, :]
    later = numbers[:, None] > numbers[None, :]  # of equals the later one, as in the authors' code
    above = higher_status | (same_status & (higher_value | (same_value & later)))
    return how_many(above)


def sorted_out(status: Array, value: Array) -> Array:
    """The same ranks from sorting."""
    numbers = jnp.arange(status.size, dtype=jnp.int32)
    *_, negative = jax.lax.sort((-status, -value, -numbers), num_keys=3)
    return jnp.zeros_like(numbers).at[-negative].set(numbers)
