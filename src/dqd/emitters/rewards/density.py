"""Density descent search (Lee, Palaparthi, Fontaine, Tjanaka & Nikolaidis 2024): go where few solutions have been.

The density of measure space is estimated from a buffer of measures b_j met so far, by Gaussian kernels,

    p(m) = 1 / (N h^k (2 pi)^(k/2)) sum_j exp(-|m - b_j|^2 / (2 h^2)),     worth(x) = -log p(m(x))

with measures as shares of their ranges, and before the candidates themselves count. The logarithm orders them alike and
still tells apart what lies far from all. The buffer is a uniform sample of all measures so far (reservoir sampling,
Vitter 1985, algorithm R): while there is room, everything; after t of them the next one takes a random place of t + 1,
if there is one of that number. Candidates of a batch come in a random order.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.rivals import rivals
from dqd.emitters.ranges import unit
from dqd.types import AddResult, pytree, static


@pytree
class DensityState:
    buffer: Array  # (N, k) shares of ranges
    met: Array  # () how many measures there were so far


@pytree
class Density:
    """`bandwidth` is h, as a share of the range of a measure; `size` is N."""

    bandwidth: float
    size: int = static(default=10_000)

    def noise(self, key: Array, batch: int, k: int) -> tuple[Any, Any]:
        order, place = jax.random.split(key)
        return {"order": jax.random.uniform(order, (batch,)), "place": jax.random.uniform(place, (batch,))}, ()

    def init(self, k: int, dtype: jnp.dtype) -> DensityState:
        return DensityState(jnp.zeros((self.size, k), dtype), jnp.zeros((), jnp.int32))

    def worth(self, state: DensityState, archive: Archive, result: AddResult) -> Array:
        assert result.measures is not None
        return -self.log_density(state, unit(archive, result.measures))

    def log_density(self, state: DensityState, shares: Array) -> Array:
        """log p of rows (b, k); all the same while the buffer is empty."""
        squares = sum((shares[:, j, None] - state.buffer[:, j]) ** 2 for j in range(shares.shape[1]))  # (b, N)
        exponents = jnp.where(jnp.arange(self.size) < state.met, -squares / (2 * self.bandwidth**2), -jnp.inf)
        count = jnp.clip(state.met, 1, self.size).astype(shares.dtype)
        volume = shares.shape[1] * (jnp.log(self.bandwidth) + 0.5 * math.log(2 * math.pi))
        found = jax.nn.logsumexp(exponents, axis=1) - jnp.log(count) - volume
        return jnp.where(state.met > 0, found, 0)

    def learn(self, state: DensityState, archive: Archive, result: AddResult, valid: Array, noise: Any) -> DensityState:
        assert result.measures is not None
        order, uniform = noise[0]["order"], noise[0]["place"]
        turn = jnp.argsort(jnp.argsort(jnp.where(valid, order, 2)))  # valid ones first
        number = state.met + turn  # of each among all measures so far, from 0
        somewhere = (uniform * (number + 1)).astype(jnp.int32)
        place = jnp.where(number < self.size, number, somewhere)
        place = jnp.where(valid & (place < self.size), place, self.size)  # beyond the last: dropped
        last = rivals(place).best(place < self.size, turn.astype(uniform.dtype))
        row = jnp.where(last, place, self.size)
        buffer = state.buffer.at[row].set(unit(archive, result.measures), mode="drop")
        return DensityState(buffer, jnp.minimum(state.met + jnp.sum(valid, dtype=jnp.int32), 2**30))
