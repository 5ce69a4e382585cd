"""What the ranks of a generation say: how much each of its points counts, and whether its values are flat."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array


def recombination(parents: Array | int, population: int, dtype: Any, shift: float = 0.5) -> Any:
    """Weights from best to worst that sum to 1: log(parents + shift) - log(rank), 0 beyond the parents.

    Those of CMA-ES have a shift of 0.5 (Hansen 2016, eq. 49, the positive part). Constants if the number of parents is.
    """
    rank = np.arange(population)
    raw: Any
    if isinstance(parents, int):
        raw = np.where(rank < max(parents, 1), np.log(max(parents, 1) + shift) - np.log(rank + 1.0), 0)
    else:
        counted = jnp.maximum(parents, 1).astype(dtype)
        raw = jnp.where(rank < counted, jnp.log(counted + shift) - np.log(rank + 1.0).astype(dtype), 0)
    return raw / raw.sum()


def effective(weights: Any) -> Any:
    """mueff = 1 / sum w^2: how many points of equal weight would average as much noise away."""
    return number(1 / (weights * weights).sum())


def flat(ranks: Array, value: Array) -> Array:
    """Whether the best and the worst of a generation are equal: nothing to learn."""
    best_and_worst = jnp.where(ranks == 0, value, jnp.where(ranks == value.size - 1, -value, 0))
    return jnp.abs(jnp.sum(best_and_worst)) < 1e-12


def largest(a: Any, b: Any) -> Any:
    return jnp.maximum(a, b) if isinstance(b, Array) else max(a, b)


def number(value: Any) -> Any:
    """NumPy's scalars as plain floats, which never widen a float32 computation."""
    return value if isinstance(value, Array) else float(value)
