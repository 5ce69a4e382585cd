"""The nearest of some points; of equally near ones the first. One formula for NumPy and JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

AT_ONCE = 2**22  # squared distances that NumPy holds


def squares(rows: Any, points: Any) -> Any:
    """Squared distances of rows (..., k) and points (..., m, k): (..., m). NumPy and JAX add in the same order."""
    total = (rows[..., None, 0] - points[..., 0]) ** 2
    for axis in range(1, rows.shape[-1]):
        total = total + (rows[..., None, axis] - points[..., axis]) ** 2
    return total


def first_least(xp: Any, values: Any) -> Any:
    """The place of the least of values (b, m), (b,); of several the first. XLA's argmin takes many times as long."""
    count = values.shape[1]
    places = xp.where(values == xp.min(values, axis=1, keepdims=True), xp.arange(count, dtype=xp.int32), count - 1)
    return xp.min(places, axis=1)


def least(xp: Any, values: Any, count: int) -> Any:
    """The places of the `count` least of values (..., m), the least first, of equal ones the first: (..., count)."""
    if xp is np:
        return np.argsort(values, axis=-1, kind="stable")[..., :count].astype(np.int32)
    return sys.modules["jax"].lax.top_k(-values, count)[1]


def directly(xp: Any, rows: Any, points: Any) -> Any:
    """The number of the point (m, k) nearest to each row (b, k), int32."""
    return first_least(xp, squares(rows, points))


def in_blocks(find: Callable[..., np.ndarray], rows: np.ndarray, points: np.ndarray, width: int) -> np.ndarray:
    """What `find` says of all rows (b, k), some at a time: each of them takes `width` numbers."""
    step = max(AT_ONCE // width, 1)
    return np.concatenate([find(np, rows[i : i + step], points) for i in range(0, max(len(rows), 1), step)])


def if_any(xp: Any, condition: Any, function: Callable[[], Any], otherwise: Any) -> Any:
    """What the function returns, if the condition holds for any row; else `otherwise`, and nothing is computed.

    Whoever hands in arrays of JAX has loaded it. On a GPU a branch would wait for the host.
    """
    jax = sys.modules["jax"]
    if jax.default_backend() != "cpu":
        return function()
    return jax.lax.cond(xp.any(condition), function, lambda: otherwise)
