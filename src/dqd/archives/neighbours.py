"""Distances in measure space, and the nearest of many: what competitions without cells go by."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.tessellations.nearest import squares


def distances(measures: Array, others: Array) -> Array:
    """Euclidean, (a, k) and (b, k) -> (a, b)."""
    return jnp.sqrt(squares(measures, others))


def least(values: Array, count: int) -> tuple[Array, Array]:
    """The `count` least of each row (a, m), ascending, and where they stand; infinite if there are fewer."""
    if values.shape[1] < count:
        values = jnp.pad(values, ((0, 0), (0, count - values.shape[1])), constant_values=jnp.inf)
    negative, index = jax.lax.top_k(-values, count)
    return -negative, index.astype(jnp.int32)


def check_count(owner: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{owner}: {name}: expected a whole number, at least 1, got {value!r}")
