"""The border between a user's solutions, which may be any pytree of arrays, and the flat vectors used inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.inputs.arrays import to_numpy
from dqd.inputs.bounds import Bounds, Box
from dqd.inputs.halves import inward
from dqd.types import PyTree, Score


@dataclass(frozen=True)
class Layout:
    """How a pytree lies in a flat vector. Equal layouts compare equal, so they never cause a second compilation."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtype: Any

    @staticmethod
    def of(x0: Any) -> tuple[Layout, Array]:
        """The layout of a solution, and that solution as a flat vector."""
        if isinstance(x0, list | tuple) and x0 and all(isinstance(number, int | float) for number in x0):
            x0 = np.asarray(x0)  # a list of plain numbers is meant as a vector
        leaves, treedef = jax.tree.flatten(x0)
        if not leaves:
            raise ValueError("x0: expected an array or a pytree of arrays, got nothing")
        arrays = [_number_array("x0", leaf) for leaf in leaves]
        dtypes = [array.dtype for array in arrays]  # of arrays themselves, weakly typed ones would lose theirs
        dtype = jnp.result_type(jnp.float32, *dtypes) if _all_float(arrays) else jnp.result_type(float)
        flat = np.concatenate([np.asarray(array, dtype).reshape(-1) for array in arrays])  # nothing need be compiled
        if flat.size == 0:
            raise ValueError("x0: a solution needs at least one number")
        if not np.isfinite(flat).all():
            raise ValueError("x0: expected finite numbers, got NaN or infinity")
        return Layout(treedef, tuple(array.shape for array in arrays), dtype), jax.device_put(flat)

    @property
    def is_flat(self) -> bool:
        return self.treedef.num_leaves == 1 and jax.tree_util.treedef_is_leaf(self.treedef) and len(self.shapes[0]) == 1

    def unflatten(self, flat: Any) -> PyTree:
        """A flat vector (n,) as the user's pytree."""
        if self.is_flat:
            return flat
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(flat[start : start + size].reshape(shape))
            start += size
        return jax.tree.unflatten(self.treedef, leaves)

    def box(self, bounds: Any, x0: Array, kept: Any = None) -> Box | None:
        """A user's bounds, each side a number, an array or a pytree like x0, around the flat x0.

        `kept` is the type of solutions within the archive, if it is another.
        """
        if bounds is None:
            return None
        if not isinstance(bounds, Bounds):
            try:
                bounds = Bounds(*bounds)
            except TypeError:
                raise ValueError(
                    f"bounds: expected a pair (lower, upper), or dqd.Bounds(lower, upper, by=...), got {bounds!r}"
                ) from None
        sides = (self._broadcast("lower", bounds.lower), self._broadcast("upper", bounds.upper))
        return Box.of(*inward(*sides, kept), x0, bounds.by)

    def _broadcast(self, name: str, side: Any) -> Array:
        one = jax.tree_util.treedef_is_leaf(self.treedef)
        leaves, treedef = ([side], self.treedef) if one else jax.tree.flatten(side)
        if jax.tree_util.treedef_is_leaf(treedef):
            leaves, treedef = leaves * len(self.shapes), self.treedef
        if treedef != self.treedef or side is None:
            got = "None" if side is None else treedef
            raise ValueError(
                f"bounds: {name}: expected a number or the structure of x0, {self.treedef}, got {got}; "
                "where there is no bound, give infinity"
            )
        spread = [self._spread(name, leaf, shape) for leaf, shape in zip(leaves, self.shapes, strict=True)]
        return jax.device_put(np.concatenate(spread))

    def _spread(self, name: str, leaf: Any, shape: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(_number_array(f"bounds: {name}", leaf), self.dtype)
        try:
            return np.broadcast_to(array, shape).reshape(-1)
        except ValueError:
            raise ValueError(
                f"bounds: {name}: expected a number or the shape of x0, {shape}, got {array.shape}"
            ) from None


@dataclass(frozen=True)
class OnFlat:
    """A score function of the user's pytree, called with a flat vector."""

    function: Score
    layout: Layout

    def __call__(self, flat: Array) -> tuple[Array, ...]:
        return self.function(self.layout.unflatten(flat))


def _number_array(name: str, leaf: Any) -> np.ndarray | Array:
    array = leaf if isinstance(leaf, Array) else to_numpy(leaf)
    if not _is_float(array) and array.dtype.kind not in "iub":
        raise TypeError(f"{name}: expected real numbers, got an array of {array.dtype}")
    return array


def _all_float(arrays: list[Any]) -> bool:
    return all(isinstance(array, Array) and _is_float(array) for array in arrays)


def _is_float(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))  # also bfloat16, whose kind NumPy does not know
