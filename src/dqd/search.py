"""A search is an archive and an emitter in motion. One iteration is four pure half-steps with two evaluations between:

    ask_dqd -> points          evaluate with jacobians   tell_dqd (points enter the archive)
    ask     -> solutions       evaluate                  tell     (solutions enter the archive, the emitter learns)

`step` is their composition. The compiled runner scans `step`; the host shell calls the same half-steps around any
evaluator. All random numbers of iteration i come from the search key folded with i.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.apart import apart
from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.archives.metrics import Metrics
from dqd.domains.domain import Evaluator
from dqd.emitters.emitter import Emitter
from dqd.types import Counter, Evaluation, Points, Proposal, pytree, replace


@pytree
class SearchState:
    """Everything that changes: one pytree, one checkpoint."""

    archive: Archive
    emitter: Any
    key: Array
    x0: Array  # (n,)
    iteration: Array  # iterations completed
    evaluations: Counter
    gradients: Counter  # points with a jacobian
    lost_jacobians: Counter  # points whose jacobian alone was not finite

    @property
    def tally(self) -> Tally:
        return Tally(self.evaluations, self.archive.judged, self.gradients, self.lost_jacobians)


@pytree
class Tally:
    """What the health of a search is told from."""

    evaluations: Counter
    judged: Counter
    gradients: Counter
    lost_jacobians: Counter

    @property
    def nonfinite(self) -> int:
        """Evaluations that were not finite, a point once whatever of it was not."""
        return int(self.evaluations) - int(self.judged) + int(self.lost_jacobians)


@pytree
class StepInfo:
    """For humans; never feeds the next step."""

    qd_score: Array
    coverage: Array
    best: Array
    mean: Array

    @staticmethod
    def of(metrics: Metrics) -> StepInfo:
        return StepInfo(metrics.qd_score, metrics.coverage, metrics.best, metrics.mean)


@pytree
class Search:
    """The description of a search. `bounds` are (lower, upper) for solutions and hold in every phase."""

    emitter: Emitter
    bounds: tuple[Array, Array] | None = None
    initial_sigma: float = 1.0

    def init(self, archive: Archive, x0: Array, key: Array) -> SearchState:
        x0 = self._inside(x0)
        emitter = self.emitter.init(x0, archive.tessellation.num_measures)
        counters = (Counter.zero() for _ in range(3))
        return SearchState(archive, emitter, key, x0, jnp.zeros((), jnp.int32), *counters)

    # Before iteration 1 -----------------------------------------------------------------------------------------------

    def ask_initial(self, state: SearchState) -> Array:
        """x0 + initial_sigma N(0, I), whatever the emitter's own sigma is."""
        shape = (self.emitter.initial_population, state.x0.size)
        normals = jax.random.normal(jax.random.fold_in(state.key, 0), shape, state.x0.dtype)
        return self._inside(state.x0 + self.initial_sigma * normals)

    def tell_initial(self, state: SearchState, solutions: Array, evaluation: Evaluation) -> SearchState:
        archive, _ = state.archive.add(solutions, evaluation, iteration=0)
        return self._count(replace(state, archive=archive), evaluation)

    # One iteration ----------------------------------------------------------------------------------------------------

    def noise(self, state: SearchState, iteration: Array) -> Any:
        """The random numbers of one iteration; the first has number 1."""
        key = jax.random.fold_in(state.key, iteration)
        noise = self.emitter.noise(key, state.x0.size, state.archive.tessellation.num_measures)
        return jax.tree.map(lambda numbers: numbers.astype(state.x0.dtype), noise)

    def ask_dqd(self, state: SearchState, noise: Any) -> Points:
        points = self.emitter.points(state.emitter, state.archive, noise)
        return replace(points, solutions=self._inside(points.solutions))

    def tell_dqd(self, state: SearchState, points: Points, evaluation: Evaluation) -> SearchState:
        if self.emitter.num_points == 0:
            return state
        archive, _ = state.archive.add(points.solutions, evaluation, state.iteration + 1, points.mask)
        state = replace(state, archive=archive, gradients=state.gradients + jnp.sum(points.mask, dtype=jnp.int32))
        return self._count(state, evaluation, points.mask)

    def ask(
        self, state: SearchState, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[SearchState, Proposal]:
        emitter, proposal = apart(
            _always(state), self.emitter.ask, state.emitter, state.archive, points, evaluation, noise
        )
        return replace(state, emitter=emitter), replace(proposal, solutions=self._inside(proposal.solutions))

    def tell(self, state: SearchState, proposal: Proposal, evaluation: Evaluation) -> tuple[SearchState, StepInfo]:
        iteration = state.iteration + 1
        archive, result = state.archive.add(proposal.solutions, evaluation, iteration)
        emitter = apart(_always(state), self.emitter.tell, state.emitter, archive, proposal.drawn, result)
        state = replace(state, archive=archive, emitter=emitter, iteration=iteration)
        return self._count(state, evaluation), StepInfo.of(archive.metrics)

    def step(self, state: SearchState, evaluator: Evaluator, noise: Any) -> tuple[SearchState, StepInfo]:
        """One iteration around an evaluator that JAX can trace."""
        points = self.ask_dqd(state, noise)
        evaluation = no_evaluation(state.archive.tessellation, state.x0)
        if self.emitter.num_points:
            evaluation = apart(_always(state), evaluator.evaluate_with_jacobian, points.solutions)
            evaluation = evaluation.astype(state.x0.dtype)
        state = self.tell_dqd(state, points, evaluation)
        state, proposal = self.ask(state, points, evaluation, noise)
        evaluation = apart(_always(state), evaluator.evaluate, proposal.solutions)
        return self.tell(state, proposal, evaluation.astype(state.x0.dtype))

    def restarts(self, state: SearchState) -> Array:
        """Restarts so far, by dqd.emitters.RESTART_REASONS."""
        return self.emitter.restarts(state.emitter)

    def _inside(self, solutions: Array) -> Array:
        return solutions if self.bounds is None else jnp.clip(solutions, *self.bounds)

    def _count(self, state: SearchState, evaluation: Evaluation, mask: Array | None = None) -> SearchState:
        wanted = jnp.ones(evaluation.objective.shape, bool) if mask is None else mask
        evaluations = state.evaluations + jnp.sum(wanted, dtype=jnp.int32)
        if evaluation.jacobian is None:
            return replace(state, evaluations=evaluations)
        finite = jnp.isfinite(evaluation.objective) & jnp.all(jnp.isfinite(evaluation.measures), axis=-1)
        bad = wanted & finite & ~jnp.all(jnp.isfinite(evaluation.jacobian), axis=(1, 2))
        lost = state.lost_jacobians + jnp.sum(bad, dtype=jnp.int32)
        return replace(state, evaluations=evaluations, lost_jacobians=lost)


def _always(state: SearchState) -> Array:
    return state.iteration >= 0  # true, but not for the compiler


def no_evaluation(tessellation: Grid, x0: Array) -> Evaluation:
    """What is known of zero points."""
    k = tessellation.num_measures
    return Evaluation(jnp.zeros(0, x0.dtype), jnp.zeros((0, k), x0.dtype), jnp.zeros((0, 1 + k, x0.size), x0.dtype))
