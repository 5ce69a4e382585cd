"""Numbers of the user's own beside every elite: arrays by name, with a row for each cell, NaN where not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.inputs.fields import Shapes


def unknown(rows: int, shapes: Shapes | None, dtype: Any) -> dict[str, Array] | None:
    """Fields of which nothing is known yet; None where there are none."""
    return {name: jnp.full((rows, *shape), jnp.nan, dtype) for name, shape in (shapes or {}).items()} or None


def shapes_of(fields: Mapping[str, Any] | None) -> dict[str, tuple[int, ...]]:
    return {name: values.shape[1:] for name, values in (fields or {}).items()}


def written(
    fields: dict[str, Array] | None, row: Array | np.ndarray, told: Mapping[str, Any]
) -> dict[str, Array] | None:
    """The fields with rows replaced: by what was told, NaN where it was not."""
    if fields is None:
        return None
    known = {**(unknown(len(row), shapes_of(fields), None) or {}), **told}
    return {name: set_rows(values, row, known[name]) for name, values in fields.items()}


def set_rows(field: Array, row: Array | np.ndarray, values: Array | np.ndarray) -> Array:
    # Rows are unique apart from the sentinel, which is out of range and dropped.
    if len(row) == 1 and jax.default_backend() != "cpu":
        # One alone a GPU would read, change and write in two kernels: beside one that is dropped it is one.
        row, values = jnp.append(row, len(field)), jnp.broadcast_to(values, (2, *values.shape[1:]))
    return field.at[row].set(values.astype(field.dtype), mode="drop")
