"""Functions that were looked at while `dqd.targeting` and `dqd.auto` were made: what is best here may be so by choice.

Those below from the beginning; those of `seen_later` since 17 and of `seen_third` since 18 November 2026, and were
unseen before.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, near_zero, normals, within
from dqd.benchmark.seen_later import seen_later
from dqd.benchmark.seen_third import seen_third
from dqd.domains.arm import Arm
from dqd.domains.linear_projection import LIMIT, LinearProjection
from dqd.paper.report import ceilings


def seen(n: int = 100) -> dict[str, Function]:
    """`n` is 20, 36, 52, ...: a truss has so many bars."""
    return {
        "sphere": linear("sphere", np.zeros(n)),
        "rastrigin": linear("rastrigin", np.zeros(n)),
        "random-start": linear("sphere", 2 * normals(1, n)),
        "arm": arm(np.zeros(n)),
        "crumpled-arm": arm(0.3 * normals(2, n)),
        "network": network(n, 2),
        "network-2": network(n, 2, seed=50),
        "ill-conditioned": ill_conditioned(n),
        "collinear": collinear(n),
        "partly-flat": partly_flat(n),
        "noisy": noisy(n),
        "narrow": narrow(n),
        "network-k4": network(n, 4),
        **seen_later(n),
        **seen_third(n),
    }


def linear(objective: str, x0: np.ndarray) -> Function:
    domain = LinearProjection(objective, n := len(x0))  # type: ignore[arg-type]
    scale, offset = domain.transform

    def score(x: Array) -> tuple[Array, Array]:
        raw, measures = domain.score(x)
        return scale * raw + offset, measures

    best = ceilings.ceiling(f"lp-{objective}", n=n)
    return Function(score, *within(LIMIT * n / 2), x0, None if best is None else best.qd_score)


def arm(x0: np.ndarray) -> Function:
    def score(x: Array) -> tuple[Array, Array]:
        raw, measures = Arm(len(x0)).score(x)
        return 100 * (1 + raw), measures

    return Function(score, *within(len(x0)), x0, ceilings.arm(n=len(x0)).qd_score)


def network(n: int, k: int, seed: int = 0) -> Function:
    """Measures of two random layers; the objective has many hills."""
    first, second = normals(seed, n, 32) / math.sqrt(n), normals(seed + 1, 32, k) / math.sqrt(32)
    hills = normals(seed + 2, n, 16) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        bumps = 0.8 + 0.2 * jnp.mean(jnp.cos(6 * (x @ hills)))
        return bumps * near_zero(x, 2.0), jnp.tanh(2 * x @ first) @ second

    return Function(score, *within(2.0, k), 0.1 * normals(seed + 3, n))


def ill_conditioned(n: int) -> Function:
    """A quadratic objective whose axes, turned at random, differ by 1000 in curvature; slightly curved measures."""
    turn = np.linalg.qr(normals(7, n, n))[0]
    weights, rows = np.logspace(-3, 0, n), normals(8, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        y = x @ turn
        return 100 / (1 + jnp.sum(weights * y * y)), jnp.sinh(x @ rows)

    return Function(score, *within(20.0), np.full(n, 0.5))


def collinear(n: int) -> Function:
    """Two measures whose gradients are nearly the same: only a band along the diagonal is easy to reach."""
    rows = normals(9, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        a, b = x @ rows[:, 0], x @ rows[:, 1]
        return near_zero(x), jnp.stack([a, a + 0.03 * b])

    return Function(score, *within(5.0), np.zeros(n))


def partly_flat(n: int) -> Function:
    """A measure that does not move until a threshold is passed."""
    rows = normals(10, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        a, b = x @ rows[:, 0], x @ rows[:, 1]
        return near_zero(x), jnp.stack([3 * jnp.tanh(a), jax.nn.relu(b - 0.5) - jax.nn.relu(-b - 0.5)])

    return Function(score, *within(3.0), np.zeros(n))


def noisy(n: int) -> Function:
    """Half a cell of noise in the measures that no gradient knows of."""
    rows = normals(11, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        noise = jax.lax.stop_gradient(jnp.sin(1e4 * (x[:2] + jnp.roll(x, 1)[:2])))
        return near_zero(x) * (1 + 0.02 * noise[0]), 3 * jnp.tanh(x @ rows) + 0.03 * noise

    return Function(score, *within(3.0), np.zeros(n))


def narrow(n: int) -> Function:
    """Only a spiral band of the grid can be reached."""
    rows = normals(12, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        angle, across = x @ rows[:, 0], 0.1 * jnp.tanh(x @ rows[:, 1])
        radius = 1 + 0.2 * angle + across
        return near_zero(x, 2.0), radius * jnp.stack([jnp.cos(2 * angle), jnp.sin(2 * angle)])

    return Function(score, *within(2.0), np.zeros(n))
