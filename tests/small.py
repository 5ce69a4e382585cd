"""A search of milliseconds, for tests of what goes on around it."""

import jax.numpy as jnp

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
MEGA = dqd.cma_mega(0.5, batch_size=9)


def score(x):
    return 50 - jnp.sum(x**2), x[:2] + 0.1 * x[2:4] ** 2


def illuminate(function=score, emitter=MEGA, **options):
    settings = {"x0": jnp.zeros(6), "iterations": 40, "chunk": 10, "progress": False}
    return dqd.illuminate(function, emitter, GRID, **{**settings, **options})
