"""The compiled runner: iterations in a loop on the device, in chunks whose buffers are donated, so the archive is never
copied; seeds run side by side by `vmap`.

The length of a chunk is a number that the program is given: one program serves every length, and none changes a result.
Random numbers are drawn in blocks that begin at multiples of their length, whichever chunk they are needed in. A GPU
would wait for the host after each iteration of such a loop, so there the longest launches have a program of their own,
unless loops are within its graphs (`side_by_side`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.compiler.flags import side_by_side
from dqd.compiler.unfused import apart
from dqd.domains.domain import Domain
from dqd.search.noise import at, block_length, draw
from dqd.search.packing import Packed, opened
from dqd.search.search import Search, SearchState, Tally
from dqd.types import replace

LONGEST = 250  # iterations of one launch: rows that come back


@dataclass(frozen=True)
class Compiled:
    """One seed, or several side by side, on one device."""

    search: Search
    domain: Domain
    batched: bool
    chunk = 250  # iterations after which `until` is asked

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1; `seed` is (), or (seeds,) if batched."""
        return (start_seeds if self.batched else start_seed)(self.search, archive, x0, seed, self.domain)

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Standing, Tally]:
        return run_chunk(self.search, state, self.domain, length, batched=self.batched, counted=counted(length))

    @property
    def grain(self) -> int:
        return grain()

    def close(self) -> None:
        pass


def grain() -> int:
    return 1 if jax.devices()[0].platform == "cpu" or side_by_side() else LONGEST


def counted(length: int, longest: int | None = None) -> int:
    """The length, where it is part of the program, as that of the longest launches is; else 0."""
    return length if length == (longest or grain()) > 1 else 0


def iterate(
    search: Search, state: SearchState, domain: Domain, length: Array, *, batched: bool, counted: int = 0
) -> tuple[SearchState, Standing, Tally]:
    """`length` iterations, at most LONGEST; of the rows, one after each iteration, the first `length` count.

    `counted`, if not 0, is that length as part of the program.
    """
    each = jax.vmap if batched else (lambda function: function)
    one = jax.tree.map(lambda leaf: leaf[0], state) if batched else state
    block = block_length(search, one, state.iteration.size, counted)
    first = one.iteration  # iterations done; the same for all seeds
    state = each(lambda state: replace(state, emitter=Packed.of(state.emitter)))(state)
    blank = jax.tree.map(lambda like: jnp.zeros((LONGEST, *like.shape), like.dtype), state.standing)

    def advance(carry: tuple[Array, SearchState, Standing]) -> tuple[Array, SearchState, Standing]:
        """To the end of a block of random numbers, or of the launch."""
        done, state, rows = carry
        begin = done if counted else done - done % block
        noise = each(lambda state: draw(search, state, begin, block))(state)

        def step(done: Array, carry: tuple[SearchState, Standing]) -> tuple[SearchState, Standing]:
            state, rows = carry
            state = each(lambda state, noise: search.step(state, domain, at(noise, done - begin)))(state, noise)
            return state, jax.tree.map(functools.partial(_with_row, done - first), rows, state.standing)

        if counted:
            return done + block, *jax.lax.fori_loop(0, block, lambda i, carry: step(begin + i, carry), (state, rows))
        end = jnp.minimum(begin + block, first + length)
        return end, *jax.lax.fori_loop(done, end, step, (state, rows))

    if counted:
        _, state, rows = jax.lax.fori_loop(0, counted // block, lambda _, carry: advance(carry), (first, state, blank))
    else:
        _, state, rows = jax.lax.while_loop(lambda carry: carry[0] < first + length, advance, (first, state, blank))
    emitter = each(opened)(state.emitter)
    state = replace(state, emitter=emitter, tally=state.tally.carried())
    return state, rows, state.tally


def _with_row(place: Array, rows: Array, new: Array) -> Array:
    return jax.lax.dynamic_update_index_in_dim(rows, new, place, 0)


def begin(search: Search, archive: Archive, x0: Array, seed: Array, domain: Domain) -> SearchState:
    """The state before iteration 1, the initial population evaluated."""
    state = search.init(archive, x0, jax.random.key(seed))
    if not search.emitter.initial_population:
        return state
    solutions = search.ask_initial(state)
    evaluation = apart(seed >= 0, domain.evaluate, solutions)
    return search.tell_initial(state, solutions, evaluation.astype(x0.dtype))


class _Launch:
    """`iterate`, compiled. Only when it is needed is JAX asked for its devices, by which the compiler's options go."""

    @functools.cached_property
    def _program(self) -> Any:
        sizes = ("batched", "counted")
        return jax.jit(iterate, static_argnames=sizes, donate_argnames="state", compiler_options=side_by_side())

    def __call__(self, *operands: Any, **sizes: Any) -> tuple[SearchState, Standing, Tally]:
        return self._program(*operands, **sizes)

    def lower(self, *operands: Any, **sizes: Any) -> Any:
        return self._program.lower(*operands, **sizes)


run_chunk = _Launch()
start_seed = jax.jit(begin, donate_argnames="archive")
begin_seeds = jax.vmap(begin, in_axes=(None, None, None, 0, None))
start_seeds = jax.jit(begin_seeds)
