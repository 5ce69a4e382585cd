"""How far: sizes that are learnt from what became of the branches. None is a setting."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree, replace

GROWTH, SHRINKAGE = 1.25, 0.8  # of the radius
LIKE, UNLIKE = 0.8, 0.5  # long shots succeed about as often as short ones, or much more rarely
SELDOM = 0.1  # so few shots at open cells find a new one that the radius must be wrong
MEMORY = 0.95  # of the fit of the objective
WIDEST = 1e3  # cells: of steps in the null space; the shortest is its inverse
LOG_WIDEST = math.log(WIDEST)
LIMITS = (-math.inf, -LOG_WIDEST, -LOG_WIDEST), (math.inf, LOG_WIDEST, 0.0)  # of logarithms


@pytree
class Sizes:
    radius: Array  # () length of steps that still arrive; 0 before the first iteration
    logs: Array  # (3,) logarithms: of the step along what is left of the gradient, NaN before the first; of the length
    #              of random steps, in cells; and of the share of coordinates that move where only some do
    wild: Array  # () logarithm of the longest wild jump, in cells
    fit: Array  # (2,) how much of a linear prediction comes true, over how much was predicted
    curvature: Array  # () what is lost of it per squared length

    @staticmethod
    def first(dtype: jnp.dtype) -> Sizes:
        zero = jnp.zeros((), dtype)
        return Sizes(zero, jnp.array([jnp.nan, 0, -1], dtype), zero, jnp.ones(2, dtype), zero)

    def here(self, cell: Array, first: Array, free: Array) -> Sizes:
        """As they apply where a step of one cell, and the free gradient, are that long; `first` is the first radius."""
        radius = jnp.where(self.radius > 0, self.radius, first)
        one = jnp.log(cell) - jnp.log(free)
        ascent = jnp.where(jnp.isnan(self.logs[0]), one, self.logs[0])
        ascent = jnp.where(free > 0, jnp.clip(ascent, one - LOG_WIDEST, one + LOG_WIDEST), self.logs[0])
        return replace(
            self,
            radius=jnp.clip(radius, cell / WIDEST, cell * WIDEST**2),
            logs=self.logs.at[0].set(ascent),
        )

    def predicted(self, linear: Array, squared: Array) -> Array:
        """How much the objective, as it is stored, changes by steps of that squared length."""
        return self.scale * linear - self.curvature * squared

    @property
    def scale(self) -> Array:
        """Stored objective per unit of the one that gradients are of."""
        return jnp.maximum(self.fit[0] / self.fit[1], 0)

    # Learning ---------------------------------------------------------------------------------------------------------

    def with_radius(self, tried: Array, new: Array, length: Array) -> Sizes:
        """Long steps that find new cells as often as short ones may be longer.

        Only the comparison counts: noise, or cells that nobody can reach, make all shots fail more often.
        """
        mean = jnp.sum(jnp.where(tried, length, 0)) / jnp.maximum(jnp.sum(tried), 1)
        long = _share(new, tried & (length > mean))
        short = _share(new, tried & (length <= mean))
        seldom = _share(new, tried) <= SELDOM
        factor = jnp.where(seldom | (long < UNLIKE * short), SHRINKAGE, jnp.where(long > LIKE * short, GROWTH, 1.0))
        return replace(self, radius=self.radius * jnp.where(jnp.any(tried), factor, 1))

    def with_wild(self, ruined: Array) -> Sizes:
        """Wild jumps that end where objectives are ruinous were too long."""
        return replace(self, wild=jnp.clip(self.wild + jnp.where(ruined, -1.0, 0.05), 0, LOG_WIDEST))

    def with_objective(self, seen: Array, change: Array, linear: Array, squared: Array) -> Sizes:
        """Fit what the objective did to what was predicted for it."""
        change, linear, squared = (jnp.where(seen, each, 0) for each in (change, linear, squared))
        power = jnp.sum(linear * linear)
        newest = jnp.stack([jnp.sum(change * linear) / (power + 1e-30), jnp.ones_like(power)])
        fit = jnp.where(power > 0, MEMORY * self.fit + (1 - MEMORY) * newest, self.fit)
        fitted = replace(self, fit=fit)
        lost = jnp.sum(fitted.scale * linear - change) / (jnp.sum(squared) + 1e-30)
        curvature = 0.9 * self.curvature + 0.1 * jnp.maximum(lost, 0)
        return replace(fitted, curvature=jnp.where(jnp.sum(seen) >= 3, curvature, self.curvature))

    def with_steps(self, improvement: Array, used: Array, samples: Array) -> Sizes:
        """Logarithms move towards those that improved elites, by how much they did; down a little if none did.

        Samples and who used them are (3, b).
        """
        weight = jnp.where(used, improvement, 0)
        total = jnp.sum(weight, axis=1)
        mean = jnp.sum(jnp.where(weight > 0, weight * samples, 0), axis=1) / jnp.where(total > 0, total, 1)
        low, high = jnp.array(LIMITS, self.logs.dtype)
        moved = jnp.where(total > 0, 0.8 * self.logs + 0.2 * mean, self.logs - 0.02)
        return replace(self, logs=jnp.where(jnp.any(used, axis=1), jnp.clip(moved, low, high), self.logs))


def _share(of: Array, among: Array) -> Array:
    return jnp.sum(of & among) / jnp.maximum(jnp.sum(among), 1)
