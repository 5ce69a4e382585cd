"""OpenAI-ES (Salimans, Ho, Chen, Sidor & Sutskever 2017, arXiv:1703.03864): a gradient estimated from ranks.

    x = mean +- sigma z,     g = 1 / (lambda sigma) sum_i u_i z_i,     mean <- mean + Adam(g)

Samples come in mirrored pairs; of an odd number the last one has no mirror. The utilities u are centred ranks, from 1/2
for the best to -1/2 for the worst. sigma stays: only the mean learns, so memory and time grow with d. Adam's steps are
as long whatever the gradient, RATE sigma per number: the authors had 0.01 beside a sigma of 0.02. Their weight decay,
which draws solutions towards 0, is left out.
"""

from __future__ import annotations

import jax.numpy as jnp
import optax
from jax import Array

from dqd.strategies.ranks import flat
from dqd.types import PyTree, matmul, pytree, select, static

RATE = 0.5  # of sigma
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


@pytree
class OpenAIESState:
    mean: Array  # (d,)
    adam: PyTree
    moved: Array  # how far the last step went, as a share of |mean|


@pytree
class OpenAIES:
    """The evolution strategy of OpenAI. `sigma` is the standard deviation; None where it is yet to be chosen."""

    sigma: float
    population: int = static()
    reasons = ("mean at rest", "flat values")

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"population: OpenAI-ES needs at least 2 samples, got {self.population}")

    def init(self, mean: Array) -> OpenAIESState:
        return OpenAIESState(mean, ADAM.init(mean), jnp.asarray(jnp.inf, mean.dtype))

    def reset(self, state: OpenAIESState, when: Array, mean: Array) -> OpenAIESState:
        """Start afresh from `mean` where `when` holds."""
        return select(when, self.init(mean), state)

    def ask(self, state: OpenAIESState, normals: Array) -> tuple[OpenAIESState, Array]:
        """Of standard normals (lambda, d) the first half, their mirrors, and with an odd lambda the last one."""
        half = self.population // 2
        mirrored = jnp.concatenate([normals[:half], -normals[:half], normals[2 * half :]])
        return state, state.mean + self.sigma * mirrored

    def tell(self, state: OpenAIESState, points: Array, ranks: Array, parents: Array | int) -> OpenAIESState:
        """Learn from all points (lambda, d) by their ranks (0 is best); from 0 `parents` nothing."""
        u = 0.5 - ranks.astype(state.mean.dtype) / (self.population - 1)
        gradient = matmul(u, (points - state.mean) / self.sigma) / (self.population * self.sigma)
        direction, adam = ADAM.update(gradient, state.adam)
        step = RATE * self.sigma * direction
        mean = state.mean + step
        moved = jnp.linalg.norm(step) / jnp.linalg.norm(mean)
        return select(jnp.asarray(parents > 0), OpenAIESState(mean, adam, moved), state)

    def stop(self, state: OpenAIESState, ranks: Array, value: Array) -> Array:
        """The mean moves by less than 1e-9 of its length, values flat."""
        return jnp.stack([state.moved < 1e-9, flat(ranks, value)])
