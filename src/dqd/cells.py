"""Which cell of a uniform grid measures belong to: one formula for NumPy and for JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

EPSILON = 1e-6  # moves a measure that lies on an edge into the upper cell, as the paper's archive does


def index_of(measures: Any, lower: Any, upper: Any, shape: tuple[int, ...], xp: Any = np) -> Any:
    """Cell index of each row of measures (..., k) -> (...); C order, measure 0 slowest.

    `xp` is numpy or jax.numpy.
    """
    lower, upper = xp.asarray(lower, measures.dtype), xp.asarray(upper, measures.dtype)
    counts = xp.asarray(shape, measures.dtype)
    shift = _shift(lower, upper, counts, xp)
    # Clamp before the cast (1e12 does not fit an integer) and after it (in float32, high - 1e-6 is high).
    inside = xp.clip(measures + shift, lower, upper - shift)
    # Times the reciprocal: XLA makes that of a division here, and the last bit decides at an edge.
    position = ((inside - lower) * (1 / (upper - lower)) * counts).astype(xp.int32)
    position = xp.clip(position, 0, xp.asarray(shape, xp.int32) - 1)
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    return xp.sum(position * xp.asarray(strides, xp.int32), axis=-1)


def _shift(lower: Any, upper: Any, counts: Any, xp: Any) -> Any:
    """Never more than a thousandth of a cell."""
    return xp.minimum(xp.asarray(EPSILON, lower.dtype), (upper - lower) / (1000 * counts))


def misplaced(cell: np.ndarray, measures: np.ndarray, lower: Any, upper: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Rows whose measures do not lie in their cell, up to rounding at its edges. Border cells reach to infinity."""
    lower, upper, counts = (np.asarray(values, np.float64) for values in (lower, upper, shape))
    width = (upper - lower) / counts
    position = np.stack(np.unravel_index(cell, shape), axis=-1)  # (b, k)
    size = np.maximum(np.abs(lower), np.abs(upper))
    slack = 2 * _shift(lower, upper, counts, np) + 8 * np.finfo(measures.dtype).eps * size
    low = np.where(position == 0, -np.inf, lower + position * width - slack)
    high = np.where(position == counts - 1, np.inf, lower + (position + 1) * width + slack)
    return np.any((measures < low) | (measures > high), axis=-1)
