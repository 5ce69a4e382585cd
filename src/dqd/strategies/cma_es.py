"""CMA-ES (Hansen 2016, arXiv:1604.00772) with positive weights, told by ranks and a masked number of parents.

One code for dimension 3 (CMA-MEGA's coefficients) and dimension 1000 (CMA-ME). The covariance is only needed when it is
decomposed, which is rare in high dimension. Until then an update is a few rows set aside,

    C = decay * C_base + sum_r weight_r row_r row_r^T,

merged by one matrix product when the decomposition is due. A restart sets a flag instead of writing an identity.

`rank_one="textbook"` is CMA-ES. `rank_one="dqd2021"` is the authors' code behind the paper's tables: the evolution path
p_c is not divided by sigma and the rank-one term carries c1 squared.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.compiler.unfused import once
from dqd.strategies.decomposition import Decomposition, refresh
from dqd.strategies.ranks import effective, flat, largest, recombination
from dqd.types import matmul, pytree, replace, static


@pytree
class CMAESState:
    """What changes. E counts evaluations since the last reset."""

    # With every generation:
    mean: Array  # (d,)
    sigma: Array
    path_c: Array  # (d,) p_c
    path_s: Array  # (d,) p_s
    evaluations: Array  # E
    # Set aside with every generation, empty after a decomposition:
    decay: Array  # what is left of the decomposed covariance
    rows: Array  # (slots * (lambda + 1), d) vectors
    weights: Array  # (slots * (lambda + 1),) their factors
    used: Array  # slots in use
    # When it is due:
    decomposition: Decomposition
    decomposed_at: Array  # E of the last one


@pytree
class CMAES:
    """Covariance matrix adaptation. `sigma` is the initial standard deviation; None where it is yet to be chosen."""

    sigma: float
    population: int = static()
    rank_one: Literal["textbook", "dqd2021"] = static(default="textbook")
    reasons = ("condition number", "step size", "flat values")  # the stop tests of the authors' code

    def __post_init__(self) -> None:
        if self.rank_one not in ("textbook", "dqd2021"):
            raise ValueError(f"rank_one: expected 'textbook' or 'dqd2021', got {self.rank_one!r}")
        if self.population < 2:
            raise ValueError(f"population: CMA-ES needs at least 2 samples, got {self.population}")

    def gap(self, d: int) -> float:
        """Evaluations between decompositions: 0.5 lambda / (d (c1 + cmu)), constants at mu = lambda / 2."""
        weights = recombination(self.population // 2, self.population, np.float64)
        c1, cmu = _rates(effective(weights), d)
        return 0.5 * self.population / (d * (c1 + cmu))

    def init(self, mean: Array) -> CMAESState:
        d = mean.size
        slots = math.floor(self.gap(d) / self.population) + 1
        count = jnp.zeros((), jnp.int32)
        return CMAESState(
            mean=mean,
            sigma=jnp.asarray(self.sigma, mean.dtype),
            path_c=jnp.zeros_like(mean),
            path_s=jnp.zeros_like(mean),
            evaluations=count,
            decomposed_at=count,
            decomposition=Decomposition.identity(d, mean.dtype),
            decay=jnp.ones((), mean.dtype),
            rows=jnp.zeros((slots * (self.population + 1), d), mean.dtype),
            weights=jnp.zeros(slots * (self.population + 1), mean.dtype),
            used=count,
        )

    def reset(self, state: CMAESState, when: Array, mean: Array) -> CMAESState:
        """Start afresh from `mean` where `when` holds. Matrices are forgotten by flag and weight, not rewritten."""

        def fresh(value: float | Array, old: Array) -> Array:
            return jnp.where(when, jnp.asarray(value, old.dtype), old)

        return replace(
            state,
            mean=fresh(mean, state.mean),
            sigma=fresh(self.sigma, state.sigma),
            path_c=fresh(0, state.path_c),
            path_s=fresh(0, state.path_s),
            evaluations=fresh(0, state.evaluations),
            decomposed_at=fresh(0, state.decomposed_at),
            decomposition=state.decomposition.forget(when),
            decay=fresh(1, state.decay),
            weights=fresh(0, state.weights),
            used=fresh(0, state.used),
        )

    def ask(self, state: CMAESState, normals: Array) -> tuple[CMAESState, Array]:
        """x = mean + sigma C^(1/2) z for standard normals z (lambda, d); decomposes C first if that is due."""
        state = self._decompose(state)
        return state, state.mean + state.sigma * state.decomposition.color(normals)

    def _decompose(self, state: CMAESState) -> CMAESState:
        due = state.evaluations > state.decomposed_at + self.gap(state.mean.size)
        return replace(
            state,
            decomposition=refresh(due, state.decomposition, state.decay, state.rows, state.weights),
            decomposed_at=jnp.where(due, state.evaluations, state.decomposed_at),
            decay=jnp.where(due, 1, state.decay),
            weights=jnp.where(due, 0, state.weights),
            used=jnp.where(due, 0, state.used),
        )

    def tell(self, state: CMAESState, points: Array, ranks: Array, parents: Array | int) -> CMAESState:
        """Learn from points (lambda, d) by their ranks (0 is best), using the first `parents`; from 0 nothing."""
        # Constants, table 1.
        d = state.mean.size
        by_rank = recombination(parents, self.population, state.mean.dtype)
        mueff = effective(by_rank)
        cc = (4 + mueff / d) / (d + 4 + 2 * mueff / d)
        cs = (mueff + 2) / (d + mueff + 5)
        c1, cmu = _rates(mueff, d)
        damps = 1 + cs + 2 * largest(0, ((mueff - 1) / (d + 1)) ** 0.5 - 1)

        # Mean, eqs. 41 and 42.
        evaluations = state.evaluations + self.population
        w = jnp.asarray(by_rank, state.mean.dtype)[ranks]  # (lambda,)
        mean = once(matmul(w, points))  # all that follows reads it, some of it several times
        y = mean - state.mean
        # Step-size path and its Heaviside, eqs. 43 and 45.
        path_s = (1 - cs) * state.path_s + (cs * (2 - cs) * mueff) ** 0.5 / state.sigma * state.decomposition.whiten(y)
        length = jnp.sum(path_s * path_s) / d
        generations = evaluations.astype(mean.dtype) / self.population
        h = (length / (1 - (1 - cs) ** (2 * generations)) < 2 + 4 / (d + 1)).astype(mean.dtype)
        # Covariance path and update, eqs. 45 and 47.
        textbook = self.rank_one == "textbook"
        path_c = (1 - cc) * state.path_c + h * (cc * (2 - cc) * mueff) ** 0.5 * (y / state.sigma if textbook else y)
        decay = 1 - c1 * (1 - (1 - h * h) * cc * (2 - cc)) - cmu
        rows = jnp.concatenate([(points - state.mean) / state.sigma, path_c[None]])
        weights = jnp.append(cmu * w, c1 if textbook else c1 * c1)
        # Step size, eq. 44 with |p_s|^2 in place of |p_s|.
        sigma = state.sigma * jnp.exp(jnp.minimum(1, cs / damps * (length - 1) / 2))

        learnt = jnp.asarray(parents > 0)
        decay = jnp.where(learnt, decay, 1)
        start = state.used * (self.population + 1)

        def learn(new: Array, old: Array) -> Array:
            return jnp.where(learnt, new, old)

        return replace(
            state,
            mean=learn(mean, state.mean),
            sigma=learn(sigma, state.sigma),
            path_c=learn(path_c, state.path_c),
            path_s=learn(path_s, state.path_s),
            evaluations=evaluations,
            decay=state.decay * decay,
            rows=jax.lax.dynamic_update_slice(state.rows, rows, (start, jnp.zeros_like(start))),
            weights=jax.lax.dynamic_update_slice(state.weights * decay, jnp.where(learnt, weights, 0), (start,)),
            used=state.used + learnt,
        )

    def covariance(self, state: CMAESState) -> Array:
        """C, with the rows that were set aside."""
        return state.decomposition.merged(state.decay, state.rows, state.weights)

    def stop(self, state: CMAESState, ranks: Array, value: Array) -> Array:
        """Condition number above 1e14, step size below 1e-11, values flat; by the lazily updated decomposition."""
        roots = state.decomposition.roots
        return jnp.stack(
            [
                roots.largest > 1e14 * roots.smallest,
                state.sigma * jnp.sqrt(roots.largest) < 1e-11,
                flat(ranks, value),
            ]
        )


def _rates(mueff: Any, d: int) -> tuple[Any, Any]:
    """Learning rates c1 and cmu of the rank-one and the rank-mu update, eqs. 57 and 58."""
    c1 = 2 / ((d + 1.3) ** 2 + mueff)
    cmu = 2 * (mueff - 2 + 1 / mueff) / ((d + 2) ** 2 + mueff)
    return c1, -largest(c1 - 1, -cmu)  # the smaller of 1 - c1 and cmu
