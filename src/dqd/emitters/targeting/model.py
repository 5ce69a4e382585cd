"""The local model: what a jacobian says about the neighbourhood of theta.

Measures are counted in cells. Of all steps that move them by z the shortest is J^T A z, A = (J J^T)^-1, and its squared
length is z^T A z. Along such steps the objective changes by slope z with slope = A J g. What is left of its gradient,
free = g - slope J, lies in the null space of J: it moves no measure.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.emitters.targeting.room import Room, arriving
from dqd.emitters.targeting.solve import solve
from dqd.types import matmul, pytree

DAMPING = 1e-6  # of J J^T, as a part of its trace: measures may be collinear, or flat
NONE_LEFT = 1e-4  # a smaller part of the gradient than this in the null space is rounding


@pytree
class LocalModel:
    rows: Array  # (k, n) J
    square: Array  # (k, k) J J^T
    trace: Array  # () of it; 1 where J = 0
    inverse: Array  # (k, k) A
    slope: Array  # (k,) of the objective over measures
    free: Array  # (n,) the gradient in the null space; 0 if nothing is left of it
    room: Room | None  # how far theta lies from its bounds

    @staticmethod
    def of(gradient: Array, rows: Array, room: Room | None) -> LocalModel:
        square = matmul(rows, rows.T)
        trace = jnp.trace(square)
        trace = jnp.where(trace > 0, trace, 1)
        eye = jnp.eye(len(rows), dtype=rows.dtype)
        inverse = solve(square + DAMPING * trace * eye, eye)
        slope = matmul(inverse, matmul(rows, gradient))
        model = LocalModel(rows, square, trace, inverse, slope, gradient, room)
        return model._with_free(gradient)

    def _with_free(self, gradient: Array) -> LocalModel:
        free = self.in_null_space(gradient)
        if self.room is not None:
            free = self.in_null_space(self.room.unblocked(free))
        left = jnp.sum(free * free) > NONE_LEFT**2 * jnp.sum(gradient * gradient)
        return LocalModel(
            self.rows, self.square, self.trace, self.inverse, self.slope, jnp.where(left, free, 0), self.room
        )

    @property
    def cell(self) -> Array:
        """Length of a step of one cell, on average over directions."""
        return jnp.sqrt(len(self.slope) / self.trace)

    @property
    def hard_cell(self) -> Array:
        """The same, led by the direction in which the measures move least."""
        return jnp.sqrt(jnp.trace(self.inverse) / len(self.slope))

    def squared_length(self, z: Array) -> Array:
        """Of the shortest steps that move the measures by z, (..., k) -> (...)."""
        return jnp.sum(matmul(z, self.inverse) * z, axis=-1)

    def shortest(self, z: Array, some: Array) -> Array:
        """The steps themselves, (b, k) -> (b, n), of those by which only some coordinates move, (b, n)."""
        return self.arriving(z, jnp.zeros((len(z), self.rows.shape[1]), z.dtype), ~some)

    def arriving(self, z: Array, steps: Array, held: Array) -> Array:
        """Steps made to arrive, and to stay in the room."""
        return arriving(self.room, self.rows, DAMPING * self.trace, z, steps, held)

    def in_null_space(self, direction: Array) -> Array:
        """What of it moves no measure. Taken twice: damping leaves a rest of the first time."""
        for _ in range(2):
            direction = direction - matmul(matmul(self.inverse, matmul(self.rows, direction)), self.rows)
        return direction
