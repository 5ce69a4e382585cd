"""Numbers drawn in a row are those of jax.random, in any shape, alone and for many keys at once."""

import jax
import numpy as np
import pytest

from dqd.compiler.random import normals, uniforms


@pytest.mark.parametrize(("ours", "theirs"), [(normals, jax.random.normal), (uniforms, jax.random.uniform)])
def test_the_numbers_are_those_of_jax(ours, theirs):
    keys = jax.random.split(jax.random.key(5), 3)
    many = jax.jit(jax.vmap(lambda key: (ours(key, (7, 2)), theirs(key, (7, 2)))))(keys)
    np.testing.assert_array_equal(*many)
    np.testing.assert_array_equal(ours(keys[0], (4, 1, 2)), theirs(keys[0], (4, 1, 2)))
