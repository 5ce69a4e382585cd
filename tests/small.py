"""A search of milliseconds, for tests of what goes on around it."""

import jax
import jax.numpy as jnp
import pytest

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
MEGA = dqd.cma_mega(0.5, batch_size=9)
add = jax.jit(dqd.Archive.add)  # one program for a batch of a size, where op by op it is dozens


class Jitted:
    """The methods of an emitter, or of a network, as programs.

    Op by op, every shape of every operation is compiled for itself.
    """

    def __init__(self, tree):
        self._tree = tree

    def __getattr__(self, name):
        method = getattr(type(self._tree), name, None)
        if not callable(method):
            return getattr(self._tree, name)

        def call(*arguments):
            sizes = [place for place, value in enumerate(arguments, 1) if isinstance(value, int)]
            return jax.jit(method, static_argnums=sizes)(self._tree, *arguments)

        return call


def mostly_long(cases, *quick):
    """All cases for `parametrize`: these few in every test run, the others with -m long."""

    def marked(case):
        return pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.long)

    return [case if case in quick else marked(case) for case in cases]


def score(x):
    return 50 - jnp.sum(x**2), x[:2] + 0.1 * x[2:4] ** 2


def illuminate(function=score, emitter=MEGA, **options):
    settings = {"x0": jnp.zeros(6), "iterations": 40, "chunk": 10, "progress": False}
    return dqd.illuminate(function, emitter, GRID, **{**settings, **options})
