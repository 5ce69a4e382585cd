"""The hosted runner: a search walked through on the host, half-step by half-step, its evaluations elsewhere."""

from __future__ import annotations

import dataclasses
import os

import jax
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Standing
from dqd.domains.domain import Domain
from dqd.inputs.bounds import numpy_sides
from dqd.inputs.evaluator import Evaluator, Sampled, Whole
from dqd.inputs.fields import Shapes
from dqd.search.search import Search, SearchState, Tally
from dqd.search.walk import Walk, init, spread
from dqd.workers.batches import Evaluations
from dqd.workers.padded import OnHost
from dqd.workers.workers import Workers


class Hosted:
    """One seed, its evaluations elsewhere."""

    grain = 1  # a launch is a multiple of it
    chunk = 1  # iterations after which `until` is asked

    def __init__(self, search: Search, evaluations: Evaluations) -> None:
        self.search, self.evaluations = search, evaluations
        self._walk: Walk | None = None
        self._released: SearchState | None = None  # by that walk

    @staticmethod
    def of(
        search: Search,
        problem: Domain | Evaluator,
        k: int,
        workers: Workers,
        out: str | os.PathLike[str] | None,
        fields: Shapes | None = None,
    ) -> Hosted:
        """For an evaluator, or for a domain whose evaluations the workers are to do. Failures are listed in `out`."""
        evaluator = OnHost(problem, workers.rows_per_call) if isinstance(problem, Domain) else problem
        bounds = numpy_sides(search.bounds)
        if workers.rounds > 1 and isinstance(evaluator, Sampled):
            evaluator = Whole(evaluator, bounds)
        return Hosted(search, Evaluations(evaluator, workers, k, out, bounds, fields))

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1, the initial population evaluated."""
        walk = Walk(self.search, init(self.search, archive, x0, jax.random.key(seed)))
        if self.search.emitter.initial_population:
            walk.tell_initial(self.evaluations.evaluate(walk.ask_initial(), 0, "initial population"))
        return walk.release()

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Standing, Tally]:
        """`length` iterations; the metrics after each, and the tally at the end."""
        if self._walk is None or state is not self._released:
            self._walk = Walk(self.search, state)
        for _ in range(length):
            _iterate(self._walk, self.evaluations)
        self._released = self._walk.release()
        return self._released, self._walk.rows(), jax.tree.map(np.asarray, self._released.tally)

    def close(self) -> None:
        self.evaluations.close()


def _iterate(walk: Walk, evaluations: Evaluations) -> None:
    iteration = walk.iteration + 1
    points, evaluation = walk.ask_dqd(), walk.nothing
    if walk.has_points:
        mask = np.asarray(points.mask)
        asked = points.solutions if mask.all() else np.asarray(points.solutions)[mask]
        evaluation = spread(evaluations.evaluate(asked, iteration, "points"), mask)
    solutions = walk.tell_dqd(evaluation)
    walk.tell(evaluations.evaluate(solutions, iteration, "solutions"))


def described(problem: Domain | Evaluator, workers: Workers | None) -> object:
    """The problem in the settings of a run. Where it is cut into rows, their number may decide how it rounds."""
    if isinstance(problem, Domain) and workers is None:
        return problem
    return {"evaluator": named(problem), "rows": (workers or Workers()).rows_per_call}


def named(problem: Domain | Evaluator) -> object:
    """What can be described is itself; of another evaluator its name, the same whenever the program is started."""
    if isinstance(problem, Domain) or dataclasses.is_dataclass(problem):
        return problem
    return f"{type(problem).__module__}.{type(problem).__qualname__}"
