"""C^(1/2) and C^(-1/2) of a covariance: by its eigenvectors, or by matrix products alone.

A GPU takes the eigenvectors of many matrices one after the other, but multiplies all of them at once. There the coupled
iteration of Newton and Schulz (Higham 2008, Functions of Matrices, eq. 6.35) does with products,

    Y = C / s,   Z = I;      T = rho / 2 (3 I - rho^2 Z Y),   Y <- Y T,   Z <- T Z

Y tends to (C / s)^(1/2) and Z to its inverse, with s at least the largest eigenvalue. The root t of each eigenvalue of
C / s goes towards 1 by t <- rho / 2 t (3 - rho^2 t^2). With t in [l, 1] the best rho is sqrt(3 / (1 + l + l^2)) (Chen &
Chow 2014); it is bounded here, for near sqrt(3) it takes t = 1 to 0, and with it the digits of the largest eigenvalues.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.strategies.eigen import UNROLLED, eigh
from dqd.types import matmul, pytree

MOST = 1.6  # rho; then t = 1 goes to 0.35, and small ones still grow by 2.4
RESOLVED = 0.1  # how far from I the last T may be
SURE = 0.99  # of a bound of the eigenvalues: round-off may lead beyond it


@pytree
class Roots:
    """Of one covariance. The extremes are exact by eigenvectors, and bounds by products."""

    root: Array  # (d, d) symmetric
    inverse: Array  # (d, d) of the root
    smallest: Array  # () eigenvalue, 0 if beyond the precision
    largest: Array  # ()


def roots(covariance: Array, least: Array) -> Roots:
    """As it is quickest on the device that runs it. No eigenvalue lies below `least`."""
    if covariance.shape[-1] <= UNROLLED:
        return by_eigenvectors(covariance)
    return jax.lax.platform_dependent(
        covariance, least, cpu=lambda covariance, least: by_eigenvectors(covariance), default=by_products
    )


def by_eigenvectors(covariance: Array) -> Roots:
    """C = B D B^T, C^(1/2) = B D^(1/2) B^T."""
    eigenvalues, basis = eigh(covariance)
    # Round-off can push the smallest eigenvalue of an ill-conditioned C below zero; the stop test then sees it.
    eigenvalues = jnp.maximum(eigenvalues, jnp.finfo(eigenvalues.dtype).tiny)
    scales = jnp.sqrt(eigenvalues)
    root, inverse = matmul(basis * scales, basis.T), matmul(basis / scales, basis.T)
    return Roots(root, inverse, jnp.min(eigenvalues), jnp.max(eigenvalues))


def by_products(covariance: Array, least: Array | float = 0.0) -> Roots:
    """The coupled iteration, as often as the precision can gain by it: 13 times in float32, 25 in float64.

    Where no eigenvalue lies below `least` it takes fewer: 2 or 3 for what is nearly I.
    """
    identity, bound = jnp.eye(covariance.shape[-1], dtype=covariance.dtype), _bound(covariance)
    eps = float(jnp.finfo(covariance.dtype).eps)

    def unfinished(carry: tuple[Array, Array, Array, Array, Array]) -> Array:
        *_, low, steps = carry
        return ~(1 - low <= eps) & (steps < _steps(eps))  # also where low is not a number

    def step(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        y, z, _, low, steps = carry
        rho = _rho(low)
        t = rho / 2 * (3 * identity - rho * rho * matmul(z, y))
        return matmul(y, t), matmul(t, z), t, _after(low, rho), steps + 1

    low = jnp.sqrt(jnp.clip(SURE * least / bound, eps, 1))
    begin = (covariance / bound, identity, identity, low, jnp.zeros((), jnp.int32))
    y, z, t, *_ = jax.lax.while_loop(unfinished, step, begin)
    scale = jnp.sqrt(bound)
    root, inverse = (y + y.T) / 2 * scale, (z + z.T) / 2 / scale
    resolved = jnp.max(jnp.abs(t - identity)) < RESOLVED
    smallest = jnp.maximum(1 / jnp.sum(inverse * inverse), least)
    return Roots(root, inverse, jnp.where(resolved, smallest, 0), bound)


def _bound(covariance: Array) -> Array:
    """At least the largest eigenvalue: mean + sqrt((d - 1) variance) of all of them (Wolkowicz & Styan 1980)."""
    d = covariance.shape[-1]
    mean = jnp.trace(covariance) / d
    variance = jnp.maximum(jnp.sum(covariance * covariance) / d - mean * mean, 0)
    return mean + jnp.sqrt((d - 1) * variance)


@functools.cache
def _steps(eps: float) -> int:
    """Until eigenvalues of eps times the largest have become 1 as well."""
    low, steps = np.sqrt(eps), 0
    while 1 - low > eps:
        low, steps = _after(low, _rho(low)), steps + 1
    return steps


def _rho(low: Any) -> Any:
    xp = jnp if isinstance(low, Array) else np
    return xp.minimum(MOST, xp.sqrt(3 / (1 + low + low * low)))


def _after(low: Any, rho: Any) -> Any:
    """The least of what [low, 1] becomes: at one of its ends."""
    xp = jnp if isinstance(low, Array) else np
    return xp.minimum(rho / 2 * low * (3 - rho * rho * low * low), rho / 2 * (3 - rho * rho))
