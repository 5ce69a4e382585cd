"""Bounds: a step that would leave the box is held at its wall, and the other coordinates take over.

In robotics that is saturation in the null space (Flacco, De Luca & Khatib 2012). Clipping alone would miss the target.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.emitters.targeting.solve import solve
from dqd.types import matmul, pytree

ROUNDS = 3  # each holds more coordinates at the walls; the search clips what is left


@pytree
class Room:
    """How far each coordinate of theta may move."""

    down: Array  # (n,) at most 0
    up: Array  # (n,) at least 0

    def clip(self, steps: Array) -> Array:
        return jnp.clip(steps, self.down, self.up)

    def unblocked(self, direction: Array) -> Array:
        """The direction without the coordinates that it would push into a wall at which they stand."""
        blocked = ((direction > 0) & (self.up <= 0)) | ((direction < 0) & (self.down >= 0))
        return jnp.where(blocked, 0, direction)


def arriving(room: Room | None, rows: Array, damping: Array, z: Array, steps: Array, held: Array) -> Array:
    """Steps (b, n) made to move the measures by z (b, k): by the shortest changes that stay in the room, or nearly so.

    Coordinates that are `held` (b, n) keep what they have. Those that would leave the room are held at its wall, and
    the others have to make up for it: of J J^T only theirs count.
    """
    k, n = rows.shape
    pairs = (rows[:, None] * rows[None]).reshape(k * k, n).T
    damped = damping * jnp.eye(k, dtype=z.dtype)
    for _ in range(1 if room is None else ROUNDS):
        square = matmul((~held).astype(z.dtype), pairs).reshape(-1, k, k)
        rest = z - matmul(steps, rows.T)
        steps = steps + jnp.where(held, 0, matmul(solve(square + damped, rest), rows))
        if room is not None:
            held = held | (steps != room.clip(steps))
            steps = room.clip(steps)
    return steps
