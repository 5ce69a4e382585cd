"""The hosted runner: a search walked through on the host, half-step by half-step, its evaluations elsewhere."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.metrics import Metrics
from dqd.domains.domain import Domain, Evaluator
from dqd.search.search import Search, SearchState, Tally
from dqd.search.walk import Walk, init, spread
from dqd.tessellations.tessellation import Tessellation
from dqd.workers.batches import Evaluations
from dqd.workers.padded import OnHost
from dqd.workers.worker import OfFunction
from dqd.workers.workers import Workers


@dataclass(frozen=True)
class Elsewhere:
    """What a user says of evaluations that are not part of the compiled program, as `illuminate` explains it."""

    evaluator: Evaluator | Callable[[np.ndarray], Any] | None
    workers: Workers
    out: str | os.PathLike[str] | None

    def __post_init__(self) -> None:
        if not self.wanted and self.workers != Workers():
            raise ValueError(
                "rows, on_failure and insecure: they concern evaluations outside the compiled program; "
                "give an evaluator or an executor as well"
            )
        if self.evaluator is not None and not (callable(self.evaluator) or isinstance(self.evaluator, Evaluator)):
            raise TypeError(
                "evaluator: expected a function of a batch (b, n), or an object with evaluate and "
                f"evaluate_with_jacobian, got {type(self.evaluator).__name__}"
            )

    @property
    def wanted(self) -> bool:
        return self.evaluator is not None or self.workers.executor is not None

    def named(self, problem: Any) -> object:
        """What can be described is itself; of another evaluator its name, the same whenever the program is started."""
        if isinstance(problem, Domain | functools.partial) or dataclasses.is_dataclass(problem):
            return problem
        kind = problem if hasattr(problem, "__qualname__") else type(problem)
        return f"{kind.__module__}.{kind.__qualname__}"

    def described(self, problem: Any) -> object:
        """The problem in the settings of a run. Where it is cut into rows, their number may decide how it rounds."""
        if not self.wanted:
            return problem
        return {"evaluator": self.named(problem), "rows": self.workers.rows_per_call}

    def runner(self, search: Search, problem: Any, tessellation: Tessellation) -> Hosted:
        """`problem` is the evaluator, or a domain whose evaluations the workers are to do."""
        if isinstance(problem, Domain):
            problem = OnHost(problem, self.workers.rows_per_call)
        evaluator = problem if hasattr(problem, "evaluate") else OfFunction(problem)
        return Hosted(search, Evaluations(evaluator, self.workers, tessellation.num_measures, self.out))


@dataclass(frozen=True)
class Hosted:
    """One seed, its evaluations elsewhere."""

    search: Search
    evaluations: Evaluations
    grain = 1  # a launch is a multiple of it
    chunk = 1  # iterations after which `until` is asked

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1, the initial population evaluated."""
        walk = Walk(self.search, init(self.search, archive, x0, jax.random.key(seed)))
        if self.search.emitter.initial_population:
            walk.tell_initial(self.evaluations.evaluate(walk.ask_initial(), 0, "initial population"))
        return walk.release()

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, Metrics, Tally]:
        """`length` iterations; the metrics after each, and the tally at the end."""
        walk = Walk(self.search, state)
        for _ in range(length):
            _iterate(walk, self.evaluations)
        rows, state = walk.rows(), walk.release()
        return state, jax.tree.map(lambda *parts: np.concatenate(parts), *rows), jax.tree.map(np.asarray, state.tally)

    def close(self) -> None:
        self.evaluations.close()


def _iterate(walk: Walk, evaluations: Evaluations) -> None:
    iteration = walk.iteration + 1
    points, evaluation = walk.ask_dqd(), walk.nothing
    if walk.has_points:
        mask = np.asarray(points.mask)
        wanted = evaluations.evaluate(np.asarray(points.solutions)[mask], iteration, "points")
        evaluation = spread(wanted, mask)
    solutions = walk.tell_dqd(evaluation)
    walk.tell(evaluations.evaluate(solutions, iteration, "solutions"))
