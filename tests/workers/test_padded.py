"""A JAX domain on a worker: one compiled program whatever is asked."""

import jax.numpy as jnp
import numpy as np

from dqd.domains.function import FunctionDomain
from dqd.workers.padded import OnHost


def traced_domain():
    traced = []

    def score(x):
        traced.append(x.dtype)
        return -jnp.sum(x**2), x[:2]

    return FunctionDomain(score), traced


def test_a_domain_is_compiled_for_one_size_only():
    domain, traced = traced_domain()
    host, x = OnHost(domain, rows=4), np.arange(12, dtype=np.float32).reshape(4, 3)
    for count in (4, 1, 3):
        found = host.evaluate(x[:count])
        np.testing.assert_array_equal(found.objective, -(x[:count] ** 2).sum(1))
        np.testing.assert_array_equal(found.measures, x[:count, :2])
        assert isinstance(found.objective, np.ndarray)
    assert traced == [jnp.float32]


def test_the_precision_is_that_of_the_solutions():
    domain, traced = traced_domain()
    found = OnHost(domain, rows=None).evaluate_with_jacobian(np.full((1, 3), 1 / 3))
    assert traced[0] == np.float64
    np.testing.assert_allclose(found.jacobian[0], [[-2 / 3] * 3, [1, 0, 0], [0, 1, 0]], rtol=1e-15)
