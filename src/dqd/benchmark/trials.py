"""Searches on one function side by side: seeds, and searches that differ by numbers alone, are one program.

A program serves all functions of one size. Programs are compiled ahead in threads, each for launches of one length.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.benchmark.function import Field, Function
from dqd.runners.compiled import begin, iterate
from dqd.search.noise import LENGTHS
from dqd.search.search import Search, SearchState

Found = tuple[np.ndarray, np.ndarray]  # QD-score and coverage, each (searches, seeds, iterations)


@dataclass(frozen=True)
class Task:
    """Searches of one form on one function, each with every seed."""

    function: Function
    field: Field
    searches: tuple[Search, ...]
    archive: Archive  # empty
    seeds: int
    iterations: int
    ready: Ready  # how it is run: `compiled`, or in another way

    @property
    def length(self) -> int:
        """Iterations of a launch."""
        return next(length for length in LENGTHS if length <= self.iterations)

    @property
    def program(self) -> tuple[Any, ...]:
        """What tasks of one program have in common."""
        form = jax.tree.structure((self.searches[0], self.archive))
        return self.ready, self.function.size, self.field.scores, form, len(self.searches), self.seeds, self.length

    def arguments(self) -> tuple[Any, ...]:
        """Those of `begin`, the searches and seeds for every pair of them."""
        pairs = [(search, seed) for search in self.searches for seed in range(self.seeds)]
        searches = jax.tree.map(lambda *leaves: jnp.asarray(leaves, jnp.float32), *(search for search, _ in pairs))
        x0 = jnp.asarray(self.function.x0, jnp.float32)
        return searches, self.archive, x0, jnp.array([seed for _, seed in pairs]), self.field


Run = Callable[[Task], Found]
Ready = Callable[[Task], Run]


@dataclass(frozen=True)
class Program:
    begin: Callable[..., SearchState]
    launch: Callable[..., tuple[SearchState, Standing]]

    def run(self, task: Task) -> Found:
        arguments = task.arguments()
        state, archive, rows = self.begin(*arguments), task.archive.reported, []
        for _ in range(-(-task.iterations // task.length)):
            state, standing = self.launch(state, arguments[0], arguments[-1])
            rows.append(standing)
        every = jax.tree.map(lambda *words: np.concatenate(words, axis=1), *jax.device_get(rows))
        found, shape = every.metrics(archive.num_cells, archive.offset), (len(task.searches), task.seeds, -1)
        score, coverage = (each.reshape(shape) for each in (found.qd_score, found.coverage))
        return score[..., : task.iterations], coverage[..., : task.iterations]


class Programs:
    """Compiled in threads while others run."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.pool = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2))
        self.compiled: dict[tuple[Any, ...], Future[Run]] = {}
        for task in tasks:
            if task.program not in self.compiled:
                self.compiled[task.program] = self.pool.submit(task.ready, task)

    def of(self, task: Task) -> Run:
        return self.compiled[task.program].result()

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def compiled(task: Task) -> Run:
    arguments = task.arguments()
    start = jax.jit(jax.vmap(begin, in_axes=(0, None, None, 0, None))).lower(*arguments)
    state = jax.eval_shape(jax.vmap(begin, in_axes=(0, None, None, 0, None)), *arguments)
    launch = jax.jit(functools.partial(_launch, task.length), donate_argnums=0)
    return Program(start.compile(), launch.lower(state, arguments[0], arguments[-1]).compile()).run


def _launch(length: int, state: SearchState, searches: Search, field: Field) -> tuple[SearchState, Standing]:
    def one(search: Search, state: SearchState) -> tuple[SearchState, Standing]:
        after, rows, _ = iterate(search, state, field, jnp.asarray(length), batched=False, counted=length)
        return after, jax.tree.map(lambda words: words[:length], rows)

    return jax.vmap(one)(searches, state)
