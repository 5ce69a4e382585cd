"""A small search of two seeds, for all figures."""

import jax.numpy as jnp
import pytest
from small import score

import dqd


@pytest.fixture(scope="session")
def results():
    grid = dqd.Grid([-4, -4], [4, 4], [6, 5])
    options = {"x0": jnp.zeros(6), "iterations": 4, "seeds": [3, 5], "progress": False}
    return dqd.illuminate(score, dqd.random_sampling(batch_size=4), grid, **options)
