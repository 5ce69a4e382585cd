"""A strategy of one's own: a (mu, lambda) evolution strategy whose step size follows its path (CSA).

All directions are alike to it, where CMA-ES learns which pay. In CMA-MEGA there are only 1 + k of them.
"""

import jax.numpy as jnp
from jax import Array

import dqd
from dqd.emitters.arborescence import Arborescence
from dqd.types import matmul, pytree, replace, select, static


@pytree
class ESState:
    mean: Array  # (d,)
    sigma: Array
    path: Array  # (d,) the last steps, in units of sigma, faded


@pytree
class ES:
    """x = mean + sigma N(0, I); the mean moves to that of the parents, sigma grows while steps point the same way."""

    sigma: float
    population: int = static()
    reasons = ("step size",)

    def init(self, mean):
        return ESState(mean, jnp.asarray(self.sigma, mean.dtype), jnp.zeros_like(mean))

    def ask(self, state, normals):
        return state, state.mean + state.sigma * normals

    def tell(self, state, points, ranks, parents):
        d, mu = state.mean.size, jnp.maximum(parents, 1).astype(state.mean.dtype)
        mean = matmul((ranks < mu) / mu, points)
        c = (mu + 2) / (d + mu + 5)
        path = (1 - c) * state.path + jnp.sqrt(c * (2 - c) * mu) * (mean - state.mean) / state.sigma
        sigma = state.sigma * jnp.exp(jnp.minimum(1, c * (jnp.sum(path**2) / d - 1) / 2))
        return select(jnp.asarray(parents > 0), replace(state, mean=mean, sigma=sigma, path=path), state)

    def stop(self, state, ranks, value):
        return jnp.stack([state.sigma < 1e-11])  # one truth for each of the reasons

    def reset(self, state, when, mean):
        return select(when, self.init(mean), state)


def es_mega(sigma, batch_size=36):
    """CMA-MEGA with ES in place of CMA-ES."""
    return Arborescence(ES(float(sigma), batch_size - 1), {"learning_rate": 1.0})


if __name__ == "__main__":
    domain = dqd.LinearProjection("sphere", n=100)
    for name, emitter in {"CMA-ES": dqd.cma_mega(sigma=1.0), "ES": es_mega(sigma=1.0)}.items():
        result = dqd.illuminate(domain, emitter, domain.grid(50), x0=jnp.zeros(100), iterations=1000, progress=False)
        print(f"{name:6s} QD-score {result.qd_score:.2f}, coverage {result.coverage:.1f} %")
