"""LM-MA-ES (Loshchilov, Glasmachers & Beyer 2017, arXiv:1705.06693): limited-memory matrix adaptation.

Instead of a covariance it keeps m = 4 + 3 ln d paths m_i, each of which remembers steps over another time. A sample
z ~ N(0, I) is stretched along one after the other,

    y <- (1 - c_i) y + c_i (m_i . y) m_i,      c_i = 1 / (1.5^(i - 1) d),     i = 1 .. m,     y = z at first,

so memory and time grow with m d. With r_i = c_i / (1 - c_i), G = M M^T and the rows m_i of M, all m steps are

    y = s (z + M^T (r * b)),      (I - lower(G) r) b = M z,      s = prod_i (1 - c_i),

two products with M and a triangular system of m numbers. The way back, from a mean step to the z that made it, is
(I + upper(G) r) b = M y / s, z = y / s - M^T (r * b). Rates are bounded by 1, which matters below d = 2 lambda alone.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from dqd.strategies.ranks import effective, flat, recombination
from dqd.types import matmul, pytree, select, static


@pytree
class LMMAESState:
    mean: Array  # (d,)
    sigma: Array
    path_s: Array  # (d,) p_sigma
    paths: Array  # (m, d) m_i, each in units of z
    learnt: Array  # generations that taught: a path takes part from its own on


@pytree
class LMMAES:
    """Limited-memory matrix adaptation. `sigma` is the initial standard deviation; None: yet to be chosen."""

    sigma: float
    population: int = static()
    reasons = ("step size", "flat values")

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"population: LM-MA-ES needs at least 2 samples, got {self.population}")

    def init(self, mean: Array) -> LMMAESState:
        if mean.size < 2:
            raise ValueError("LM-MA-ES: with a single number there is no direction to learn; take strategy='cma-es'")
        paths = jnp.zeros((4 + math.floor(3 * math.log(mean.size)), mean.size), mean.dtype)
        sigma = jnp.asarray(self.sigma, mean.dtype)
        return LMMAESState(mean, sigma, jnp.zeros_like(mean), paths, jnp.zeros((), jnp.int32))

    def reset(self, state: LMMAESState, when: Array, mean: Array) -> LMMAESState:
        """Start afresh from `mean` where `when` holds."""
        return select(when, self.init(mean), state)

    def ask(self, state: LMMAESState, normals: Array) -> tuple[LMMAESState, Array]:
        """x = mean + sigma y, each y made of a row of standard normals z (lambda, d)."""
        r, s = _stretch(state)
        lower = jnp.eye(r.size, dtype=r.dtype) - jnp.tril(_gram(state), -1) * r
        b = solve_triangular(lower, matmul(state.paths, normals.T), lower=True)  # (m, lambda)
        return state, state.mean + state.sigma * s * (normals + matmul(b.T * r, state.paths))

    def _back(self, state: LMMAESState, y: Array) -> Array:
        """The z (d,) that was stretched into y."""
        r, s = _stretch(state)
        upper = jnp.eye(r.size, dtype=r.dtype) + jnp.triu(_gram(state)) * r
        b = solve_triangular(upper, matmul(state.paths, y / s))
        return y / s - matmul(b * r, state.paths)

    def tell(self, state: LMMAESState, points: Array, ranks: Array, parents: Array | int) -> LMMAESState:
        """Learn from points (lambda, d) by their ranks (0 is best), using the first `parents`; from 0 nothing."""
        d, count = state.mean.size, state.paths.shape[0]
        by_rank = recombination(parents, self.population, state.mean.dtype)
        mueff = effective(by_rank)
        cs = min(1.0, 2 * self.population / d)
        cc = jnp.asarray(np.minimum(1.0, self.population / (4.0 ** np.arange(count) * d)), state.mean.dtype)[:, None]

        mean = matmul(jnp.asarray(by_rank, state.mean.dtype)[ranks], points)
        z = self._back(state, (mean - state.mean) / state.sigma)
        path_s = (1 - cs) * state.path_s + (mueff * cs * (2 - cs)) ** 0.5 * z
        paths = (1 - cc) * state.paths + (mueff * cc * (2 - cc)) ** 0.5 * z
        sigma = state.sigma * jnp.exp(cs / 2 * (jnp.sum(path_s * path_s) / d - 1))
        return select(jnp.asarray(parents > 0), LMMAESState(mean, sigma, path_s, paths, state.learnt + 1), state)

    def stop(self, state: LMMAESState, ranks: Array, value: Array) -> Array:
        """Step size below 1e-11, values flat."""
        return jnp.stack([state.sigma < 1e-11, flat(ranks, value)])


def _gram(state: LMMAESState) -> Array:
    return matmul(state.paths, state.paths.T)


def _stretch(state: LMMAESState) -> tuple[Array, Array]:
    """r (m,), 0 for paths that do not take part yet, and s."""
    count, d = state.paths.shape
    c = jnp.where(np.arange(count) < state.learnt, (1 / (1.5 ** np.arange(count) * d)).astype(state.mean.dtype), 0)
    return c / (1 - c), jnp.prod(1 - c)
