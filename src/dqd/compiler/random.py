"""Random numbers in a form that is compiled quickly: those of `jax.random`, drawn in a row, then cut into shape.

A CPU's compiler writes a loop over few columns out. For the random generator that takes it seconds.
"""

from __future__ import annotations

import math

import jax
from jax import Array


def normals(key: Array, shape: tuple[int, ...], dtype: jax.typing.DTypeLike | None = None) -> Array:
    """Standard normal numbers."""
    return jax.random.normal(key, (math.prod(shape),), dtype).reshape(shape)


def uniforms(key: Array, shape: tuple[int, ...]) -> Array:
    """Numbers from 0 to 1, without 1."""
    return jax.random.uniform(key, (math.prod(shape),)).reshape(shape)
