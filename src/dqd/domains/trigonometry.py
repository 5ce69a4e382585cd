"""Cosines, sines and sums in forms that a CPU computes many at a time.

XLA calls a library for each cosine of a CPU program, computes what is summed number by number, and adds up a running
sum in many passes. In float32 on a CPU these are polynomials of an angle less its whole turns, and products with ones:
as exact, and several times as fast. Elsewhere they are the plain formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import matmul

TURN = 2 * math.pi
BLOCK = 32  # terms of a running sum that one product adds up
# 2 pi in three parts of few digits: their products with thousands of turns are exact in float32.
PARTS = (6.28125, 0.0019350051879882812, TURN - 6.28125 - 0.0019350051879882812)


def _fitted(function: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """Coefficients of an even function of turns within half a turn, as a polynomial of their square."""
    nodes = (np.cos(np.pi * (np.arange(400) + 0.5) / 400) + 1) / 8  # squares from 0 to 1/4
    fit = np.polynomial.Chebyshev.fit(nodes, function(np.sqrt(nodes)), 8, domain=[0, 0.25])
    return [float(number) for number in fit.convert(kind=np.polynomial.Polynomial).coef]


COSINE = _fitted(lambda turns: np.cos(TURN * turns))
SINE = _fitted(lambda turns: np.sin(TURN * turns) / turns)  # of one turn: times the turns it is odd again


def quick(x: Array) -> bool:
    return x.dtype == jnp.float32 and jax.default_backend() == "cpu"


@jax.custom_jvp
def cos_turns(turns: Array) -> Array:
    """cos(2 pi turns)."""
    if not quick(turns):
        return jnp.cos(TURN * turns)
    rest = turns - jnp.round(turns)
    return _polynomial(COSINE, rest * rest)


@jax.custom_jvp
def sin_turns(turns: Array) -> Array:
    """sin(2 pi turns)."""
    if not quick(turns):
        return jnp.sin(TURN * turns)
    rest = turns - jnp.round(turns)
    return rest * _polynomial(SINE, rest * rest)


cos_turns.defjvps(lambda tangent, _, turns: -TURN * sin_turns(turns) * tangent)
sin_turns.defjvps(lambda tangent, _, turns: TURN * cos_turns(turns) * tangent)


def cosine(angle: Array) -> Array:
    """cos(angle)."""
    return cos_turns(_turns(angle)) if quick(angle) else jnp.cos(angle)


def sine(angle: Array) -> Array:
    """sin(angle)."""
    return sin_turns(_turns(angle)) if quick(angle) else jnp.sin(angle)


def total(x: Array) -> Array:
    """The sum along the last axis, (..., n) -> (...).

    As a product with ones, so that what is summed is computed before, many numbers at a time.
    """
    return matmul(x, jnp.ones(x.shape[-1], x.dtype)) if quick(x) else jnp.sum(x, axis=-1)


def running_sum(x: Array) -> Array:
    """x_0, x_0 + x_1, ...: (n,)."""
    if not quick(x) or x.size <= BLOCK:
        return jnp.cumsum(x)
    rows = jnp.pad(x, (0, -x.size % BLOCK)).reshape(-1, BLOCK)
    within = matmul(rows, jnp.asarray(np.triu(np.ones((BLOCK, BLOCK), np.float32))))
    before = jnp.cumsum(within[:, -1]) - within[:, -1]
    return (within + before[:, None]).reshape(-1)[: x.size]


def _turns(angle: Array) -> Array:
    """An angle in turns, less the whole ones."""
    whole = jnp.round(angle / TURN)
    for part in PARTS:
        angle = angle - whole * part
    return angle / TURN


def _polynomial(coefficients: list[float], x: Array) -> Array:
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
