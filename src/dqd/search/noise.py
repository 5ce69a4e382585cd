"""The random numbers of a search, drawn for a block of iterations at once: many small draws take longer than one.

Blocks begin at multiples of their length, so a number does not depend on where a chunk of iterations begins or ends.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.search.packing import Packed
from dqd.search.search import Search, SearchState
from dqd.types import PyTree

LENGTHS = (250, 25, 5, 1)  # iterations; each is a multiple of the next
LARGEST = 4 * 2**20  # bytes; more would leave a processor's caches
LARGEST_COUNTED = 256 * 2**20  # bytes on a GPU, which makes many numbers as fast as few


def block_length(search: Search, state: SearchState, seeds: int = 1, counted: int = 0) -> int:
    """Iterations of a block: fewer where an iteration needs many numbers. `counted` is how many are known to come."""
    longest = counted or LENGTHS[0]
    largest = LARGEST if jax.default_backend() == "cpu" else LARGEST_COUNTED
    noise = jax.eval_shape(search.noise, state, 1)
    size = seeds * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(noise))
    return next(length for length in LENGTHS if length <= longest and (length * size <= largest or length == 1))


def draw(search: Search, state: SearchState, begin: Array, length: int) -> PyTree:
    """Random numbers of the `length` iterations after `begin`."""
    return jax.vmap(lambda i: Packed.of(search.noise(state, begin + 1 + i)))(jnp.arange(length))


def at(block: Any, place: Array) -> PyTree:
    """Of a block, the numbers of one iteration."""
    return jax.tree.map(lambda numbers: jax.lax.dynamic_index_in_dim(numbers, place, keepdims=False), block).unpacked()
