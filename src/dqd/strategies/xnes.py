"""xNES: exponential natural evolution strategies (Glasmachers, Schaul, Sun, Wierstra & Schmidhuber 2010).

It follows the natural gradient of the expected rank. Samples are x = mean + sigma B s with s ~ N(0, I); with utilities
u_k of the ranks, which sum to 0,

    G_delta = sum_k u_k s_k,    G_M = sum_k u_k s_k s_k^T,    G_sigma = tr(G_M) / d,    G_B = G_M - G_sigma I
    mean <- mean + sigma B G_delta,    sigma <- sigma exp(eta / 2 G_sigma),    B <- B exp(eta / 2 G_B)
    eta = 3 (3 + ln d) / (5 d sqrt(d))

There is no path: every generation counts for itself, by all its samples, the worse half too. That forgives rankings
which are noisy. Keeps 2 d x d numbers and decomposes a matrix with every generation: O(d^3).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from dqd.strategies.eigen import eigh
from dqd.strategies.ranks import flat, recombination
from dqd.types import matmul, pytree, select, static


@pytree
class XNESState:
    mean: Array  # (d,)
    sigma: Array
    shape: Array  # (d, d) B, of determinant 1
    inverse: Array  # (d, d) of B


@pytree
class XNES:
    """Exponential natural evolution strategy. `sigma` is the initial standard deviation; None: yet to be chosen."""

    sigma: float
    population: int = static()
    reasons = ("step size", "flat values")

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"population: xNES needs at least 2 samples, got {self.population}")

    def init(self, mean: Array) -> XNESState:
        identity = jnp.eye(mean.size, dtype=mean.dtype)
        return XNESState(mean, jnp.asarray(self.sigma, mean.dtype), identity, identity)

    def reset(self, state: XNESState, when: Array, mean: Array) -> XNESState:
        """Start afresh from `mean` where `when` holds."""
        return select(when, self.init(mean), state)

    def ask(self, state: XNESState, normals: Array) -> tuple[XNESState, Array]:
        """x = mean + sigma B s for standard normals s (lambda, d)."""
        return state, state.mean + state.sigma * matmul(normals, state.shape.T)

    def tell(self, state: XNESState, points: Array, ranks: Array, parents: Array | int) -> XNESState:
        """Learn from points (lambda, d) by their ranks (0 is best); from 0 `parents` nothing.

        u_k = max(0, ln(parents + 1) - ln k) / sum - 1 / lambda: with half of the samples as parents the paper's.
        """
        d = state.mean.size
        utility = recombination(parents, self.population, state.mean.dtype, shift=1.0) - 1 / self.population
        u = jnp.asarray(utility, state.mean.dtype)[ranks]  # (lambda,)
        s = matmul((points - state.mean) / state.sigma, state.inverse.T)
        gradient = matmul(s.T * u, s)  # G_M, the I of each outer product left out, for the u sum to 0
        along = jnp.trace(gradient) / d
        eta = 3 * (3 + math.log(d)) / (5 * d * math.sqrt(d))
        mean = state.mean + state.sigma * matmul(state.shape, matmul(u, s))
        sigma = state.sigma * jnp.exp(eta / 2 * along)
        # The exponential of a symmetric matrix, and its inverse, from one decomposition.
        exponents, basis = eigh(eta / 2 * (gradient - along * jnp.eye(d, dtype=u.dtype)))
        shape = matmul(state.shape, matmul(basis * jnp.exp(exponents), basis.T))
        inverse = matmul(matmul(basis * jnp.exp(-exponents), basis.T), state.inverse)
        inverse = 2 * inverse - matmul(inverse, matmul(shape, inverse))  # Newton: what both rounded does not add up
        return select(jnp.asarray(parents > 0), XNESState(mean, sigma, shape, inverse), state)

    def stop(self, state: XNESState, ranks: Array, value: Array) -> Array:
        """Step size below 1e-11, values flat."""
        return jnp.stack([state.sigma < 1e-11, flat(ranks, value)])
