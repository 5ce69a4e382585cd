"""Several rounds of one search at a time, for evaluations of unequal length: the asynchronous, steady-state search.

Every round belongs to a copy of the emitter, with a state and random numbers of its own; all share one archive. A round
is what it always is: points, then solutions, judged in their order when the last of them is told. A slow evaluation
holds back its own round alone. With batches of one solution this is the steady state: each is judged as soon as it is
told, and the next one is proposed from what the archive holds then.

The round of copy i that begins after c rounds have ended takes its random numbers from (i, c), which is never the same
twice.
"""

from __future__ import annotations

import functools
import operator
from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives.metrics import Standing
from dqd.emitters.combine import Staggered
from dqd.search.jobs import Asked, Jobs
from dqd.search.motion import Division, Motion, Programs
from dqd.search.search import Search, SearchState
from dqd.search.walk import spread
from dqd.types import Evaluation, Points, Proposal, PyTree, replace


class Rounds(Motion):
    """A search with a `Staggered` emitter, in motion. Its jobs are told in any order; an iteration is a round.

    At most `most` rounds are begun in all. A state that is looked at holds the copies as they were before the rounds
    that are under way: whoever goes on from it asks for these anew.
    """

    def __init__(self, search: Search, state: SearchState, jobs: Jobs, initial: bool = False, most: int | None = None):
        super().__init__(_Programs, search, replace(state, emitter=()))
        assert isinstance(search.emitter, Staggered)
        self.jobs, self._most, self._begun = jobs, most, self.iteration
        self._copies = [jax.tree.map(operator.itemgetter(i), state.emitter) for i in range(search.emitter.copies)]
        self._idle: deque[int] = deque()
        if initial:
            solutions = self._programs.ask_initial(self._state, self._fixed)
            jobs.add(solutions, False, functools.partial(self._tell_initial, solutions))
        else:
            self._idle.extend(range(len(self._copies)))

    def ask(self, count: int) -> Asked | None:
        """The next jobs, `count` at most; None if every round waits for what was handed out."""
        while self.jobs.ready < count and self._idle and (self._most is None or self._begun < self._most):
            self._begin(self._idle.popleft())
        return self.jobs.ask(count)

    def _tell_initial(self, solutions: Any, evaluation: Evaluation) -> None:
        self._state, _ = self._programs.tell_initial(self._state, self._fixed, solutions, evaluation)
        self._idle.extend(range(len(self._copies)))

    def _begin(self, copy: int) -> None:
        self._begun += 1
        noise, points = self._programs.begin(self._state, self._fixed, self._copies[copy], copy)
        mask = np.asarray(points.mask)
        close = functools.partial(self._tell_dqd, copy, noise, points)
        if mask.any():
            self.jobs.add(np.asarray(points.solutions)[mask], True, close)
        else:
            close(self.nothing)

    def _tell_dqd(self, copy: int, noise: Any, points: Points, evaluation: Evaluation) -> None:
        told = spread(evaluation, np.asarray(points.mask))
        operands = (self._copies[copy], points, told, noise)
        self._state, (own, proposal) = self._programs.tell_dqd(self._state, self._fixed, *operands)
        self.jobs.add(proposal.solutions, False, functools.partial(self._tell, copy, own, proposal))

    def _tell(self, copy: int, own: Any, proposal: Proposal, evaluation: Evaluation) -> None:
        operands = (own, proposal, evaluation)
        self._state, (self._copies[copy], standing) = self._programs.tell(self._state, self._fixed, *operands)
        self._completed(standing)
        self._idle.append(copy)

    @property
    def state(self) -> SearchState:
        return replace(super().state, emitter=self._emitter())

    def release(self) -> SearchState:
        return replace(super().release(), emitter=self._emitter())

    def _emitter(self) -> PyTree:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *self._copies)


@functools.lru_cache(maxsize=64)
class _Programs(Programs):
    """The half-steps of one copy. Its own state is never overwritten: a round may have to begin anew."""

    def __init__(self, form: Any, division: Division) -> None:
        super().__init__(form, division)
        self.begin = self.reading(_begin)
        self.tell_dqd, self.tell = self.writing(_tell_dqd), self.writing(_tell)


def _alone(search: Search, state: SearchState, own: Any) -> tuple[Search, SearchState]:
    """The search of one copy."""
    assert isinstance(search.emitter, Staggered)
    return replace(search, emitter=search.emitter.emitter), replace(state, emitter=own)


def _begin(search: Search, state: SearchState, own: Any, copy: Any) -> tuple[PyTree, Points]:
    search, state = _alone(search, state, own)
    noise = search.noise(replace(state, key=jax.random.fold_in(state.key, copy)), state.iteration + 1)
    return noise, search.ask_dqd(state, noise)


def _tell_dqd(
    search: Search, state: SearchState, own: Any, points: Points, evaluation: Evaluation, noise: Any
) -> tuple[SearchState, tuple[PyTree, Proposal]]:
    search, state = _alone(search, state, own)
    state, proposal = search.ask(search.tell_dqd(state, points, evaluation), points, evaluation, noise)
    return replace(state, emitter=()), (state.emitter, proposal)


def _tell(
    search: Search, state: SearchState, own: Any, proposal: Proposal, evaluation: Evaluation
) -> tuple[SearchState, tuple[PyTree, Standing]]:
    search, state = _alone(search, state, own)
    state = search.tell(state, proposal, evaluation)
    return replace(state, emitter=()), (state.emitter, state.standing)
