"""Keeping a part of a compiled program apart from its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

T = TypeVar("T")
LARGEST = 2**18  # numbers; a part that returns a larger array is not kept apart: a branch copies what it returns


def apart(always: Array, function: Callable[..., T], *operands: Any) -> T:
    """function(*operands), behind a branch that is `always` taken. Pass a comparison that the compiler cannot decide.

    XLA does not fuse across a branch. So on a CPU a part rounds as it does alone, which makes the compiled loop equal
    to the host's loop bit for bit; and what a part reads is read before anything later overwrites it in place, which
    spares a copy of the archive. On a GPU a branch would wait for the host, so there the function is simply called.
    """
    results = jax.eval_shape(function, *operands)
    if jax.default_backend() != "cpu" or any(leaf.size > LARGEST for leaf in jax.tree.leaves(results)):
        return function(*operands)
    nothing = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), results)
    return jax.lax.cond(always, function, lambda *_: nothing, *operands)


def once(values: T) -> T:
    """The same values, computed a single time.

    On a GPU XLA computes cheap values again wherever they are used. If they were read from an array that is overwritten
    in place meanwhile, it first makes a copy of that array, in every iteration.
    """
    return values if jax.default_backend() == "cpu" else jax.lax.optimization_barrier(values)
