"""Contestants `dqd` and `floor`, in the environment that runs the harness.

`dqd` is the compiled runner that `dqd.illuminate` calls, chunk by chunk, with its default chunk length and precision.
CMA-ES is the authors' ("dqd2021"), which pyribs computes as well.
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.compiled import run_chunk
from dqd.domains import Arm, Domain, LinearProjection
from dqd.emitters.emitter import Emitter
from dqd.emitters.presets import cma_me, cma_mega
from dqd.run import illuminate
from dqd.search import Search as Description
from floor import CHUNK as FLOOR_CHUNK
from floor import Floor
from protocol import Search, serve
from settings import BATCH, GRID, LEARNING_RATE, Settings

CHUNK = inspect.signature(illuminate).parameters["chunk"].default


class OurSearch:
    """`run_chunk` again and again; after each the history comes to the host, as in `illuminate`."""

    def __init__(self, domain: Domain, emitter: Emitter, grid: Grid, n: int, seed: int) -> None:
        self.domain = domain
        self.search = Description(emitter)
        # Compiled, so that no two fields share a buffer: run_chunk takes the buffers over.
        self.state = jax.jit(self.search.init)(Archive.empty(grid, n), jnp.zeros(n), jax.random.key(seed))

    def advance(self, iterations: int) -> None:
        if iterations % CHUNK:
            raise ValueError(f"iterations: expected a multiple of {CHUNK}, got {iterations}")
        for _ in range(iterations // CHUNK):
            self.state, infos, _ = run_chunk(self.search, self.state, self.domain, length=CHUNK, batched=False)
            jax.tree.map(np.asarray, infos)
        jax.block_until_ready(self.state)

    def score(self) -> tuple[float, float]:
        """Counted afresh from the cells, not taken from the running sums."""
        stored = np.asarray(self.state.archive.objective, np.float64)
        occupied = stored[stored > -np.inf]
        return float(occupied.sum()) / stored.size, 100 * occupied.size / stored.size


def make(contestant: str, settings: Settings, seed: int) -> Search:
    domain = domain_of(settings)
    search = OurSearch(domain, emitter_of(settings), domain.grid(GRID[0]), settings.n, seed)
    if contestant == "dqd":
        return search
    search.advance(10 * CHUNK)
    points = search.state.archive.sample(jax.random.key(seed), FLOOR_CHUNK)
    return Floor(domain, points, settings.sigma, seed)


def domain_of(settings: Settings) -> Arm | LinearProjection:
    if settings.domain == "arm":
        return Arm(settings.n)
    return LinearProjection(settings.domain.removeprefix("lp-"), settings.n)


def emitter_of(settings: Settings) -> Emitter:
    if settings.algorithm == "cma-me":
        return cma_me(settings.sigma, batch_size=BATCH, rank_one="dqd2021")
    return cma_mega(settings.sigma, LEARNING_RATE, batch_size=BATCH, rank_one="dqd2021")


if __name__ == "__main__":
    serve(make, ["jax", "jaxlib", "numpy"], granularity=max(CHUNK, FLOOR_CHUNK), warm_up=max(CHUNK, FLOOR_CHUNK))
