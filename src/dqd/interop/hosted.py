"""The hosted runner: a search walked through on the host, half-step by half-step, its evaluations elsewhere."""

from __future__ import annotations

import dataclasses
import functools
import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd import half_steps
from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.domains.domain import Domain, Evaluator
from dqd.interop.domain import OnHost
from dqd.interop.evaluations import Evaluations
from dqd.interop.executor import engine_of
from dqd.interop.failures import Failures
from dqd.search import Search, SearchState, StepInfo, Tally, no_evaluation
from dqd.types import Evaluation, Points


@dataclass(frozen=True)
class Elsewhere:
    """What a user says of evaluations that are not part of the compiled program, as `illuminate` explains it."""

    evaluator: Any
    executor: Any
    chunk: int
    timeout: float | None
    on_failure: str
    insecure: bool
    out: str | os.PathLike[str] | None

    def __post_init__(self) -> None:
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, int | np.integer) or self.chunk < 1:
            raise ValueError(f"evaluation_chunk: expected a whole number, at least 1, got {self.chunk!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout: expected seconds, above 0, got {self.timeout!r}")
        if self.on_failure not in ("raise", "skip"):
            raise ValueError(f'on_failure: expected "raise" or "skip", got {self.on_failure!r}')
        if not self.wanted and (self.timeout is not None or self.on_failure == "skip"):
            raise ValueError("timeout and on_failure: they concern evaluator= and executor=; give one of these as well")
        if self.evaluator is not None and not (callable(self.evaluator) or isinstance(self.evaluator, Evaluator)):
            raise TypeError(
                "evaluator: expected a function of a batch (b, n), or an object with evaluate and "
                f"evaluate_with_jacobian, got {type(self.evaluator).__name__}"
            )

    @property
    def wanted(self) -> bool:
        return self.evaluator is not None or self.executor is not None

    def named(self, problem: Any) -> Any:
        """What can be described is itself; of another evaluator its name, the same whenever the program is started."""
        if isinstance(problem, Domain | functools.partial) or dataclasses.is_dataclass(problem):
            return problem
        kind = problem if hasattr(problem, "__qualname__") else type(problem)
        return f"{kind.__module__}.{kind.__qualname__}"

    def described(self, problem: Any) -> Any:
        """The problem in the settings of a run. Where it is cut into chunks, their size may decide how it rounds."""
        if not self.wanted:
            return problem
        return {"evaluator": self.named(problem), "evaluation_chunk": int(self.chunk)}

    def runner(self, search: Search, problem: Any, tessellation: Grid) -> Hosted:
        """`problem` is the evaluator, or a domain whose evaluations the executor is to do."""
        evaluator = OnHost(problem, int(self.chunk)) if isinstance(problem, Domain) else problem
        evaluations = Evaluations(
            evaluator,
            engine_of(self.executor, evaluator, self.timeout, self.insecure),
            k=tessellation.num_measures,
            chunk=int(self.chunk),
            timeout=self.timeout,
            skip=self.on_failure == "skip",
            failures=Failures(self.out),
        )
        return Hosted(search, evaluations)


@dataclass(frozen=True)
class Hosted:
    """One seed, its evaluations elsewhere."""

    search: Search
    evaluations: Evaluations
    longest = 1  # iterations between two looks: an evaluation may be long

    def start(self, archive: Archive, x0: Array, seed: Array) -> SearchState:
        """The state before iteration 1, the initial population evaluated."""
        state = half_steps.init(self.search, archive, x0, jax.random.key(seed))
        if not self.search.emitter.initial_population:
            return state
        solutions = half_steps.ask_initial(self.search, state)
        evaluation = self.evaluations.evaluate(solutions, 0, "initial population")
        return half_steps.tell_initial(self.search, state, solutions, evaluation)

    def launch(self, state: SearchState, length: int) -> tuple[SearchState, StepInfo, Tally]:
        """`length` iterations; the info of each, and the tally at the end."""
        infos = []
        for _ in range(length):
            state, info = _iterate(self.search, state, self.evaluations)
            infos.append(info)
        return state, jax.tree.map(lambda *parts: np.stack(parts), *infos), jax.tree.map(np.asarray, state.tally)

    def close(self) -> None:
        self.evaluations.engine.close()
        self.evaluations.failures.write()


def _iterate(search: Search, state: SearchState, evaluations: Evaluations) -> tuple[SearchState, StepInfo]:
    iteration = int(state.iteration) + 1
    noise = half_steps.noise(search, state, jnp.asarray(iteration, state.iteration.dtype))
    points = half_steps.ask_dqd(search, state, noise)
    evaluation = _evaluate_points(state, points, evaluations, iteration)
    state = half_steps.tell_dqd(search, state, points, evaluation)
    state, proposal = half_steps.ask(search, state, points, evaluation, noise)
    return half_steps.tell(search, state, proposal, evaluations.evaluate(proposal.solutions, iteration, "solutions"))


def _evaluate_points(state: SearchState, points: Points, evaluations: Evaluations, iteration: int) -> Evaluation:
    """Only the wanted ones are evaluated."""
    mask = np.asarray(points.mask)
    if not mask.size:
        return no_evaluation(state.archive.tessellation, state.x0)
    evaluation = evaluations.evaluate(np.asarray(points.solutions)[mask], iteration, "points")
    return jax.tree.map(lambda part: half_steps.spread(part, mask), evaluation)
