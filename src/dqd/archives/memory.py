"""The memory of an archive: whether it fits into the device, asked before it is made, and arrays to begin with."""

from __future__ import annotations

import math
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

FROM_HOST = 2**26  # bytes; to hand over as much takes less time than to compile a program that fills it


def filled(shape: tuple[int, ...], value: float, dtype: jnp.dtype) -> Array:
    """An array of one number. Unless it is large it comes from the host, for which nothing is compiled."""
    if math.prod(shape) * jnp.dtype(dtype).itemsize > FROM_HOST:
        return jnp.full(shape, value, dtype)
    return jax.device_put(np.full(shape, value, dtype))


def check_room(cells: int, solution_size: int, dtype: jnp.dtype) -> None:
    """Solutions are nearly all that an archive takes. A system that promises more memory than it has would kill us."""
    needed, there = cells * solution_size * jnp.dtype(dtype).itemsize, memory()
    if there is not None and needed > there:
        raise MemoryError(
            f"archive: {cells:,} cells with solutions of {solution_size:,} numbers take {needed / 1e9:,.1f} GB, "
            f"and the device has {there / 1e9:,.1f} GB; a grid of fewer cells takes less"
        )


def memory() -> int | None:
    """Bytes of the device's memory, if it tells them."""
    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
