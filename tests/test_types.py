"""Products of matrices, in the forms that a CPU and a GPU are given."""

import jax
import numpy as np
import pytest

from dqd.types import matmul

SHAPES = [
    ((35,), (35, 3)),
    ((35, 3), (3, 3)),
    ((3, 3), (3,)),
    ((100, 100), (100,)),
    ((36, 40), (40, 7)),
    ((3,), (3, 9)),
]


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_a_product_is_that_of_numpy_in_every_form(left, right, backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in (left, right))
    product = jax.jit(lambda a, b: matmul(a, b))(a, b)
    np.testing.assert_allclose(product, a @ b, rtol=1e-4, atol=1e-5)
