"""Discount model search (Tjanaka, Chen, Fontaine & Nikolaidis 2026): CMA-MAE whose thresholds are a network's.

Where measures are many, most candidates fall into few cells, and a threshold for each cell cannot tell them apart. A
network d(m) over measures can. With a learning rate a, after every batch it is fitted to

    d(m_i) + a max(f_i - d(m_i), 0)   at the measures of all candidates,   worth(x) = f(x) - d(m(x)) before,
    minimum                           at the middles of some empty cells,

so that it rises where solutions are found and stays low where none are. It begins at the minimum everywhere. Objectives
are scaled from [minimum, maximum] to [0, 1] and measures from their ranges to [-1, 1] within.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.random import uniforms
from dqd.emitters.rewards.network import EPOCHS, Network
from dqd.emitters.rewards.rewarded import unit
from dqd.types import AddResult, pytree, static


@pytree
class Discount:
    """`rate` is a; `empty` is how many empty cells are drawn for every fit."""

    rate: float
    minimum: float
    maximum: float
    empty: int = static(default=100)

    def noise(self, key: Array, batch: int, k: int) -> tuple[Any, Any]:
        candidates, cells, empty = jax.random.split(key, 3)
        rest = {
            "cells": jax.random.uniform(cells, (self.empty,)),
            "orders": uniforms(empty, (self.empty, EPOCHS)),
        }
        return uniforms(candidates, (batch, EPOCHS)), rest

    def init(self, k: int, dtype: jnp.dtype) -> Network:
        return Network.zero(k, dtype)

    def worth(self, state: Network, archive: Archive, result: AddResult) -> Array:
        """f - d, as shares of maximum - minimum."""
        assert result.measures is not None
        return self._share(result) - state(2 * unit(archive, result.measures) - 1)

    def learn(self, state: Network, archive: Archive, result: AddResult, valid: Array, noise: Any) -> Network:
        assert result.measures is not None
        candidates, rest = noise
        met = jnp.where(valid[:, None], 2 * unit(archive, result.measures) - 1, 0)
        gain = jnp.maximum(jnp.where(valid, self.worth(state, archive, result), 0), 0)
        middles, exist = _empty(archive, rest["cells"], met.dtype)
        return state.fitted(
            rows=jnp.concatenate([met, 2 * unit(archive, middles) - 1]),
            targets=jnp.concatenate([state(met) + self.rate * gain, jnp.zeros_like(rest["cells"])]),
            weights=jnp.concatenate([valid, exist]).astype(met.dtype),
            orders=jnp.concatenate([candidates, rest["orders"]]),
        )

    def _share(self, result: AddResult) -> Array:
        assert result.objective is not None
        return (result.objective - self.minimum) / (self.maximum - self.minimum)


def _empty(archive: Archive, uniform: Array, dtype: Any) -> tuple[Array, Array]:
    """The middles of random empty cells (e, k), and how many of them there are: no more than there are such cells."""
    tessellation: Any = archive.tessellation
    if not hasattr(tessellation, "middles"):
        raise TypeError(
            f"tessellation: this algorithm looks at empty cells; {type(tessellation).__name__} has no method middles "
            "to say where they are. Take a dqd.Grid or a dqd.CVT"
        )
    empty = jnp.isneginf(archive.objective)
    places = jnp.cumsum(empty, dtype=jnp.int32)
    which = (uniform * places[-1]).astype(jnp.int32)
    cells = jnp.searchsorted(places, which, side="right").astype(jnp.int32)
    inside = jnp.minimum(cells, archive.num_cells - 1)
    return tessellation.middles(inside).astype(dtype), jnp.arange(uniform.size) < places[-1]
