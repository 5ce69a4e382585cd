"""Several emitters that take turns on one archive: who lately gained most goes on.

A turn is some iterations in a row, for an emitter that follows a path needs them to show what it can. After it the gain
of that emitter, per iteration, is half what it was thought to be and half what it just was. Then

    next = argmax_i  gain_i + waited_i / PATIENCE * max_j |gain_j|,   waited_i in turns

so that who gains less is asked again all the same: after PATIENCE turns at the latest, the sooner the less behind.
An emitter that gains a share r of the best one's has one turn of 1 + PATIENCE (1 - r), which costs at most a share
1 / (1 + PATIENCE) of the pace of the best. All have the same batch, so equal iterations cost the same.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.emitters.combine import Combined
from dqd.emitters.gain import gained
from dqd.emitters.scale import Choose
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace, static

TURN = 5  # iterations
PATIENCE = 12  # turns


@pytree
class SharedState:
    members: tuple[Any, ...]  # a state of each
    turn: Array  # () whose it is
    left: Array  # () iterations of it that are left
    so_far: Array  # () what was gained in it
    gains: Array  # (m,) per iteration, lately
    waited: Array  # (m,) turns
    iterations: Array  # (m,) of each


@pytree
class Shared:
    """One at a time of the emitters of `all`, which have the same sizes. `names` are for people."""

    all: Combined
    names: tuple[str, ...] = static()

    def __post_init__(self) -> None:
        sizes = [(emitter.num_points, emitter.batch_size) for emitter in self.all.emitters]
        if len(set(sizes)) != 1:
            raise ValueError(f"emitters: those that take turns need equal (num_points, batch_size), got {sizes}")

    @property
    def num_points(self) -> int:
        return self.all.emitters[0].num_points

    @property
    def batch_size(self) -> int:
        return self.all.emitters[0].batch_size

    @property
    def initial_population(self) -> int:
        return self.all.initial_population

    @property
    def follows_measures(self) -> bool:
        return self.all.follows_measures

    def noise(self, key: Array, n: int, k: int) -> tuple[Any, ...]:
        return self.all.noise(key, n, k)

    def init(self, x0: Array, k: int, bounds: Bounds) -> SharedState:
        zero, none = jnp.zeros(len(self.names), x0.dtype), jnp.zeros(len(self.names), jnp.int32)
        return SharedState(self.all.init(x0, k, bounds), none[0], none[0] + TURN, zero[0], zero, none, none)

    def points(self, state: SharedState, archive: Archive, noise: tuple[Any, ...]) -> Points:
        return self._member(state.turn, lambda i, e: e.points(state.members[i], archive, noise[i]))

    def ask(
        self, state: SharedState, archive: Archive, points: Points, evaluation: Evaluation, noise: tuple[Any, ...]
    ) -> tuple[SharedState, Proposal]:
        def ask(i: int) -> tuple[Any, Proposal]:
            return self.all.emitters[i].ask(state.members[i], archive, points, evaluation, noise[i])

        nothing = [jax.tree.map(_zeros, jax.eval_shape(lambda i=i: ask(i)[1].drawn)) for i in range(len(self.names))]

        def turn(i: int) -> tuple[tuple[Any, ...], Proposal]:
            own, proposal = ask(i)
            return _with(state.members, i, own), replace(proposal, drawn=_with(nothing, i, proposal.drawn))

        members, proposal = self._member(state.turn, lambda i, _: turn(i))
        return replace(state, members=members), proposal

    def tell(self, state: SharedState, archive: Archive, drawn: tuple[Any, ...], result: AddResult) -> SharedState:
        members = self._member(
            state.turn,
            lambda i, e: _with(state.members, i, e.tell(state.members[i], archive, drawn[i], result)),
        )
        whose, over = jnp.arange(len(self.names)) == state.turn, state.left == 1
        so_far = state.so_far + jnp.sum(gained(result, archive))
        newest = jnp.where(state.iterations < TURN, so_far / TURN, 0.5 * state.gains + 0.5 * so_far / TURN)
        after = replace(
            state,
            members=members,
            gains=jnp.where(over & whose & jnp.isfinite(newest), newest, state.gains),
            waited=jnp.where(over, jnp.where(whose, 0, state.waited + 1), state.waited),
            iterations=state.iterations + whose,
        )
        return replace(
            after,
            turn=jnp.where(over, _next(after), state.turn),
            left=jnp.where(over, TURN, state.left - 1),
            so_far=jnp.where(over, 0, so_far),
        )

    def _member(self, turn: Array, function: Any) -> PyTree:
        """function(i, emitter i) for the one whose turn it is; the others do nothing."""
        branches = [lambda i=i, emitter=emitter: function(i, emitter) for i, emitter in enumerate(self.all.emitters)]
        return jax.lax.switch(turn, branches)

    def restarts(self, state: SharedState) -> dict[str, Array]:
        return self.all.restarts(state.members)

    def scaled(self, choose: Choose) -> Shared:
        return replace(self, all=self.all.scaled(choose))

    def account(self, state: SharedState) -> str:
        """Who had which share of the iterations, and why: of all seeds and copies together."""
        iterations = np.asarray(state.iterations).reshape(-1, len(self.names))
        gains = np.asarray(state.gains).reshape(-1, len(self.names)).mean(axis=0)
        shares = iterations.sum(axis=0) / max(iterations.sum(), 1)
        each = zip(self.names, shares, gains, strict=True)
        words = [
            f"{name} made {share:.0%} of the iterations and lately gained {gain:.3g}" for name, share, gain in each
        ]
        return f"{', '.join(words)} in each (objectives, summed over cells)"


def _next(state: SharedState) -> Array:
    """Who has the next turn: first those who never had one."""
    patience = state.waited / PATIENCE * jnp.max(jnp.abs(state.gains))
    hope = jnp.where(state.iterations == 0, jnp.inf, state.gains + patience)
    return jnp.argmax(hope).astype(state.turn.dtype)


def _with(parts: Any, i: int, part: Any) -> tuple[Any, ...]:
    return *parts[:i], part, *parts[i + 1 :]


def _zeros(like: Any) -> Array:
    return jnp.zeros(like.shape, like.dtype)
