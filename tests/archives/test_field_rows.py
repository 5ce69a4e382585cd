"""Rows of fields, written as each platform does it."""

import jax
import jax.numpy as jnp
import pytest

from dqd.archives.field_rows import set_rows


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize(("row", "expected"), [(2, [0, 0, 7, 0]), (0, [7, 0, 0, 0]), (4, [0, 0, 0, 0])])
def test_a_row_alone_is_written_or_dropped_on_every_platform(monkeypatch, platform, row, expected):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    assert set_rows(jnp.zeros(4, jnp.int32), jnp.array([row]), jnp.array([7])).tolist() == expected
    solutions = set_rows(jnp.zeros((4, 2)), jnp.array([row]), jnp.array([[7.0, 7.0]]))
    assert solutions.tolist() == [[value, value] for value in expected]
