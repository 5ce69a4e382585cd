"""Curvature: what steps cost the objective, as far as the last steps tell (L-BFGS: Nocedal 1980; Liu & Nocedal 1989).

The cost is that of the Lagrangian: the objective's gradient less slope J, what the measures account for. Along a step s
it changed by -y, so its curvature H has H s = y. From some such pairs follows H^-1 v for any v. Then

    across = H^-1 J^T     across (J across)^-1 z     of all steps that move the measures by z the one that costs least
    climb  = H^-1 g       less what of it moves measures: Newton's step with the measures held
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.emitters.targeting.footing import Footing
from dqd.emitters.targeting.model import DAMPING
from dqd.emitters.targeting.solve import solve
from dqd.types import matmul, pytree

PAIRS = 8
CURVED = 1e-3  # cosine between s and y: less is no valley


@pytree
class Secants:
    """Pairs (s, y), the newest first; zeros where there are none yet."""

    steps: Array  # (PAIRS, n) s
    changes: Array  # (PAIRS, n) y

    @staticmethod
    def none(x0: Array) -> Secants:
        return Secants(*[jnp.zeros((PAIRS, x0.size), x0.dtype)] * 2)

    def after(self, before: Footing, now: Footing, slope: Array, followed: Array) -> Secants:
        """With the pair of a step that was followed, if the objective curves along it as in a valley."""
        step = now.theta - before.theta
        change = (before.gradient - matmul(slope, before.rows)) - (now.gradient - matmul(slope, now.rows))
        product, lengths = jnp.sum(step * change), jnp.sum(step * step) * jnp.sum(change * change)
        good = followed & (product > CURVED * jnp.sqrt(lengths)) & jnp.isfinite(lengths)
        return Secants(
            *(
                jnp.where(good, jnp.concatenate([newest[None], pairs[:-1]]), pairs)
                for newest, pairs in ((step, self.steps), (change, self.changes))
            )
        )

    def inverse(self, vectors: Array) -> Array:
        """H^-1 of each, (m, n): the two loops over the pairs, newest first and oldest first."""
        products = jnp.sum(self.steps * self.changes, axis=1)
        per_product = jnp.where(products > 0, 1 / jnp.where(products > 0, products, 1), 0)
        factors = []
        for step, change, part in zip(self.steps, self.changes, per_product, strict=True):
            factors.append(part * jnp.sum(step * vectors, axis=1, keepdims=True))
            vectors = vectors - factors[-1] * change
        vectors = vectors * products[0] / jnp.maximum(jnp.sum(self.changes[0] ** 2), 1e-30)
        for step, change, part, factor in reversed(
            list(zip(self.steps, self.changes, per_product, factors, strict=True))
        ):
            vectors = vectors + (factor - part * jnp.sum(change * vectors, axis=1, keepdims=True)) * step
        return vectors


@pytree
class Cheapest:
    across: Array  # (k, n)
    inverse: Array  # (k, k) of J across
    climb: Array  # (n,) Newton's step with the measures held
    known: Array  # () whether there are any pairs, and they make sense here

    @staticmethod
    def of(secants: Secants, ground: Footing, longest: Array) -> Cheapest:
        """`longest`: no climb is longer."""
        both = secants.inverse(jnp.concatenate([ground.gradient[None], ground.rows]))
        both = jnp.where(ground.held, 0, both)
        newton, across = both[0], both[1:]
        square = matmul(across, ground.rows.T)
        square, eye = (square + square.T) / 2, jnp.eye(len(square), dtype=square.dtype)
        inverse = solve(square + DAMPING * jnp.trace(square) * eye, eye)
        climb = newton - matmul(matmul(inverse, matmul(ground.rows, newton)), across)
        length = jnp.sqrt(jnp.sum(climb * climb))
        known = (jnp.trace(square) > 0) & jnp.isfinite(length) & jnp.all(jnp.isfinite(inverse))
        climb = climb * jnp.minimum(1, longest / (length + 1e-30))
        return Cheapest(across, inverse, jnp.where(known, climb, 0), known)

    def steps(self, z: Array) -> Array:
        """(b, k) -> (b, n); 0 where nothing is known."""
        return jnp.where(self.known, matmul(matmul(z, self.inverse), self.across), 0)
