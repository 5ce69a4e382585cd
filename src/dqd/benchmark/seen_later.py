"""Functions that were unseen until auto had been run on them, on 17 November 2026; they have been looked at since."""

from __future__ import annotations

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, laid, near_zero, normals, within
from dqd.benchmark.truss import truss
from dqd.domains.linear_projection import LIMIT, clip


def seen_later(n: int = 100) -> dict[str, Function]:
    """`n` is 20, 36, 52, ...: a truss has so many bars."""
    return {
        "weighted-sphere": weighted("sphere", n, 1000),
        "weighted-rastrigin": weighted("rastrigin", n, 1010),
        "weighted-plateau": weighted("plateau", n, 1020),
        "rotated": rotated(n),
        "unequal-arm": unequal_arm(n, 2 * math.pi),
        "limited-joints": unequal_arm(n, 12 / n),
        "deep-network": deep_network(n, 2, reach=3.0),
        "deep-network-k4": deep_network(n, 4, reach=2.5),
        "deep-network-k8": deep_network(n, 8, reach=2.0),
        "truss": truss(n),
        "picture": picture(n),
        "noisy-network": noisy_network(n),
        "kinks": kinks(n),
    }


def weighted(objective: str, n: int, seed: int) -> Function:
    """A linear projection without symmetry: coordinates of random weight, in random blocks, from a random start."""
    random = np.random.default_rng(seed)
    weights, block, shift = random.uniform(0.5, 1.5, n), random.permutation(n) % 2, random.uniform(-2, 2, n)
    rows = np.stack([weights * (block == j) for j in range(2)])
    rows = rows / rows.sum(axis=1, keepdims=True)

    ripples = 10.0 if objective == "rastrigin" else 0.0
    worst = (LIMIT + 2) ** 2 + 2 * ripples

    def cost(x: Array) -> Array:
        d = x - shift
        if objective == "plateau":
            beyond = jnp.maximum(jnp.abs(x) - LIMIT, 0)
            return beyond * beyond
        return d * d + ripples * (1 - jnp.cos(2 * math.pi * d))

    def score(x: Array) -> tuple[Array, Array]:
        return 100 * (1 - jnp.mean(cost(x)) / worst), rows @ clip(x)

    return Function(score, *within(LIMIT), 2 * normals(seed + 1, n))


def rotated(n: int) -> Function:
    """A bowl whose axes, turned at random, differ by 1000 in weight, steep at its bottom; measures that flatten out."""
    turn, weights = np.linalg.qr(normals(1030, n, n))[0], np.logspace(0, 3, n) / 100
    rows = normals(1031, n, 2) / math.sqrt(n)

    def score(x: Array) -> tuple[Array, Array]:
        y = x @ turn
        return 100 / (1 + jnp.sqrt(1e-6 + jnp.mean(weights * y * y))), jnp.arcsinh(2 * x @ rows)

    return Function(score, *within(2.5), normals(1032, n))


def unequal_arm(n: int, limit: float) -> Function:
    """An arm of unequal links, crumpled at first, whose joints turn by less than `limit`."""
    links = np.random.default_rng(1040).uniform(0.5, 1.5, n)
    links = links / links.sum()

    def score(x: Array) -> tuple[Array, Array]:
        angles = limit * jnp.tanh(x / limit)
        directions = jnp.cumsum(angles)
        hand = jnp.stack([links @ jnp.cos(directions), links @ jnp.sin(directions)])
        return 100 * (1 - jnp.var(angles) / min(limit, 1.0) ** 2), hand

    return Function(score, *within(1.0), 0.5 * min(limit, 1.0) * normals(1041, n))


def deep_network(n: int, k: int, reach: float) -> Function:
    """Measures of three random layers; solutions count by their distance from a random one."""
    seed = 1050 + 10 * k
    first, second = normals(seed, n, 64) / math.sqrt(n), normals(seed + 1, 64, 32) / math.sqrt(64)
    third, middle = normals(seed + 2, 32, k) / math.sqrt(32), 0.5 * normals(seed + 3, n)

    def score(x: Array) -> tuple[Array, Array]:
        hidden = jnp.tanh(1.5 * jnp.tanh(1.5 * x @ first) @ second)
        return near_zero(x - middle, 1.5), hidden @ third

    return laid(score, 0.5 * normals(seed + 4, n), reach)


def picture(n: int) -> Function:
    """Blobs that together look like a ring with a dot; measures: how bright, and how far to the right.

    n / 5 blobs of five numbers: place (2), size, strength, and how oblong.
    """
    side = (np.arange(16) + 0.5) / 8 - 1
    across, up = (each.ravel() for each in np.meshgrid(side, side))
    distance = np.hypot(across, up)
    drawn = np.exp(-(((distance - 0.7) / 0.15) ** 2)) + np.exp(-(((distance - 0.1) / 0.2) ** 2))

    def score(x: Array) -> tuple[Array, Array]:
        blobs = x[: n // 5 * 5].reshape(-1, 5, 1)
        place, width = jnp.tanh(blobs[:, :2]), 0.25 * jnp.exp(0.5 * jnp.tanh(blobs[:, 2]))
        squares = ((across - place[:, 0]) / width) ** 2 + (
            (up - place[:, 1]) * jnp.exp(jnp.tanh(blobs[:, 4])) / width
        ) ** 2
        light = jnp.sum(jax.nn.softplus(blobs[:, 3]) * jnp.exp(-squares / 2), axis=0)
        image = 1 - jnp.exp(-light)
        likeness = 1 / (1 + jnp.mean((image - drawn) ** 2) / np.var(drawn))
        return 100 * likeness, jnp.stack([jnp.mean(image), image @ across / jnp.sum(image)])

    return Function(score, (0.0, -0.6), (0.9, 0.6), normals(1140, n))


def noisy_network(n: int) -> Function:
    """Noise of a cell in the measures and of 5 % in the objective, of which no gradient knows."""
    smooth = deep_network(n, 2, reach=3.0)
    width, waves = 2 * smooth.upper[0] / smooth.shape[0], normals(1150, n, 3)

    def score(x: Array) -> tuple[Array, Array]:
        noise = jax.lax.stop_gradient(jnp.sin(1e3 * (x @ waves)))
        objective, measures = smooth.score(x)
        return objective * (0.95 + 0.05 * noise[0]), measures + width * noise[1:]

    return replace(smooth, score=score)


def kinks(n: int) -> Function:
    """No function here is smooth: the largest and the least of several sums, and absolute values."""
    high, low, target = normals(1160, 8, n), normals(1161, 8, n), normals(1162, n)

    def score(x: Array) -> tuple[Array, Array]:
        ends = jnp.stack([jnp.max(high @ x) + jnp.min(low @ x), jnp.max(low @ jnp.abs(x)) + jnp.min(high @ x)])
        return 100 / (1 + jnp.mean(jnp.abs(x - target))), ends / math.sqrt(n)

    return laid(score, normals(1163, n), reach=4.0)
