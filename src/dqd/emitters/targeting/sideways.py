"""Sideways: what the shortest steps do besides going where they aim. Sizes are learnt from the shots at elites.

climb   along what is left of the gradient in the null space
wild    far along a random direction in the null space: some hard shots
thin    the step to the target is made by some coordinates only, which go the further: where each coordinate has
        its own valleys, a few that change valleys lose less than all of them climbing its walls
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.sizes import Sizes
from dqd.types import pytree

ON_THE_WAY = 0.2  # of the radius: how far a shot at an open cell climbs at most
THINNED = 4  # every so manyth branch, if it goes to an elite
WILD = 0.15  # share of the hard shots


@pytree
class Sideways:
    climb: Array  # (b,) step sizes
    jump: Array  # (b,) lengths
    share: Array  # (b,) of the coordinates that move towards the target
    logs: Array  # (b, 2) drawn: logarithms of step sizes, and of shares
    used: Array  # (b, 2) from which the next are learnt
    wild: Array  # (b,)

    @staticmethod
    def drawn(
        model: LocalModel, sizes: Sizes, longest: Array, free: Array, is_open: Array, hard: Array, noise: dict[str, Any]
    ) -> Sideways:
        k, n = model.rows.shape
        uniform, first = noise["uniform"], jnp.arange(is_open.size) == 0  # the first may be followed: no wild jump
        logs, climbs = noise["normal"] + sizes.logs, (free > 0) & ~hard
        most = jnp.log(jnp.where(is_open, ON_THE_WAY * sizes.radius, longest)) - jnp.log(free)
        climb = jnp.where(climbs, jnp.exp(jnp.minimum(logs[:, 0], most)), 0)

        side, wild = 2 * uniform[2] - 1, hard & ~first & (uniform[1] < WILD)
        length = jnp.where(wild, jnp.exp(sizes.wild * jnp.abs(side)), 0)
        thinned = ~is_open & (jnp.arange(is_open.size) % THINNED == THINNED - 1)
        share = jnp.where(thinned, jnp.clip(jnp.exp(logs[:, 1]), min(2 * k / n, 1), 1), 1)
        return Sideways(
            climb,
            model.cell * jnp.sign(side) * length,
            share,
            logs,
            jnp.stack([climbs & ~is_open, thinned], axis=1),
            wild,
        )
