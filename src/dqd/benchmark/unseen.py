"""Functions that were written before any algorithm was run on them, and are not to be tuned on."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.designs import elbows, fin, low_pass, pendulum, portfolio
from dqd.benchmark.discs import discs
from dqd.benchmark.function import Function, laid, near_zero, normals, within
from dqd.benchmark.layers import attention, maxout, rippled_network, sine_network
from dqd.benchmark.lens import lens
from dqd.benchmark.uneven import uneven
from dqd.domains.linear_projection import LIMIT, clip


def unseen(n: int = 100) -> dict[str, Function]:
    return {
        "heavy-sphere-k3": uneven(n, 3000, ends=(0.2, 0.5), spread=1.0),
        "heavy-plateau": uneven(n, 3001, flat=1.5, spread=1.0),
        "mixed-rastrigin": mixed_rastrigin(n),
        "features": features(n),
        "chain-k8": chain(n, 8),
        "sine-network-k3": sine_network(n, 3),
        "attention-k6": attention(n, 6),
        "maxout": maxout(n),
        "rippled-network": rippled_network(n),
        "elbows": elbows(n),
        "lens": lens(n),
        "fin": fin(n),
        "low-pass": low_pass(n),
        "portfolio": portfolio(n),
        "pendulum": pendulum(n),
        "discs": discs(n),
    }


def mixed_rastrigin(n: int) -> Function:
    """A linear projection without blocks: every coordinate counts in both measures; ripples of unequal height."""
    random = np.random.default_rng(3010)
    rows = random.normal(size=(2, n))
    rows = rows / np.abs(rows).sum(axis=1, keepdims=True)
    best, heights = random.uniform(-2, 2, n), random.uniform(2, 8, n)

    def score(x: Array) -> tuple[Array, Array]:
        d = x - best
        cost = d * d + heights * (1 - jnp.cos(2 * math.pi * d))
        return 100 / (1 + jnp.mean(cost) / 10), rows @ clip(x)

    return Function(score, *within(LIMIT), random.uniform(-3, 3, n))


def features(n: int) -> Function:
    """A turned ellipsoid of curvatures 1 to 1000; measures: a sum of bent features, and a difference of squares."""
    turn, weights, middle = np.linalg.qr(normals(3020, n, n))[0], np.logspace(-1.5, 1.5, n), 0.3 * normals(3021, n)
    waves, signs = normals(3022, n, 48) / math.sqrt(n), np.sign(normals(3023, 48)) / math.sqrt(48)
    plus, minus = normals(3024, 2, n, 4) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        y = (x - middle) @ turn
        bent = jax.nn.softplus(3 * x @ waves) @ signs
        saddle = jnp.arcsinh(jnp.sum((x @ plus) ** 2) - jnp.sum((x @ minus) ** 2))
        return 100 / (1 + jnp.mean(weights * y * y) / 2), jnp.stack([bent, saddle])

    return laid(score, 0.5 * normals(3025, n), reach=4.0)


def chain(n: int, k: int) -> Function:
    """Every number should follow the one before it, along a curve or its mirror image; means of k stretches."""
    sign = np.where(np.random.default_rng(3030).random(n - 1) < 0.8, 1.2, -1.2)
    stretch = k * np.arange(n) // n
    rows = np.stack([(stretch == j) / np.sum(stretch == j) for j in range(k)])

    def score(x: Array) -> tuple[Array, Array]:
        gaps = x[1:] - sign * jnp.tanh(1.5 * x[:-1])
        return near_zero(gaps), jnp.asarray(rows) @ (2 * jnp.tanh(x / 2))

    return Function(score, *within(1.5, k), 0.5 * normals(3031, n))
