"""The border between a user's solutions, which may be any pytree of arrays, and the flat vectors used inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.told import to_numpy
from dqd.types import Score


@dataclass(frozen=True)
class Layout:
    """How a pytree lies in a flat vector. Equal layouts compare equal, so they never cause a second compilation."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtype: Any

    @staticmethod
    def of(x0: Any) -> tuple[Layout, Array]:
        """The layout of a solution, and that solution as a flat vector."""
        leaves, treedef = jax.tree.flatten(x0)
        if not leaves:
            raise ValueError("x0: expected an array or a pytree of arrays, got nothing")
        arrays = [_number_array("x0", leaf) for leaf in leaves]
        dtype = jnp.zeros(0).dtype if not _all_float(arrays) else jnp.result_type(*arrays)
        flat = jnp.concatenate([jnp.asarray(array, dtype).reshape(-1) for array in arrays])
        if flat.size == 0:
            raise ValueError("x0: a solution needs at least one number")
        if not np.isfinite(np.asarray(flat)).all():
            raise ValueError("x0: expected finite numbers, got NaN or infinity")
        return Layout(treedef, tuple(array.shape for array in arrays), dtype), flat

    @property
    def is_flat(self) -> bool:
        return self.treedef.num_leaves == 1 and jax.tree_util.treedef_is_leaf(self.treedef) and len(self.shapes[0]) == 1

    def unflatten(self, flat: Any) -> Any:
        """A flat vector (n,) as the user's pytree."""
        if self.is_flat:
            return flat
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(flat[start : start + size].reshape(shape))
            start += size
        return jax.tree.unflatten(self.treedef, leaves)

    def flatten_bounds(self, bounds: Any) -> tuple[Array, Array] | None:
        """Bounds (lower, upper), each a number, an array or a pytree like x0, as two flat vectors."""
        if bounds is None:
            return None
        try:
            lower, upper = bounds
        except (TypeError, ValueError):
            raise ValueError(f"bounds: expected a pair (lower, upper), got {bounds!r}") from None
        flat = (self._broadcast("lower", lower), self._broadcast("upper", upper))
        if not bool(jnp.all(flat[0] < flat[1])):
            raise ValueError("bounds: every lower bound must lie below its upper bound")
        return flat

    def _broadcast(self, name: str, side: Any) -> Array:
        leaves = jax.tree.leaves(side)
        if len(leaves) == 1:
            leaves = leaves * len(self.shapes)
        try:
            full = [
                jnp.broadcast_to(jnp.asarray(leaf, self.dtype), shape).reshape(-1)
                for leaf, shape in zip(leaves, self.shapes, strict=True)
            ]
        except ValueError as error:
            raise ValueError(f"bounds: {name} does not fit the shape of x0: {error}") from None
        return jnp.concatenate(full)


@dataclass(frozen=True)
class OnFlat:
    """A score function of the user's pytree, called with a flat vector."""

    function: Score
    layout: Layout

    def __call__(self, flat: Array) -> tuple[Array, Array]:
        return self.function(self.layout.unflatten(flat))


def _number_array(name: str, leaf: Any) -> np.ndarray | Array:
    array = leaf if isinstance(leaf, Array) else to_numpy(leaf)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got an array of {array.dtype}")
    return array


def _all_float(arrays: list[Any]) -> bool:
    return all(isinstance(array, Array) and array.dtype.kind == "f" for array in arrays)
