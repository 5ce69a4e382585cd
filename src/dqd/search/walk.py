"""A search walked through on the host, for evaluations that happen outside the compiled program.

Every half-step is compiled by itself and overwrites the buffers of the state, so its cost does not depend on the number
of cells. `AskTell` hands the half-steps out one by one; the hosted runner walks through them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.metrics import Metrics, Standing
from dqd.inputs.arrays import filled
from dqd.search.noise import at, block_length, draw
from dqd.search.search import FIXED, Search, SearchState, no_evaluation
from dqd.types import Evaluation, Points, Proposal, PyTree, replace

init = jax.jit(Search.init, donate_argnames="archive")
ROWS = 64  # iterations whose metrics are worked out at once


class Walk:
    """A search in motion on the host. It takes over the buffers of the state that it is given.

    One round: `ask_dqd`, `tell_dqd` (which answers what to evaluate next), `tell`; before the first one, where the
    emitter has an initial population, `ask_initial` and `tell_initial`. What was asked for stays the same until told.
    """

    def __init__(self, search: Search, state: SearchState) -> None:
        self.iteration = int(state.iteration)  # iterations completed
        self.has_points = search.emitter.num_points > 0
        self.nothing = no_evaluation(state.archive.tessellation, state.x0)
        self._block = block_length(search, state)
        self._noise: tuple[int, Any] = (-1, None)  # a block of random numbers, and after which iteration it begins
        self._standings: list[Standing] = []  # after the last iterations
        self._rows: list[Metrics] = []  # after those before
        description, form = jax.tree.flatten(jax.tree.map(jnp.asarray, search))
        division = Division.of(state)
        self._programs = _Programs(form, division)
        self._state, fixed = division.divide(state)
        self._fixed = (description, fixed)
        self._begin(None)

    def _begin(self, points: Points | None) -> None:
        """Nothing told yet in this round."""
        self.points: Points | None = points
        self.proposal: Proposal | None = None

    # Before iteration 1 -----------------------------------------------------------------------------------------------

    def ask_initial(self) -> Array:
        if self.proposal is None:
            self.proposal = Proposal(self._programs.ask_initial(self._state, self._fixed), ())
        return self.proposal.solutions

    def tell_initial(self, evaluation: Evaluation) -> None:
        assert self.proposal is not None
        self._state, _ = self._programs.tell_initial(self._state, self._fixed, self.proposal.solutions, evaluation)
        self._begin(None)

    # One iteration ----------------------------------------------------------------------------------------------------

    def ask_dqd(self) -> Points:
        """Points at which the emitter wants jacobians; none for one without gradients."""
        if self.points is None:
            self.points = self._programs.ask_dqd(self._state, self._fixed, self._drawn(self.iteration))
        return self.points

    def tell_dqd(self, evaluation: Evaluation) -> Array:
        """Rows for all points, those that were not wanted included; the solutions to be evaluated next."""
        noise = self._drawn(self.iteration)
        self._state, proposal = self._programs.tell_dqd(self._state, self._fixed, self.points, evaluation, noise)
        self.proposal = proposal
        return proposal.solutions

    def tell(self, evaluation: Evaluation) -> None:
        noise = self._drawn(self.iteration + 1)
        self._state, (standing, points) = self._programs.tell(
            self._state, self._fixed, self.proposal, evaluation, noise
        )
        self.iteration += 1
        self._standings.append(standing)
        self._begin(points)
        if len(self._standings) == ROWS:
            self._settle()

    def _drawn(self, iteration: int) -> PyTree:
        """The block of random numbers for the iteration after this one."""
        begin = iteration - iteration % self._block
        if self._noise[0] != begin:
            self._noise = begin, self._programs.draw(self._state, self._fixed, begin)
        return self._noise[1]

    # What was found ---------------------------------------------------------------------------------------------------

    @property
    def state(self) -> SearchState:
        """A copy, which later half-steps do not touch."""
        return self._programs.copy(self._state, self._fixed)

    def release(self) -> SearchState:
        """The state itself; the walk ends."""
        return self._programs.division.join(self._state, self._fixed[1])

    @property
    def metrics(self) -> Metrics:
        """At this very moment, which may be within a round."""
        return self._programs.metrics(self._state, self._fixed)

    def rows(self) -> list[Metrics]:
        """The metrics after every iteration since this was last asked for: parts, each with an axis of iterations."""
        self._settle()
        rows, self._rows = self._rows, []
        return rows

    def _settle(self) -> None:
        """Many rows become metrics at once. There are always as many, so that one program does it."""
        count = len(self._standings)
        if count:
            stacked = jax.tree.map(lambda *leaves: filled(np.stack(leaves), ROWS), *self._standings)
            metrics = jax.device_get(self._programs.rows(self._state, self._fixed, stacked))
            self._rows.append(jax.tree.map(lambda values: values[:count], metrics))
            self._standings = []


@dataclass(frozen=True)
class Division:
    """A state as two lists of arrays, which a program takes sooner than a tree: what changes, and what never does."""

    form: Any
    fixed: tuple[bool, ...]

    @staticmethod
    def of(state: SearchState) -> Division:
        leaves, form = jax.tree_util.tree_flatten_with_path(state)
        return Division(form, tuple(jax.tree_util.keystr(path).startswith(FIXED) for path, _ in leaves))

    def divide(self, state: SearchState) -> tuple[list[Array], list[Array]]:
        leaves = list(zip(jax.tree.leaves(state), self.fixed, strict=True))
        return [leaf for leaf, fixed in leaves if not fixed], [leaf for leaf, fixed in leaves if fixed]

    def join(self, moving: Sequence[Array], fixed: Sequence[Array]) -> SearchState:
        moving_, fixed_ = iter(moving), iter(fixed)
        return jax.tree.unflatten(self.form, [next(fixed_ if is_fixed else moving_) for is_fixed in self.fixed])


@functools.lru_cache(maxsize=64)
class _Programs:
    """The half-steps of all searches of one form, each compiled when it is first needed."""

    def __init__(self, form: Any, division: Division) -> None:
        def reading(step: Callable[..., Any]) -> Callable[..., Any]:
            """step(search, state, *operands), compiled."""

            def program(state: list[Array], fixed: tuple[list[Array], list[Array]], *operands: Any) -> Any:
                return step(jax.tree.unflatten(form, fixed[0]), division.join(state, fixed[1]), *operands)

            program.__name__ = step.__name__
            return jax.jit(program)

        def writing(step: Callable[..., tuple[SearchState, Any]]) -> Callable[..., Any]:
            """The same for one that returns a new state, whose buffers become those of the old one, and more."""

            def program(state: list[Array], fixed: tuple[list[Array], list[Array]], *operands: Any) -> Any:
                new, more = step(jax.tree.unflatten(form, fixed[0]), division.join(state, fixed[1]), *operands)
                return division.divide(replace(new, tally=new.tally.carried()))[0], more

            program.__name__ = step.__name__
            return jax.jit(program, donate_argnums=0)

        self.division = division
        self.copy = reading(lambda search, state: state)
        self.metrics = reading(lambda search, state: state.archive.metrics)
        self.rows = reading(lambda search, state, standings: jax.vmap(state.archive.metrics_of)(standings))
        self.draw = reading(_draw)
        self.ask_initial, self.tell_initial = reading(Search.ask_initial), writing(_tell_initial)
        self.ask_dqd, self.tell_dqd, self.tell = reading(_ask_dqd), writing(_tell_dqd), writing(_tell)


def _tell_initial(
    search: Search, state: SearchState, solutions: Array, evaluation: Evaluation
) -> tuple[SearchState, None]:
    return search.tell_initial(state, solutions, evaluation), None


def _draw(search: Search, state: SearchState, begin: Array) -> PyTree:
    return draw(search, state, begin, block_length(search, state))


def _next(search: Search, state: SearchState, block: Any) -> PyTree:
    """The random numbers of the iteration that comes next."""
    return at(block, state.iteration % block_length(search, state))


def _ask_dqd(search: Search, state: SearchState, noise: Any) -> Points:
    return search.ask_dqd(state, _next(search, state, noise))


def _tell_dqd(
    search: Search, state: SearchState, points: Points, evaluation: Evaluation, noise: Any
) -> tuple[SearchState, Proposal]:
    state = search.tell_dqd(state, points, evaluation)
    return search.ask(state, points, evaluation, _next(search, state, noise))


def _tell(
    search: Search, state: SearchState, proposal: Proposal, evaluation: Evaluation, noise: Any
) -> tuple[SearchState, tuple[Standing, Points]]:
    """With the points of the next iteration, whose random numbers these are."""
    state = search.tell(state, proposal, evaluation)
    return state, (state.archive.standing, search.ask_dqd(state, _next(search, state, noise)))


def spread(evaluation: Evaluation, mask: np.ndarray) -> Evaluation:
    """Rows for the wanted points become rows for all, zeros for the others."""
    if mask.all():
        return evaluation

    def rows(wanted: Any) -> np.ndarray:
        every = np.zeros((mask.size, *wanted.shape[1:]), wanted.dtype)
        every[mask] = wanted
        return every

    return jax.tree.map(rows, evaluation)
