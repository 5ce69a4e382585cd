"""Solutions in half the memory: numbers of 16 bits, which types there are, and what is rounded to them.

What a search proposes is rounded before it is evaluated. So an elite is what was evaluated, to the last bit, and comes
out as numbers of the search's own precision.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.inputs.names import check_known

# Bits of the exponent, and of the significand behind its first. No bfloat16: to write one row of such an array, JAX's
# compiler for CPUs makes float32 of all of them.
HALVES = {"float16": (5, 10)}


def check_half(solutions: Any) -> Any:
    """The type that elites' solutions are kept in; None is that of the search."""
    if solutions is None:
        return None
    check_known("type of solutions", str(solutions), HALVES)
    return jnp.dtype(solutions)


def rounded(solutions: Array, kept: Any) -> Array:
    """Solutions as an archive keeps them. To convert them there and back would not do: XLA leaves both out."""
    return jax.lax.reduce_precision(solutions, *HALVES[str(kept)]) if str(kept) in HALVES else solutions


def at_walls(solutions: np.ndarray, sides: tuple[np.ndarray, np.ndarray] | None, kept: Any) -> np.ndarray:
    """Solutions that lay within bounds before these moved inward: at their walls now. Others stay as they are."""
    if sides is None or str(kept) not in HALVES:
        return solutions
    inside = np.clip(solutions, *sides)
    near = np.abs(solutions - inside) <= float(jnp.finfo(kept).eps) * np.abs(inside)
    return np.where(near, inside, solutions)


def inward(lower: Any, upper: Any, kept: Any) -> tuple[Any, Any]:
    """Bounds that such numbers can lie at, within the given ones: then rounding leads out of no box."""
    if kept is None:
        return lower, upper
    low, high = (np.asarray(side) for side in (lower, upper))
    infinity = np.asarray(np.inf, kept)
    with np.errstate(over="ignore"):
        above, below = low.astype(kept), high.astype(kept)
    above = np.where(above.astype(low.dtype) < low, np.nextafter(above, infinity), above).astype(low.dtype)
    below = np.where(below.astype(high.dtype) > high, np.nextafter(below, -infinity), below).astype(high.dtype)
    if not np.all(above < below):
        raise ValueError(f"bounds: too near to each other for solutions={str(kept)!r}; keep solutions in float32")
    return above, below
