"""Arrays of any kind."""

import jax
import jax.numpy as jnp
import numpy as np

from dqd.inputs.arrays import filled

ROWS = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def test_the_last_row_fills_up_what_is_missing():
    expected = [[0, 1], [2, 3], [4, 5], [4, 5], [4, 5]]
    for rows, kind in ((ROWS, np.ndarray), (jnp.asarray(ROWS), jax.Array)):
        assert isinstance(filled(rows, 5), kind)
        np.testing.assert_array_equal(filled(rows, 5), expected)
        assert filled(rows, 3) is rows
    np.testing.assert_array_equal(jax.jit(lambda rows: filled(rows, 5))(ROWS), expected)
