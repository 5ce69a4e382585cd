"""Many small arrays as few: a program takes one longer argument sooner than twenty short ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import PyTree, pytree, static

SMALL = 512  # bytes of a vector. What is no larger, XLA's threads do one after the other and wake nobody


@dataclass(frozen=True)
class Place:
    """Where a small array is: in which vector, from where on, and in which shape."""

    vector: int
    begin: int
    shape: tuple[int, ...]

    def of(self, vectors: list[Any]) -> Any:
        return vectors[self.vector][self.begin : self.begin + math.prod(self.shape)].reshape(self.shape)


@pytree
class Packed:
    """A tree of arrays: large ones by themselves, small ones of a kind one after the other in vectors."""

    large: list[Array]
    vectors: list[Array]
    places: tuple[Place | None, ...] = static()  # of each leaf; None is the next one of the large
    form: Any = static()

    @staticmethod
    def of(tree: PyTree) -> Packed:
        """Of arrays in a program; or of arrays at hand, whose small ones then pass through the host."""
        leaves, form = jax.tree.flatten(tree)
        numpy: Any = jnp if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves) else np
        large: list[Array] = []
        vectors: list[list[Any]] = []
        filling: dict[Any, tuple[int, int]] = {}  # by kind: the vector that has room, and how much is in it
        places: list[Place | None] = []
        for leaf in leaves:
            if not _is_small(leaf):
                places.append(None)
                large.append(leaf)
                continue
            vector, begin = filling.get(leaf.dtype, (-1, SMALL))
            if (begin + leaf.size) * leaf.dtype.itemsize > SMALL:
                vector, begin = len(vectors), 0
                vectors.append([])
            vectors[vector].append(numpy.ravel(leaf))
            places.append(Place(vector, begin, leaf.shape))
            filling[leaf.dtype] = vector, begin + leaf.size
        return Packed(large, [jnp.asarray(numpy.concatenate(parts)) for parts in vectors], tuple(places), form)

    def unpacked(self) -> PyTree:
        """The tree; of arrays at hand, the small ones pass through the host."""
        traced = any(isinstance(vector, jax.core.Tracer) for vector in self.vectors)
        # Of copies: the vectors may be overwritten.
        parts = self._parts(self.vectors if traced else [np.array(vector) for vector in self.vectors])
        large, small = iter(self.large), iter(parts if traced else jax.device_put(parts))
        return jax.tree.unflatten(self.form, [next(large if place is None else small) for place in self.places])

    def _parts(self, vectors: list[Any]) -> list[Any]:
        return [place.of(vectors) for place in self.places if place is not None]


def opened(tree: PyTree) -> PyTree:
    """The tree, whether it is packed or not."""
    return tree.unpacked() if isinstance(tree, Packed) else tree


def packed_like(before: PyTree, tree: PyTree) -> PyTree:
    """The tree, packed if the one before was."""
    return Packed.of(tree) if isinstance(before, Packed) else tree


def _is_small(leaf: Array) -> bool:
    """Random keys are no numbers; and numbers that were Python's are of no kind of their own (JAX calls them weak)."""
    numbers = not jnp.issubdtype(leaf.dtype, jax.dtypes.extended) and not leaf.weak_type
    return numbers and leaf.size * leaf.dtype.itemsize <= SMALL
