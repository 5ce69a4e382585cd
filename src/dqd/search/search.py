"""A search is an archive and an emitter in motion. One iteration is four pure half-steps with two evaluations between:

    ask_dqd -> points          evaluate with jacobians   tell_dqd (points enter the archive)
    ask     -> solutions       evaluate                  tell     (solutions enter the archive, the emitter learns)

`step` is their composition. The compiled runner scans `step`; the host shell calls the same half-steps around any
evaluator. All random numbers of iteration i come from the search key folded with i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.competition import can_enter
from dqd.archives.metrics import Standing
from dqd.compiler.random import normals
from dqd.compiler.unfused import apart
from dqd.domains.domain import Domain
from dqd.emitters.emitter import Emitter
from dqd.inputs.bounds import Box
from dqd.inputs.halves import rounded
from dqd.search.packing import opened, packed_like
from dqd.types import AddResult, Evaluation, Points, Proposal, PyTree, all_finite, how_many, pytree, replace

# What of a state no search ever changes.
FIXED = (
    ".key",
    ".x0",
    *(
        f"{archive}.{name}"
        for archive in (".archive", ".archive.results")
        for name in (
            "qd_score_offset",
            *(f"competition.{its}" for its in ("tessellation", "cells", "learning_rate", "minimum")),
        )
    ),
)


@pytree
class SearchState:
    """Everything that changes: one pytree, one checkpoint."""

    archive: Archive
    emitter: Any
    key: Array
    x0: Array  # (n,)
    iteration: Array  # iterations completed
    tally: Tally

    @property
    def reported(self) -> Archive:
        """The archive whose metrics are told."""
        return self.archive.reported

    @property
    def standing(self) -> Standing:
        """Its figures, and what they took."""
        archive = self.reported
        return Standing.of(archive.total, archive.count, archive.best, self.tally.spent)


@pytree
class Tally:
    """What a search counts. Counts outgrow 32 bits: each is high * 2**20 + low. Read is the sum over all seeds."""

    high: Array  # (..., 7)
    low: Array  # (..., 7)
    steep: Array  # (..., 1 + k) rows of the jacobian that were not zero at some point; those that nobody follows, too

    @staticmethod
    def zero(steep: Sequence[bool] = ()) -> Tally:
        return Tally(jnp.zeros(7, jnp.int32), jnp.zeros(7, jnp.int32), jnp.asarray(steep, bool))

    def plus(self, *counts: Array | int) -> Tally:
        """More of each count, in the order of the properties below; those left out stay."""
        counts += (0,) * (self.low.size - len(counts))
        return replace(self, low=self.low + jnp.stack([jnp.asarray(count, jnp.int32) for count in counts]))

    def carried(self) -> Tally:
        """The same counts with room for more: whoever launches iterations carries, once a launch."""
        return replace(self, high=self.high + (self.low >> 20), low=self.low & (2**20 - 1))

    @property
    def candidates(self) -> int:
        """Solutions judged, the initial population included."""
        return self._read(0)

    @property
    def gradients(self) -> int:
        """Points with a jacobian."""
        return self._read(1)

    @property
    def lost_jacobians(self) -> int:
        """Points whose jacobian alone was not finite."""
        return self._read(2)

    @property
    def finite(self) -> int:
        """Candidates of which all numbers were finite."""
        return self._read(3)

    @property
    def outside(self) -> int:
        """Of these, the ones whose measures lay outside the grid."""
        return self._read(4)

    @property
    def infeasible(self) -> int:
        """Candidates that their evaluator kept out."""
        return self._read(5)

    @property
    def further(self) -> int:
        """Evaluations beyond one for each candidate: repetitions, and those that estimate jacobians."""
        return self._read(6)

    @property
    def evaluations(self) -> int:
        """All evaluations."""
        return self.candidates + self.further

    @property
    def nonfinite(self) -> int:
        """Candidates that were not finite, a point once whatever of it was not."""
        return self.candidates - self.finite - self.infeasible + self.lost_jacobians

    @property
    def flat_rows(self) -> list[int]:
        """Rows of the jacobian that were zero at every point at which they were to be followed."""
        steep = np.asarray(self.steep)
        return np.flatnonzero(~steep.reshape(-1, steep.shape[-1]).any(axis=0)).tolist() if self.gradients else []

    @property
    def spent(self) -> Array:
        """All evaluations in two words, (..., 2)."""
        return jnp.stack([words[..., 0] + words[..., 6] for words in (self.high, self.low)], axis=-1)

    def each(self, *numbers: int) -> np.ndarray:
        """The sum of some counts, by default all evaluations: of every seed."""
        which = list(numbers or (0, 6))
        high, low = (np.asarray(words, np.int64)[..., which].sum(axis=-1) for words in (self.high, self.low))
        return (high << 20) + low

    def _read(self, number: int) -> int:
        return int(self.each(number).sum())


@pytree
class Search:
    """The description of a search. `bounds` are those of solutions and hold in every phase.

    Archives hold solutions, x. The emitter proposes in coordinates z of the search's own, in which it is also shown
    elites, points and jacobians; they are others only where the bounds say so.
    """

    emitter: Emitter
    bounds: Box | None = None
    initial_sigma: float = 1.0

    def init(self, archive: Archive, x0: Array, key: Array) -> SearchState:
        k, sides = archive.num_measures, None
        ignored = not getattr(self.emitter, "follows_measures", True)
        tally = Tally.zero([False, *[ignored] * k])
        if self.bounds is not None:
            x0, sides = jnp.clip(x0, self.bounds.lower, self.bounds.upper), self.bounds.sides
        emitter = self.emitter.init(self._outward(x0), k, sides)
        return SearchState(archive, emitter, key, x0, jnp.zeros((), jnp.int32), tally)

    # Before iteration 1 -----------------------------------------------------------------------------------------------

    def ask_initial(self, state: SearchState) -> Array:
        """x0 + initial_sigma N(0, I), whatever the emitter's own sigma is."""
        shape = (self.emitter.initial_population, state.x0.size)
        drawn = normals(jax.random.fold_in(state.key, 0), shape, state.x0.dtype)
        return self._inside(state, self._outward(state.x0) + self.initial_sigma * drawn)

    def tell_initial(self, state: SearchState, solutions: Array, evaluation: Evaluation) -> SearchState:
        archive, result = state.archive.add(solutions, evaluation, iteration=0)
        return replace(state, archive=archive, tally=_counted(state, result, evaluation))

    # One iteration ----------------------------------------------------------------------------------------------------

    def noise(self, state: SearchState, iteration: Array) -> PyTree:
        """The random numbers of one iteration; the first has number 1."""
        key = jax.random.fold_in(state.key, iteration)
        noise = self.emitter.noise(key, state.x0.size, state.archive.num_measures)
        reals = jnp.floating
        return jax.tree.map(lambda x: x.astype(state.x0.dtype) if jnp.issubdtype(x.dtype, reals) else x, noise)

    def ask_dqd(self, state: SearchState, noise: Any) -> Points:
        points = self.emitter.points(opened(state.emitter), self._shown(state.archive), noise)
        return replace(points, solutions=self._inside(state, points.solutions))

    def tell_dqd(self, state: SearchState, points: Points, evaluation: Evaluation) -> SearchState:
        if self.emitter.num_points == 0:
            return state
        stored = points.mask if points.known is None else points.mask & ~points.known
        archive, result = state.archive.add(points.solutions, evaluation, state.iteration + 1, stored)
        return replace(state, archive=archive, tally=_counted(state, result, evaluation, points))

    def ask(
        self, state: SearchState, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[SearchState, Proposal]:
        emitter, proposal = apart(_always(state), self._ask, state.emitter, state.archive, points, evaluation, noise)
        return replace(state, emitter=emitter), replace(proposal, solutions=self._inside(state, proposal.solutions))

    def _ask(
        self, own: Any, archive: Archive, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[PyTree, Proposal]:
        if self.bounds is not None and evaluation.jacobian is not None:
            evaluation = replace(evaluation, jacobian=self.bounds.chained(evaluation.jacobian, points.solutions))
        points = replace(points, solutions=self._outward(points.solutions))
        new, proposal = self.emitter.ask(opened(own), self._shown(archive), points, evaluation, noise)
        return packed_like(own, new), proposal

    def tell(self, state: SearchState, proposal: Proposal, evaluation: Evaluation) -> SearchState:
        iteration = state.iteration + 1
        archive, result = state.archive.add(proposal.solutions, evaluation, iteration)
        told = replace(result, objective=evaluation.objective, measures=evaluation.measures)

        def learnt(own: Any, *situation: Any) -> PyTree:
            return packed_like(own, self.emitter.tell(opened(own), *situation))

        emitter = apart(_always(state), learnt, state.emitter, self._shown(archive), proposal.drawn, told)
        tally = _counted(state, result, evaluation)
        return replace(state, archive=archive, emitter=emitter, iteration=iteration, tally=tally)

    def step(self, state: SearchState, domain: Domain, noise: Any) -> SearchState:
        """One iteration around a domain, whose evaluations JAX can trace."""
        points = self.ask_dqd(state, noise)
        evaluation = no_evaluation(state.archive.num_measures, state.x0)
        if self.emitter.num_points:
            evaluation = apart(_always(state), domain.evaluate_with_jacobian, points.solutions)
            evaluation = evaluation.astype(state.x0.dtype)
        state = self.tell_dqd(state, points, evaluation)
        state, proposal = self.ask(state, points, evaluation, noise)
        evaluation = apart(_always(state), domain.evaluate, proposal.solutions)
        return self.tell(state, proposal, evaluation.astype(state.x0.dtype))

    def restarts(self, state: SearchState) -> dict[str, int]:
        """How often the emitters started anew, by reason."""
        return {reason: int(count) for reason, count in self.emitter.restarts(state.emitter).items()}

    def account(self, state: SearchState) -> str:
        """What the emitter tells of its choices, for people; most have nothing to tell."""
        return self.emitter.account(state.emitter) if hasattr(self.emitter, "account") else ""

    def _inside(self, state: SearchState, proposed: Array) -> Array:
        """What is proposed, as it is evaluated and kept: within the bounds, rounded as the archive's solutions are."""
        if self.bounds is not None and self.bounds.by == "clip":  # which rounds nothing
            proposed = self.bounds.inside(proposed)
        elif self.bounds is not None:
            proposed = apart(_always(state), self.bounds.inside, proposed)
        return rounded(proposed, state.archive.solutions.dtype)

    def _outward(self, solutions: Array) -> Array:
        return solutions if self.bounds is None else self.bounds.outward(solutions)

    def _shown(self, archive: Archive) -> Archive:
        """The archive, its elites as the emitter sees them."""
        return archive if self.bounds is None or not self.bounds.is_free else replace(archive, seen=self.bounds)


def _counted(state: SearchState, result: AddResult, evaluation: Evaluation, points: Points | None = None) -> Tally:
    """A batch has been judged; of points, only those that were wanted count."""
    finite, tally = result.cell < state.archive.num_cells, state.tally
    if points is not None and points.known is not None:
        known = points.known if evaluation.feasible is None else points.known & evaluation.feasible
        finite = finite | can_enter(evaluation.objective, evaluation.measures, known)
    none = jnp.zeros_like(finite)
    wanted = ~none if points is None else points.mask
    gradients = lost = infeasible = none
    if points is not None and evaluation.jacobian is not None:
        gradients = wanted
        lost = wanted & finite & ~jnp.all(all_finite(evaluation.jacobian), axis=-1)
        steep = wanted[:, None] & jnp.any(evaluation.jacobian != 0, axis=-1)
        tally = replace(tally, steep=tally.steep | jnp.any(steep, axis=0))
    if evaluation.feasible is not None:
        infeasible = wanted & ~evaluation.feasible
    counts = how_many(jnp.stack([wanted, gradients, lost, finite, result.outside, infeasible], axis=1))
    if evaluation.evaluations is None:
        return tally.plus(*counts)
    return tally.plus(*counts, jnp.sum(jnp.where(wanted, evaluation.evaluations - 1, 0), dtype=jnp.int32))


def _always(state: SearchState) -> Array:
    return state.iteration >= 0  # true, but not for the compiler


def no_evaluation(k: int, x0: Array) -> Evaluation:
    """What is known of zero points."""
    return Evaluation(jnp.zeros(0, x0.dtype), jnp.zeros((0, k), x0.dtype), jnp.zeros((0, 1 + k, x0.size), x0.dtype))
