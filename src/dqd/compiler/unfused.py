"""Keeping a part of a compiled program apart from its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap
from jax.extend.core import Var, jaxpr_as_fun

T = TypeVar("T")
LARGEST = 2**18  # numbers; a part that returns a larger array is not kept apart: a branch copies what it returns


def apart(always: Array, function: Callable[..., T], *operands: Any) -> T:
    """function(*operands), behind a branch that is `always` taken. Pass a comparison that the compiler cannot decide.

    XLA does not fuse across a branch. So on a CPU a part rounds as it does alone, which makes the compiled loop equal
    to the host's loop bit for bit; and what a part reads is read before anything later overwrites it in place, which
    spares a copy of the archive. On a GPU a branch would wait for the host, so there the function is simply called.

    What the function returns as it was given does not pass the branch: that would copy it.
    """
    if jax.default_backend() != "cpu":
        return function(*operands)
    given, form = jax.tree.flatten(operands)
    traced, like = jax.make_jaxpr(lambda *leaves: function(*jax.tree.unflatten(form, leaves)), return_shape=True)(
        *given
    )
    shapes, structure = jax.tree.flatten(like)
    if any(shape.size > LARGEST for shape in shapes):
        return function(*operands)
    places = {variable: number for number, variable in enumerate(traced.jaxpr.invars)}
    same = [places.get(result) if isinstance(result, Var) else None for result in traced.jaxpr.outvars]
    made = [number for number, place in enumerate(same) if place is None]

    def branch(*leaves: Any) -> list[Array]:
        results = jaxpr_as_fun(traced)(*leaves)
        return [results[number] for number in made]

    def never(*_: Any) -> list[Array]:
        return [jnp.zeros(shapes[number].shape, shapes[number].dtype) for number in made]

    changed = iter(jax.lax.cond(_of_all(always), branch, never, *given))
    return jax.tree.unflatten(structure, [next(changed) if place is None else given[place] for place in same])


@custom_vmap
def _of_all(always: Array) -> Array:
    """The same, one for all seeds that run side by side.

    If each had its own, `vmap` would make copies of every operand for each of them, the domain's weights included, and
    no branch would be left.
    """
    return always


@_of_all.def_vmap
def _one_of_all(_size: int, _batched: list[bool], always: Array) -> tuple[Array, bool]:
    return always[0], False


def once(values: T) -> T:
    """The same values, computed a single time.

    On a GPU XLA computes cheap values again wherever they are used. If they were read from an array that is overwritten
    in place meanwhile, it first makes a copy of that array, in every iteration.
    """
    return values if jax.default_backend() == "cpu" else jax.lax.optimization_barrier(values)
