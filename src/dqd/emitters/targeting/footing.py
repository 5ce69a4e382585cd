"""Footing: where an iteration stands, and what it knows there.

A shot that crosses a kink or a jump misses, though all but a few coordinates did what was expected of them. Which few
shows the jacobian where it landed: their gradients have turned round. They go back to where they were, and are held
there as long as the chase lasts (compare the backtracking of Rprop: Riedmiller & Braun 1993).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import matmul, pytree

WRONG = 0.3  # cells: so far from where they were expected do measures show that something was crossed


@pytree
class Footing:
    theta: Array  # (n,)
    measures: Array  # (k,)
    gradient: Array  # (n,) of the objective; 0 where held
    rows: Array  # (k, n) of the measures in cells; 0 where held
    held: Array  # (n,) coordinates that stay where they are

    @staticmethod
    def none(x0: Array, k: int) -> Footing:
        nothing = jnp.zeros_like(x0)
        return Footing(x0, jnp.zeros(k, x0.dtype), nothing, jnp.zeros((k, x0.size), x0.dtype), nothing > 0)

    def after(self, before: Footing, chased: Array, widths: Array) -> Footing:
        """The same, unless it was `chased` from the one before across a kink: then beside the kink."""
        turned = chased & (jnp.sum(before.rows * self.rows, axis=0) < 0)
        off = (self.measures - before.expected(self.theta, widths)) / widths
        turned = turned & (jnp.max(jnp.abs(off)) > WRONG)
        theta, held = jnp.where(turned, before.theta, self.theta), turned | (chased & before.held)
        measures = jnp.where(jnp.any(turned), before.expected(theta, widths), self.measures)
        return Footing(theta, measures, jnp.where(held, 0, self.gradient), jnp.where(held, 0, self.rows), held)

    def expected(self, theta: Array, widths: Array) -> Array:
        """Measures there, by the rows here, (k,)."""
        return self.measures + widths * matmul(self.rows, theta - self.theta)
