"""Curvature: what steps cost the objective, as far as the last steps tell (L-BFGS: Nocedal 1980; Liu & Nocedal 1989).

The cost is that of the Lagrangian: the objective's gradient less slope J, what the measures account for. Along a step s
it changed by -y, so its curvature H has H s = y. From some such pairs follows H^-1 v for any v. Then

    across = H^-1 J^T     across (J across)^-1 z     of all steps that move the measures by z the one that costs least
    climb  = H^-1 g       less what of it moves measures: Newton's step with the measures held
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.compiler.unfused import once
from dqd.emitters.targeting.footing import Footing
from dqd.emitters.targeting.model import DAMPING
from dqd.emitters.targeting.solve import solve
from dqd.types import matmul, pytree, select

PAIRS = 8
CURVED = 1e-3  # cosine between s and y: less is no valley


@pytree
class Secants:
    """Pairs (s, y), the newest first, zeros where there are none yet; and their products, which are taken once."""

    pairs: Array  # (2 PAIRS, n) every s, then every y
    products: Array  # (PAIRS, PAIRS) s_i y_j
    squares: Array  # (PAIRS, PAIRS) y_i y_j

    @staticmethod
    def none(x0: Array) -> Secants:
        nothing = jnp.zeros((PAIRS, PAIRS), x0.dtype)
        return Secants(jnp.zeros((2 * PAIRS, x0.size), x0.dtype), nothing, nothing)

    def after(self, before: Footing, now: Footing, slope: Array, followed: Array) -> Secants:
        """With the pair of a step that was followed, if the objective curves along it as in a valley."""
        step = now.theta - before.theta
        change = (before.gradient - matmul(slope, before.rows)) - (now.gradient - matmul(slope, now.rows))
        product, lengths = jnp.vdot(step, change), jnp.vdot(step, step) * jnp.vdot(change, change)
        good = followed & (product > CURVED * jnp.sqrt(lengths)) & jnp.isfinite(lengths)
        steps, changes = self.pairs[:PAIRS], self.pairs[PAIRS:]
        column, row, across = once((matmul(steps, change), matmul(changes, step), matmul(changes, change)))
        newer = Secants(
            jnp.concatenate([step[None], steps[:-1], change[None], changes[:-1]]),
            _bordered(self.products, column, row, product),
            _bordered(self.squares, across, across, jnp.vdot(change, change)),
        )
        return select(good, newer, self)

    def inverse(self, vectors: Array) -> Array:
        """H^-1 of each, (m, n): the two loops over the pairs, newest first and oldest first, among products alone."""
        known = once(matmul(self.pairs, vectors.T))
        s_v, y_v, s_y, y_y = known[:PAIRS], known[PAIRS:], self.products, self.squares
        diagonal = jnp.diagonal(s_y)
        rho = jnp.where(diagonal > 0, 1 / jnp.where(diagonal > 0, diagonal, 1), 0)
        scale = s_y[0, 0] / jnp.maximum(y_y[0, 0], 1e-30)
        down: list[Array] = []  # what is taken of every y
        for i in range(PAIRS):
            down.append(rho[i] * (s_v[i] - sum(s_y[i, j] * down[j] for j in range(i))))
        up: dict[int, Array] = {}  # what is added of every s
        for i in reversed(range(PAIRS)):
            along = scale * (y_v[i] - sum(y_y[i, j] * down[j] for j in range(PAIRS)))
            up[i] = down[i] - rho[i] * (along + sum(s_y[j, i] * up[j] for j in range(i + 1, PAIRS)))
        factors = jnp.stack([up[i] for i in range(PAIRS)] + [-scale * each for each in down], axis=1)
        return scale * vectors + matmul(factors, self.pairs)


def _bordered(matrix: Array, column: Array, row: Array, corner: Array) -> Array:
    """With a newest row and column, and without the oldest."""
    first = jnp.concatenate([corner[None], row[:-1]])
    rest = jnp.concatenate([column[:-1, None], matrix[:-1, :-1]], axis=1)
    return jnp.concatenate([first[None], rest])


@pytree
class Cheapest:
    across: Array  # (k, n)
    inverse: Array  # (k, k) of J across
    squares: Array  # (k, k) of the lengths of the steps
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
        length = jnp.sqrt(jnp.vdot(climb, climb))
        known = (jnp.trace(square) > 0) & jnp.isfinite(length) & jnp.all(jnp.isfinite(inverse))
        climb = climb * jnp.minimum(1, longest / (length + 1e-30))
        across, inverse, climb = (jnp.where(known, each, 0) for each in (across, inverse, climb))
        squares = matmul(matmul(inverse, matmul(across, across.T)), inverse)
        return Cheapest(across, inverse, squares, climb, known)

    def factors(self, z: Array) -> Array:
        """Of `across` in the steps that move the measures by z, (b, k) -> (b, k); 0 where nothing is known."""
        return matmul(z, self.inverse)

    def squared_length(self, z: Array) -> Array:
        """Of these steps, (b, k) -> (b,)."""
        return jnp.sum(matmul(z, self.squares) * z, axis=-1)
