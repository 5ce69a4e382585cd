"""Networks with random weights as measures: smooth, with attention, of pieces, and with ripples."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, laid, near_zero, normals


def sine_network(n: int, k: int) -> Function:
    """Measures of two layers of sines (Sitzmann et al. 2020); best near a random solution."""
    first, second = 1.5 * normals(3100, n, 48) / math.sqrt(n), 1.5 * normals(3101, 48, 48) / math.sqrt(48)
    last, middle = normals(3102, 48, k) / math.sqrt(48), 0.7 * normals(3103, n)

    def score(x: Array) -> tuple[Array, Array]:
        return near_zero(x - middle), jnp.sin(2 * jnp.sin(x @ first) @ second) @ last

    return laid(score, 0.5 * normals(3104, n), reach=3.0)


def attention(n: int, k: int) -> Function:
    """Measures of two layers of attention (Vaswani et al. 2017) over n / 5 tokens; best if neighbours are alike."""
    count, width = n // 5, 12
    into, place = normals(3110, 5, width) / math.sqrt(5), normals(3111, count, width)
    layers, last = normals(3112, 2, 3, width, width) / math.sqrt(width), normals(3113, width, k) / math.sqrt(width)

    def score(x: Array) -> tuple[Array, Array]:
        tokens = x[: 5 * count].reshape(count, 5)
        hidden = jnp.tanh(tokens @ into + place)
        for query, key, value in layers:
            looks = jax.nn.softmax((hidden @ query) @ (hidden @ key).T / math.sqrt(width))
            hidden = hidden + jnp.tanh(looks @ hidden @ value)
        unlike = jnp.mean(jnp.diff(tokens, axis=0) ** 2)
        return near_zero(x, 1.5) / (1 + unlike), jnp.mean(hidden, axis=0) @ last

    return laid(score, 0.5 * normals(3114, n), reach=3.5)


def maxout(n: int) -> Function:
    """Full of kinks: layers of the largest of four sums (Goodfellow et al. 2013), mean and largest distance."""
    first, second = normals(3120, n, 32, 4) / math.sqrt(n), normals(3121, 32, 16, 4) / math.sqrt(32)
    last, target = normals(3122, 16, 2) / math.sqrt(16), normals(3123, n)

    def score(x: Array) -> tuple[Array, Array]:
        hidden = jnp.max(jnp.einsum("i,ijp->jp", x, first), axis=1)
        hidden = jnp.max(jnp.einsum("i,ijp->jp", hidden, second), axis=1)
        apart = jnp.abs(x - target)
        return 100 / (1 + jnp.mean(apart) + 0.2 * jnp.max(apart)), hidden @ last

    return laid(score, 0.5 * normals(3124, n), reach=4.0)


def rippled_network(n: int) -> Function:
    """Ripples of half a cell on a network, about as steep as what they lie on: gradients know them, and are misled."""
    first, second = normals(3130, n, 40) / math.sqrt(n), normals(3131, 40, 2) / math.sqrt(40)
    middle, waves = 0.5 * normals(3132, n), 2 * normals(3133, n, 3)

    def smooth(x: Array) -> tuple[Array, Array]:
        return near_zero(x - middle), jax.nn.swish(2 * x @ first) @ second

    without = laid(smooth, 0.5 * normals(3134, n), reach=4.0)
    half = (np.array(without.upper) - np.array(without.lower)) / (2 * np.array(without.shape))

    def score(x: Array) -> tuple[Array, Array]:
        objective, measures = smooth(x)
        ripples = jnp.sin(x @ waves)
        return objective * (0.98 + 0.02 * ripples[0]), measures + half * ripples[1:]

    return Function(score, without.lower, without.upper, without.x0)
