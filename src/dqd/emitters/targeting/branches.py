"""Branches: the steps of an iteration are made of the same few vectors, so that one product makes them all.

    short    A z of J,  climb of free,  jump of a random direction in the null space,  some of the last step of a chase
    cheap    (J across)^-1 z of across,  t of Newton's climb
    thin     a short one of which only some coordinates make the way; these are made by themselves

In bounds a step stops at the wall, and the other coordinates make up for it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.emitters.targeting.curvature import Cheapest
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.sideways import THINNED, Sideways
from dqd.types import matmul, pytree


@pytree
class Branches:
    model: LocalModel
    cheapest: Cheapest
    sideways: Sideways
    held: Array  # (n,) coordinates that stay where they are
    direction: Array  # (n,) random, from -1 to 1
    last: Array  # (n,) the last step of the chase

    def steps(self, aim: Array, takes: Array, climb: Array, onwards: Array) -> Array:
        """To `aim` (b, k) by the cheap way for those that take it, with some of its climb; some go `onwards`."""
        model, sideways, thin = self.model, self.sideways, self.sideways.share < 1
        way = jnp.where(thin[:, None], 0, matmul(aim, model.inverse))
        beside = jnp.stack([sideways.climb, sideways.jump, onwards], axis=1)
        short = jnp.concatenate([way, beside], axis=1)
        cheap = jnp.concatenate([self.cheapest.factors(aim), climb[:, None]], axis=1)
        factors = jnp.concatenate([jnp.where(takes, 0, short.T).T, jnp.where(takes, cheap.T, 0).T], axis=1)
        steps = matmul(factors, self._vectors()) + self._thin(aim)
        if model.room is None:
            return steps
        goes = aim + jnp.where(takes, 0, onwards)[:, None] * matmul(model.rows, self.last)
        stopped = model.room.clip(steps)
        return model.arriving(goes, stopped, steps != stopped)

    def _vectors(self) -> Array:
        random = self.model.in_null_space(jnp.where(self.held, 0, self.direction))
        random = random / (jnp.sqrt(jnp.vdot(random, random)) + 1e-30)
        single = jnp.stack([self.model.free, random, self.last])
        return jnp.concatenate([self.model.rows, single, self.cheapest.across, self.cheapest.climb[None]])

    def _thin(self, aim: Array) -> Array:
        """The ways of the thin ones, and 0 for the others."""
        count, n = len(aim), self.direction.size
        places = np.arange(THINNED - 1, count, THINNED)
        share = self.sideways.share[places, None]
        ways = self.model.shortest(aim[places], (jnp.abs(self.direction) < share) & ~self.held)
        ways = jnp.where(share < 1, ways, 0)
        rows = jnp.pad(ways[:, None], ((0, 0), (THINNED - 1, 0), (0, 0))).reshape(THINNED * len(places), n)
        return jnp.pad(rows, ((0, count - len(rows)), (0, 0)))
