"""A search walked through on the host, for evaluations that happen outside the compiled program.

Every half-step is compiled by itself and overwrites the buffers of the state, so its cost does not depend on the number
of cells. `AskTell` hands the half-steps out one by one; the hosted runner walks through them.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from jax import Array

from dqd.archives.metrics import Standing
from dqd.search.motion import Division, Motion, Programs
from dqd.search.noise import at, block_length, draw
from dqd.search.packing import Packed, opened
from dqd.search.search import Search, SearchState
from dqd.types import Evaluation, Points, Proposal, PyTree, replace

init = jax.jit(Search.init, donate_argnames="archive")


class Walk(Motion):
    """A search in motion on the host. It takes over the buffers of the state that it is given.

    One round: `ask_dqd`, `tell_dqd` (which answers what to evaluate next), `tell`; before the first one, where the
    emitter has an initial population, `ask_initial` and `tell_initial`. What was asked for stays the same until told.
    """

    def __init__(self, search: Search, state: SearchState) -> None:
        super().__init__(_Programs, search, state)
        self.has_points = search.emitter.num_points > 0
        self._block = block_length(search, state)
        self._noise: tuple[int, Any] = (-1, None)  # a block of random numbers, and after which iteration it begins
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
        self._completed(standing)
        self._begin(points)

    def _drawn(self, iteration: int) -> PyTree:
        """The block of random numbers for the iteration after this one."""
        begin = iteration - iteration % self._block
        if self._noise[0] != begin:
            self._noise = begin, self._programs.draw(self._state, self._fixed, begin)
        return self._noise[1]


@functools.lru_cache(maxsize=64)
class _Programs(Programs):
    """The half-steps of all searches of one form."""

    def __init__(self, form: Any, division: Division) -> None:
        super().__init__(form, division)
        self.draw = self.reading(_draw)
        self.ask_dqd, self.tell_dqd = self.reading(_ask_dqd), self.writing(_tell_dqd)
        self.tell = self.writing(_tell)


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
    state, proposal = search.ask(state, points, evaluation, _next(search, state, noise))
    return state, replace(proposal, drawn=Packed.of(proposal.drawn))


def _tell(
    search: Search, state: SearchState, proposal: Proposal, evaluation: Evaluation, noise: Any
) -> tuple[SearchState, tuple[Standing, Points]]:
    """With the points of the next iteration, whose random numbers these are."""
    proposal = replace(proposal, drawn=opened(proposal.drawn))
    state = search.tell(state, proposal, evaluation)
    return state, (state.standing, search.ask_dqd(state, _next(search, state, noise)))


def spread(evaluation: Evaluation, mask: np.ndarray) -> Evaluation:
    """Rows for the wanted points become rows for all, zeros for the others."""
    if mask.all():
        return evaluation

    def rows(wanted: Any) -> np.ndarray:
        every = np.zeros((mask.size, *wanted.shape[1:]), wanted.dtype)
        every[mask] = wanted
        return every

    return jax.tree.map(rows, evaluation)
