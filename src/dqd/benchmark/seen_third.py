"""Functions that were unseen until 18 November 2026, when algorithms had been run on them; looked at since."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.engineering import antenna, arm_3d, battery, boat
from dqd.benchmark.function import Function, laid, near_zero, normals
from dqd.benchmark.uneven import uneven


def seen_third(n: int = 100) -> dict[str, Function]:
    return {
        "uneven-sphere": uneven(n, 2000),
        "uneven-rastrigin": uneven(n, 2001, ripples=5.0, scale=10.0),
        "uneven-plateau": uneven(n, 2002, flat=2.5),
        "units": units(n),
        "residual-network": residual_network(n, 2),
        "fourier-features-k4": fourier_features(n, 4),
        "gated-network-k8": gated_network(n, 8),
        "generator": generator(n),
        "outline": outline(n),
        "arm-3d": arm_3d(n),
        "antenna": antenna(n),
        "boat": boat(n),
        "battery": battery(n),
    }


def units(n: int) -> Function:
    """Ill-chosen units: along turned axes steps count 1 to 30, curvatures 1 to 1000; one of two measures is bent."""
    axes = np.linalg.qr(normals(2010, n, n))[0] * np.logspace(-0.75, 0.75, n)
    rows, middle = normals(2011, n, 2) / math.sqrt(n), 0.3 * normals(2012, n)

    def score(x: Array) -> tuple[Array, Array]:
        y = x @ axes
        a, b = y @ rows
        return near_zero(y - middle, 0.7), jnp.stack([a, b + 0.1 * a * a])

    return laid(score, 0.5 * normals(2013, n), reach=4.0)


def residual_network(n: int, k: int) -> Function:
    """Measures of three residual blocks (He et al. 2016) with GELU; best near a random solution."""
    first, blocks = normals(2020, n, 64) / math.sqrt(n), normals(2021, 3, 64, 64) / math.sqrt(64)
    last, middle = normals(2022, 64, k) / math.sqrt(64), 0.5 * normals(2023, n)

    def score(x: Array) -> tuple[Array, Array]:
        hidden = x @ first
        for block in blocks:
            hidden = hidden + jax.nn.gelu(1.5 * hidden @ block)
        return near_zero(x - middle), hidden @ last

    return laid(score, 0.5 * normals(2024, n), reach=3.0)


def fourier_features(n: int, k: int) -> Function:
    """Draws of a Gaussian process, by random Fourier features (Rahimi & Recht 2007); the objective falls far out."""
    waves, phases = 1.5 * normals(2030, n, 128) / math.sqrt(n), np.random.default_rng(2031).uniform(0, 2 * math.pi, 128)
    weights = normals(2032, 128, 1 + k) / math.sqrt(64)

    def score(x: Array) -> tuple[Array, Array]:
        draws = jnp.cos(x @ waves + phases) @ weights
        return (0.6 + 0.4 * jnp.tanh(draws[0])) * near_zero(x, 1.5), draws[1:]

    return laid(score, 0.5 * normals(2033, n), reach=3.5)


def gated_network(n: int, k: int) -> Function:
    """Measures of two gated layers (Dauphin et al. 2017), brought to length one; a third of directions is judged."""
    first, second = normals(2040, 2, n, 64) / math.sqrt(n), normals(2041, 2, 64, 64) / math.sqrt(64)
    last, judged = normals(2042, 64, k), np.linalg.qr(normals(2043, n, n // 3))[0]

    def score(x: Array) -> tuple[Array, Array]:
        hidden = x
        for values, gates in (first, second):
            hidden = jnp.tanh(2 * hidden @ values) * jax.nn.sigmoid(2 * hidden @ gates)
        return near_zero(x @ judged - 0.3), hidden @ last / jnp.sqrt(hidden @ hidden + 1e-6)

    return laid(score, 0.5 * normals(2044, n), reach=3.0)


def generator(n: int) -> Function:
    """From latents to pixels within -1 and 1, which two classifiers see; best like an image, and near the centre."""
    first, second = normals(2050, n, 64) / math.sqrt(n), normals(2051, 64, 128) / math.sqrt(64)
    third, bias = normals(2052, 128, 192) / math.sqrt(128), 0.5 * normals(2053, 64)
    classifiers, image = normals(2054, 192, 2) / math.sqrt(192), np.tanh(normals(2055, 192))

    def score(x: Array) -> tuple[Array, Array]:
        pixels = jnp.tanh(2 * jax.nn.gelu(2 * jax.nn.gelu(2 * x @ first + bias) @ second) @ third)
        likeness = pixels @ image / jnp.sqrt((pixels @ pixels + 1e-6) * (image @ image))
        trust = jnp.exp(-((jnp.mean(x * x) / 1.5**2) ** 2))
        return 50 * (1 + likeness) * trust, pixels @ classifiers

    return laid(score, 0.2 * normals(2056, n), reach=3.0)


def outline(n: int) -> Function:
    """A closed curve of n / 4 harmonics: its area, and how oblong it is; best like a star.

    Elliptic Fourier features (Kuhl & Giardina 1982): with (a, b) along x and (c, d) along y it has area
    pi sum_h h (a d - b c) and variances sum_h (a^2 + b^2) / 2, sum_h (c^2 + d^2) / 2. Likeness is by the mean
    squared distance to the nearest point, both ways, of a soft minimum.
    """
    count, soft = n // 4, 0.003
    order, turn = np.arange(1, count + 1), 2 * np.pi * np.arange(64) / 64
    waves = np.concatenate([np.cos(np.outer(order, turn)), np.sin(np.outer(order, turn))])  # (2 count, 64)
    star = (1 + 0.35 * np.cos(5 * turn)) * np.stack([np.cos(turn), np.sin(turn)])

    def score(x: Array) -> tuple[Array, Array]:
        (a, b), (c, d) = parts = x[: 4 * count].reshape(2, 2, count) / order
        curve = parts.reshape(2, -1) @ waves
        squares = jnp.sum((curve[:, :, None] - star[:, None, :]) ** 2, axis=0)
        near = [-soft * jax.nn.logsumexp(-squares / soft, b=1 / 64, axis=axis) for axis in (0, 1)]
        area, spread = jnp.pi * jnp.sum(order * (a * d - b * c)), jnp.sum(parts**2, axis=(1, 2)) + 1e-6
        return 100 / (1 + jnp.mean(jnp.stack(near)) / 0.1), jnp.stack([area, jnp.log(spread[0] / spread[1]) / 2])

    circle = np.zeros((4, count))
    circle[[0, 3], 0] = 1.0
    return Function(score, (0.0, -1.2), (8.0, 1.2), np.resize(circle, n) + 0.2 * normals(2060, n))
