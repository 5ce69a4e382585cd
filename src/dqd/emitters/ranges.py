"""How far measures range, as the cells of an archive say."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive


def unit(archive: Archive, measures: Array) -> Array:
    """Measures (..., k) as shares of their range: 0 at its lower end, 1 at its upper."""
    lower, upper = _ends(archive, measures)
    return (measures - lower) / (upper - lower)


def extent(archive: Archive, like: Array) -> Array:
    """The range of every measure, (k,)."""
    lower, upper = _ends(archive, like)
    return upper - lower


def _ends(archive: Archive, like: Array) -> tuple[Array, Array]:
    tessellation: Any = archive.tessellation
    if not hasattr(tessellation, "lower"):
        raise TypeError(
            f"tessellation: this algorithm needs the range of every measure; {type(tessellation).__name__} has no "
            "`lower` and `upper`. Take a dqd.Grid or a dqd.CVT"
        )
    return jnp.asarray(tessellation.lower, like.dtype), jnp.asarray(tessellation.upper, like.dtype)
