"""sep-CMA-ES (Ros & Hansen 2008): CMA-ES whose covariance is a diagonal, for solutions of many numbers.

Memory and time grow with d instead of d^2 and d^3, and with so few numbers to learn the rates may be larger. They are
those of pycma's diagonal mode, without its offset of cmu:

    c1  = 1 / (d + 2 sqrt(d) + mueff / d)
    cmu = min(1 - c1, (mueff + 1 / mueff - 2) / (d + 4 sqrt(d) + mueff / 2))
    cc  = (1 + 1 / d + mueff / d) / (sqrt(d) + 1 / d + 2 mueff / d)

All else is CMA-ES, of whose update the diagonal is taken. Which numbers depend on each other is not learnt.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.strategies.ranks import effective, flat, largest, recombination
from dqd.types import matmul, pytree, replace, select, static


@pytree
class SepCMAESState:
    mean: Array  # (d,)
    sigma: Array
    path_c: Array  # (d,) p_c
    path_s: Array  # (d,) p_s
    variances: Array  # (d,) the diagonal of C
    evaluations: Array  # since the last reset


@pytree
class SepCMAES:
    """Separable covariance matrix adaptation. `sigma` is the initial standard deviation."""

    sigma: float
    population: int = static()
    reasons = ("condition number", "step size", "flat values")

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"population: sep-CMA-ES needs at least 2 samples, got {self.population}")

    def init(self, mean: Array) -> SepCMAESState:
        nothing, sigma = jnp.zeros_like(mean), jnp.asarray(self.sigma, mean.dtype)
        return SepCMAESState(mean, sigma, nothing, nothing, jnp.ones_like(mean), jnp.zeros((), jnp.int32))

    def reset(self, state: SepCMAESState, when: Array, mean: Array) -> SepCMAESState:
        """Start afresh from `mean` where `when` holds."""
        return select(when, self.init(mean), state)

    def ask(self, state: SepCMAESState, normals: Array) -> tuple[SepCMAESState, Array]:
        """x = mean + sigma sqrt(C) z for standard normals z (lambda, d)."""
        return state, state.mean + state.sigma * jnp.sqrt(state.variances) * normals

    def tell(self, state: SepCMAESState, points: Array, ranks: Array, parents: Array | int) -> SepCMAESState:
        """Learn from points (lambda, d) by their ranks (0 is best), using the first `parents`; from 0 nothing."""
        d = state.mean.size
        by_rank = recombination(parents, self.population, state.mean.dtype)
        mueff = effective(by_rank)
        cc = (1 + 1 / d + mueff / d) / (d**0.5 + 1 / d + 2 * mueff / d)
        cs = (mueff + 2) / (d + mueff + 5)
        c1 = 1 / (d + 2 * d**0.5 + mueff / d)
        cmu = -largest(c1 - 1, -(mueff + 1 / mueff - 2) / (d + 4 * d**0.5 + mueff / 2))
        damps = 1 + cs + 2 * largest(0, ((mueff - 1) / (d + 1)) ** 0.5 - 1)

        evaluations = state.evaluations + self.population
        w = jnp.asarray(by_rank, state.mean.dtype)[ranks]  # (lambda,)
        mean = matmul(w, points)
        y = mean - state.mean
        white = y / jnp.sqrt(state.variances)
        path_s = (1 - cs) * state.path_s + (cs * (2 - cs) * mueff) ** 0.5 / state.sigma * white
        length = jnp.sum(path_s * path_s) / d
        generations = evaluations.astype(mean.dtype) / self.population
        h = (length / (1 - (1 - cs) ** (2 * generations)) < 2 + 4 / (d + 1)).astype(mean.dtype)

        path_c = (1 - cc) * state.path_c + h * (cc * (2 - cc) * mueff) ** 0.5 * y / state.sigma
        decay = 1 - c1 * (1 - (1 - h * h) * cc * (2 - cc)) - cmu
        squares = matmul(w, ((points - state.mean) / state.sigma) ** 2)
        variances = decay * state.variances + c1 * path_c**2 + cmu * squares
        sigma = state.sigma * jnp.exp(jnp.minimum(1, cs / damps * (length - 1) / 2))

        learnt = SepCMAESState(mean, sigma, path_c, path_s, variances, evaluations)
        return select(jnp.asarray(parents > 0), learnt, replace(state, evaluations=evaluations))

    def stop(self, state: SepCMAESState, ranks: Array, value: Array) -> Array:
        """Condition number above 1e14, step size below 1e-11, values flat."""
        return jnp.stack(
            [
                jnp.max(state.variances) / jnp.min(state.variances) > 1e14,
                state.sigma * jnp.sqrt(jnp.max(state.variances)) < 1e-11,
                flat(ranks, value),
            ]
        )
