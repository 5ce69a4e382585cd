"""Contestants `dqd`, `floor`, `dqd-ask-tell` and `dqd-evaluator`, in the environment that runs the harness.

`dqd` is the compiled runner that `dqd.illuminate` calls, launch by launch, with its default precision. The last two
evaluate the very NumPy functions that pyribs evaluates: in a loop of the user's own, and handed to `dqd.illuminate`.
CMA-ES is the authors' ("dqd2021"), which pyribs computes as well.
"""

import jax
import jax.numpy as jnp
import numpy as np

import numpy_domains
from dqd import AskTell, Workers
from dqd.archives.archive import Archive
from dqd.domains import Arm, Domain, LinearProjection
from dqd.emitters.emitter import Emitter
from dqd.emitters.presets import cma_me, cma_mega
from dqd.runners.compiled import LONGEST, run_chunk
from dqd.runners.hosted import Hosted
from dqd.search.search import Search as Description
from dqd.search.walk import init
from dqd.tessellations.grid import Grid
from floor import CHUNK as FLOOR_CHUNK
from floor import Floor
from protocol import Search, serve
from settings import BATCH, LEARNING_RATE, Settings


class OurSearch:
    """Launch after launch; after each the history comes to the host, as in `illuminate`."""

    def __init__(self, domain: Domain, emitter: Emitter, grid: Grid, n: int, seed: int) -> None:
        self.domain = domain
        self.search = Description(emitter)
        self.state = init(self.search, Archive.empty(grid, n), jnp.zeros(n), jax.random.key(seed))

    def advance(self, iterations: int) -> None:
        for done in range(0, iterations, LONGEST):
            self.launch(min(LONGEST, iterations - done))
        jax.block_until_ready(self.state)

    def launch(self, length: int) -> None:
        self.state, rows, _ = run_chunk(self.search, self.state, self.domain, length, batched=False)
        jax.tree.map(np.asarray, rows)

    def score(self) -> tuple[float, float]:
        return _score(self.state.archive)


class AskTellSearch:
    """The loop that a user of NumPy writes."""

    def __init__(self, settings: Settings, grid: Grid, seed: int) -> None:
        self.domain = numpy_domains.Timed(numpy_domains.domain_of(settings.domain, settings.n))
        self.search = AskTell(emitter_of(settings), grid, x0=np.zeros(settings.n, np.float32), seed=seed)

    def advance(self, iterations: int) -> None:
        end = self.search.iteration + iterations
        while self.search.iteration < end:
            points = self.search.ask_dqd()
            if len(points):
                self.search.tell_dqd(*self.domain.evaluate(points), self.domain.jacobian(points[0])[None])
            self.search.tell(*self.domain.evaluate(self.search.ask()))
        jax.block_until_ready(self.search._walk._state)

    def score(self) -> tuple[float, float]:
        return self.search.qd_score, self.search.coverage


class EvaluatorSearch(OurSearch):
    """The same functions handed to `illuminate`: its runner, launch by launch."""

    def __init__(self, settings: Settings, grid: Grid, seed: int) -> None:
        super().__init__(None, emitter_of(settings), grid, settings.n, seed)
        self.domain = numpy_domains.Timed(numpy_domains.domain_of(settings.domain, settings.n))
        self.runner = Hosted.of(self.search, NumPyEvaluator(self.domain), grid.num_measures, Workers(), None)

    def launch(self, length: int) -> None:
        self.state, _, _ = self.runner.launch(self.state, length)


class NumPyEvaluator:
    def __init__(self, domain: numpy_domains.Timed) -> None:
        self.evaluate, self.jacobian = domain.evaluate, domain.jacobian

    def evaluate_with_jacobian(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *self.evaluate(solutions), np.stack([self.jacobian(solution) for solution in solutions])


def _score(archive: Archive) -> tuple[float, float]:
    """Counted afresh from the cells, not taken from the running sums."""
    stored = np.asarray(archive.objective, np.float64)
    occupied = stored[stored > -np.inf]
    return float(occupied.sum()) / stored.size, 100 * occupied.size / stored.size


def make(contestant: str, settings: Settings, seed: int) -> Search:
    domain = domain_of(settings)
    grid = domain.grid(settings.side)
    if contestant == "dqd-ask-tell":
        return AskTellSearch(settings, grid, seed)
    if contestant == "dqd-evaluator":
        return EvaluatorSearch(settings, grid, seed)
    search = OurSearch(domain, emitter_of(settings), grid, settings.n, seed)
    if contestant == "dqd":
        return search
    search.advance(10 * LONGEST)
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
    serve(make, ["jax", "jaxlib", "numpy"], granularity=FLOOR_CHUNK, warm_up=FLOOR_CHUNK)
