"""A first map: give one function, get the best solution for every combination of two measures."""

import jax.numpy as jnp

import dqd


def score(x):  # one solution, here 100 numbers -> how good it is, and what it is like
    objective = 30 - jnp.mean((x - 1) ** 2 + 3 * jnp.sin(3 * x) ** 2)
    return objective, jnp.array([x[:50].mean(), x[50:].mean()])


grid = dqd.Grid(lower=[-4, -4], upper=[4, 4], shape=[100, 100])
result = dqd.illuminate(score, dqd.cma_mega(sigma=1.0), grid, x0=jnp.zeros(100), bounds=(-4, 4), iterations=10_000)

print(result)
result.plot("first-map.png")
