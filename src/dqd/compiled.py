"""The compiled runner: iterations scanned on the device in chunks whose buffers are donated, so the archive is never
copied; seeds run side by side by `vmap`. Draws are keyed by iteration number: the chunk length never changes a result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.apart import apart
from dqd.archives.archive import Archive
from dqd.domains.domain import Domain
from dqd.search import Search, SearchState, StepInfo, Tally

NOISE_BYTES = 64 * 2**20  # above this, random numbers are drawn in every iteration instead of once per chunk


@dataclass(frozen=True)
class Compiled:
    """One seed, or several side by side, on one device."""

    search: Search
    domain: Domain
    batched: bool
    longest = sys.maxsize  # iterations between two looks

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1; `seed` is (), or (seeds,) if batched."""
        return (start_seeds if self.batched else start_seed)(self.search, archive, x0, seed, self.domain)

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, StepInfo, Tally]:
        return run_chunk(self.search, state, self.domain, length=length, batched=self.batched)

    def close(self) -> None:
        pass


def iterate(
    search: Search, state: SearchState, domain: Domain, *, length: int, batched: bool
) -> tuple[SearchState, StepInfo, Tally]:
    """`length` iterations; the info of each, and the tally at the end."""

    def draw(state: SearchState) -> Any:
        return jax.vmap(lambda i: search.noise(state, i))(state.iteration + 1 + jnp.arange(length))

    def step(state: SearchState, noise: Any) -> tuple[SearchState, StepInfo]:
        noise = search.noise(state, state.iteration + 1) if noise is None else noise
        return search.step(state, domain, noise)

    draw, step = (jax.vmap(draw, out_axes=1), jax.vmap(step)) if batched else (draw, step)
    ahead = _bytes(jax.eval_shape(draw, state)) <= NOISE_BYTES
    state, infos = jax.lax.scan(step, state, draw(state) if ahead else None, length=length)
    return state, infos, state.tally


def begin(search: Search, archive: Archive, x0: Array, seed: Array, domain: Domain) -> SearchState:
    """The state before iteration 1, the initial population evaluated."""
    state = search.init(archive, x0, jax.random.key(seed))
    if not search.emitter.initial_population:
        return state
    solutions = search.ask_initial(state)
    evaluation = apart(seed >= 0, domain.evaluate, solutions)
    return search.tell_initial(state, solutions, evaluation.astype(x0.dtype))


run_chunk = jax.jit(iterate, static_argnames=("length", "batched"), donate_argnames="state")
start_seed = jax.jit(begin, donate_argnames="archive")
begin_seeds = jax.vmap(begin, in_axes=(None, None, None, 0, None))
start_seeds = jax.jit(begin_seeds)


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
