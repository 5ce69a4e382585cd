"""How far: sizes that are learnt from what became of the branches. None is a setting."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree, replace

GROWTH, SHRINKAGE = 1.25, 0.8  # of the radius
LIKE, UNLIKE = 0.8, 0.5  # long shots succeed about as often as short ones, or much more rarely
BEYOND = 10.0  # times as far as the longest shot that was tried: longer says nothing
TOLERANCE = 0.5  # a shot that lands so near, in parts of its way, or within a cell, has arrived
MEMORY = 0.95  # of the fit of the objective
WIDEST = 1e3  # cells: of steps in the null space; the shortest is its inverse
LOG_WIDEST = math.log(WIDEST)
LIMITS = (-math.inf, -LOG_WIDEST), (math.inf, 0.0)  # of logarithms


@pytree
class Sizes:
    radius: Array  # () length of steps that still arrive; 0 before the first iteration
    settled: Array  # () whether most branches ever had an open cell within the radius
    logs: Array  # (2,) logarithms: of the step along what is left of the gradient, NaN before the first; and of the
    #              share of coordinates that move where only some do
    wild: Array  # () logarithm of the longest wild jump, in cells
    fit: Array  # (2,) how much of a linear prediction comes true, over how much was predicted
    curvature: Array  # () what is lost of it per squared length

    @staticmethod
    def first(dtype: jnp.dtype) -> Sizes:
        zero = jnp.zeros((), dtype)
        logs = jnp.array([jnp.nan, -1], dtype)
        return Sizes(zero, jnp.array(False), logs, zero, jnp.ones(2, dtype), zero)

    def begun(self, first: Array, cell: Array, free: Array) -> Sizes:
        """With a first radius, and steps of a cell along the first free gradient, where they have none yet."""
        ascent = jnp.where(jnp.isnan(self.logs[0]) & (free > 0), jnp.log(cell) - jnp.log(free), self.logs[0])
        radius = jnp.where(self.radius > 0, self.radius, first)
        return replace(self, radius=radius, logs=self.logs.at[0].set(ascent))

    def here(self, cell: Array, free: Array) -> Sizes:
        """As they apply where a step of one cell, and the free gradient, are that long."""
        one = jnp.log(cell) - jnp.log(free)
        ascent = jnp.where(free > 0, jnp.clip(self.logs[0], one - LOG_WIDEST, one + LOG_WIDEST), self.logs[0])
        radius = jnp.clip(self.radius, cell / WIDEST, cell * WIDEST**2)
        return replace(self, radius=radius, logs=self.logs.at[0].set(ascent))

    def predicted(self, linear: Array, squared: Array) -> Array:
        """How much the objective, as it is stored, changes by steps of that squared length."""
        return self.scale * linear - self.curvature * squared

    @property
    def scale(self) -> Array:
        """Stored objective per unit of the one that gradients are of."""
        return jnp.maximum(self.fit[0] / self.fit[1], 0)

    # Learning ---------------------------------------------------------------------------------------------------------

    def settling(self, within: Array) -> Sizes:
        """Until most shots go to cells within the radius, it learns from those beyond it: it may be far too small."""
        return replace(self, settled=self.settled | (2 * jnp.sum(within) >= within.size))

    def with_radius(self, tried: Array, arrived: Array, length: Array) -> Sizes:
        """Long steps that arrive at new cells as often as short ones may be longer; `length` is squared.

        Only the comparison counts: noise, or cells that nobody can reach, make all shots fail more often.
        """
        mean = jnp.sum(jnp.where(tried, length, 0)) / jnp.maximum(jnp.sum(tried), 1)
        long = _share(arrived, tried & (length > mean))
        short = _share(arrived, tried & (length <= mean))
        may = self.radius <= BEYOND * jnp.sqrt(jnp.max(jnp.where(tried, length, 0)))
        grows = may & (long > LIKE * short)
        factor = jnp.where(long < UNLIKE * short, SHRINKAGE, jnp.where(grows, GROWTH, 1.0))
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

    def with_walls(self, finite: Array) -> Sizes:
        """Where most branches (b,) are not finite, all steps were too long: beyond a wall that no gradient knows."""
        factor = jnp.where(2 * jnp.sum(finite) < finite.size, SHRINKAGE, 1.0)
        return replace(self, radius=self.radius * factor, logs=self.logs.at[0].add(jnp.log(factor)))

    def with_steps(self, improvement: Array, used: Array, samples: Array) -> Sizes:
        """Logarithms move towards those that improved elites, by how much they did; down a little if none did.

        Samples and who used them are (b, 2).
        """
        weight = jnp.where(used, improvement[:, None], 0)
        total = jnp.sum(weight, axis=0)
        mean = jnp.sum(jnp.where(weight > 0, weight * samples, 0), axis=0) / jnp.where(total > 0, total, 1)
        low, high = jnp.array(LIMITS, self.logs.dtype)
        moved = jnp.where(total > 0, 0.8 * self.logs + 0.2 * mean, self.logs - 0.02)
        return replace(self, logs=jnp.where(jnp.any(used, axis=0), jnp.clip(moved, low, high), self.logs))


def _share(of: Array, among: Array) -> Array:
    return jnp.sum(of & among) / jnp.maximum(jnp.sum(among), 1)
