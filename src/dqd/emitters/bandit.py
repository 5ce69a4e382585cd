"""Multi-emitter search: a bandit says which emitters of a pool are asked (Cully 2021).

Of emitter i, s_i solutions were judged so far, of which a_i changed the archive. A place that becomes free goes to the
one with the highest upper confidence bound (UCB1, Auer et al. 2002),

    a_i / s_i + zeta sqrt(ln(sum_j s_j) / s_i)

and before that to those that were never asked. With `reselect="terminated"` a place becomes free when its emitter
starts anew, so that whoever follows a path follows it to its end; an emitter that never does has it for one iteration.
With "all" every place is free in every iteration.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import REJECTED, Archive
from dqd.archives.threshold import Threshold
from dqd.emitters.combine import Combined
from dqd.emitters.scale import Choose
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace, static

Reselect = Literal["terminated", "all"]


@pytree
class BanditState:
    members: tuple[Any, ...]  # a state of each
    active: Array  # (m,) who is asked
    judged: Array  # (m,) solutions of each
    changed: Array  # (m,) of these, how many changed the archive


@pytree
class Bandit:
    """`active` at a time of the emitters of a pool, all of the same sizes."""

    pool: Combined
    active: int = static()
    reselect: Reselect = static(default="terminated")
    zeta: float = 0.05

    @property
    def num_points(self) -> int:
        return self.active * self.pool.emitters[0].num_points

    @property
    def batch_size(self) -> int:
        return self.active * self.pool.emitters[0].batch_size

    @property
    def initial_population(self) -> int:
        return self.pool.initial_population

    @property
    def threshold(self) -> Threshold | None:
        return self.pool.threshold

    @property
    def follows_measures(self) -> bool:
        return self.pool.follows_measures

    def noise(self, key: Array, n: int, k: int) -> tuple[Any, ...]:
        return self.pool.noise(key, n, k)

    def init(self, x0: Array, k: int, bounds: Bounds) -> BanditState:
        size = len(self.pool.emitters)
        none = jnp.zeros(size, x0.dtype)
        return BanditState(self.pool.init(x0, k, bounds), jnp.arange(size) < self.active, none, none + 0)

    def points(self, state: BanditState, archive: Archive, noise: tuple[Any, ...]) -> Points:
        parts = [
            self._member(who, lambda i, e: e.points(state.members[i], archive, noise[i])) for who in self._asked(state)
        ]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def ask(
        self, state: BanditState, archive: Archive, points: Points, evaluation: Evaluation, noise: tuple[Any, ...]
    ) -> tuple[BanditState, Proposal]:
        members, proposals = state.members, []
        for place, who in enumerate(self._asked(state)):
            its_points, its_evaluation = self._of_place(place, (points, evaluation))
            members, proposal = self._ask_one(who, members, archive, its_points, its_evaluation, noise)
            proposals.append(proposal)
        solutions = jnp.concatenate([proposal.solutions for proposal in proposals])
        drawn = tuple(proposal.drawn for proposal in proposals)
        return replace(state, members=members), Proposal(solutions, drawn)

    def _ask_one(
        self, who: Array, members: tuple[Any, ...], archive: Archive, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[tuple[Any, ...], Proposal]:
        """One of them; of the others, nothing was drawn."""

        def ask(i: int) -> tuple[Any, Proposal]:
            return self.pool.emitters[i].ask(members[i], archive, points, evaluation, noise[i])

        shapes = [jax.eval_shape(lambda i=i: ask(i)[1].drawn) for i in range(len(members))]
        nothing = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), tuple(shapes))

        def asked(i: int, _: Any) -> tuple[tuple[Any, ...], Proposal]:
            own, proposal = ask(i)
            return _put(members, i, own), replace(proposal, drawn=_put(nothing, i, proposal.drawn))

        return self._member(who, asked)

    def tell(self, state: BanditState, archive: Archive, drawn: tuple[Any, ...], result: AddResult) -> BanditState:
        members, judged, changed = state.members, state.judged, state.changed
        for place, who in enumerate(self._asked(state)):
            own = self._of_place(place, result)
            members = self._tell_one(who, members, archive, drawn[place], own)
            judged = judged.at[who].add(len(own.status))
            changed = changed.at[who].add(jnp.sum(own.status != REJECTED))
        after = replace(state, members=members, judged=judged, changed=changed)
        return replace(after, active=self._chosen(after, self._free(state.members, members, state.active)))

    def _tell_one(
        self, who: Array, members: tuple[Any, ...], archive: Archive, drawn: tuple[Any, ...], result: AddResult
    ) -> tuple[Any, ...]:
        return self._member(who, lambda i, e: _put(members, i, e.tell(members[i], archive, drawn[i], result)))

    def _free(self, before: tuple[Any, ...], after: tuple[Any, ...], active: Array) -> Array:
        """Whose places are free, (m,): of those who started anew just now, or never do."""
        if self.reselect == "all":
            return active
        pairs = zip(self.pool.emitters, before, after, strict=True)
        ended = [_starts(emitter, new) > _starts(emitter, old) for emitter, old, new in pairs]
        never = np.array([not emitter.restarts(own) for emitter, own in zip(self.pool.emitters, after, strict=True)])
        return jnp.stack(ended) | never

    def _chosen(self, state: BanditState, free: Array) -> Array:
        """Who is asked next, (m,)."""
        stays = state.active & ~free
        bound = state.changed / state.judged + self.zeta * jnp.sqrt(jnp.log(jnp.sum(state.judged)) / state.judged)
        hope = jnp.where(stays, -jnp.inf, jnp.where(state.judged > 0, bound, jnp.inf))
        later = np.arange(hope.size)[None] > np.arange(hope.size)[:, None]  # of equals the later one, as in pyribs
        above = (hope[None] > hope[:, None]) | ((hope[None] == hope[:, None]) & later)
        return stays | (jnp.sum(above, axis=1) < self.active - jnp.sum(stays))

    def _asked(self, state: BanditState) -> Array:
        """The numbers of those who are, (active,), in the order of the pool."""
        return jnp.nonzero(state.active, size=self.active)[0]

    def _member(self, who: Array, function: Any) -> PyTree:
        """function(i, emitter i) for the one who is asked; the others do nothing."""
        branches = [lambda i=i, emitter=emitter: function(i, emitter) for i, emitter in enumerate(self.pool.emitters)]
        return jax.lax.switch(who, branches)

    def _of_place(self, place: int, tree: Any) -> PyTree:
        """The rows of one place."""
        return jax.tree.map(lambda leaf: jnp.split(leaf, self.active)[place], tree)

    def restarts(self, state: BanditState) -> dict[str, Array]:
        return self.pool.restarts(state.members)

    def scaled(self, choose: Choose) -> Bandit:
        return replace(self, pool=self.pool.scaled(choose))

    def account(self, state: BanditState) -> str:
        """Who made which share of the solutions, and how many of them changed the archive: of all seeds together."""
        judged, changed = (
            np.asarray(counts).reshape(-1, len(self.pool.emitters)).sum(axis=0)
            for counts in (state.judged, state.changed)
        )
        shares, rates = judged / max(judged.sum(), 1), changed / np.maximum(judged, 1)
        each = zip(range(1, len(shares) + 1), shares, rates, strict=True)
        words = [f"{i}: {share:.0%}, of which {rate:.1%} changed the archive" for i, share, rate in each]
        return f"emitters of the pool, shares of the solutions: {'; '.join(words)}"


def _starts(emitter: Any, state: Any) -> Array:
    return sum(emitter.restarts(state).values(), jnp.zeros((), jnp.int32))


def _put(parts: tuple[Any, ...], i: int, part: Any) -> tuple[Any, ...]:
    return *parts[:i], part, *parts[i + 1 :]
