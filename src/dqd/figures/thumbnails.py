"""A small picture of an archive, for lists and notebooks: bytes that the page gives its colours."""

from __future__ import annotations

import numpy as np

from dqd.figures.panels import Arrays, heatmap

SIDE = 56  # pixels
EMPTY = 255  # the byte of an empty pixel; 0 to 254 are the objective from low to high


def thumbnail(arrays: Arrays, side: int = SIDE) -> np.ndarray:
    """(rows, columns) bytes, row 0 at the bottom; each pixel is the best of what lies under it."""
    values = _smaller(np.nan_to_num(heatmap(arrays).matrix, nan=-np.inf), side)
    filled = np.isfinite(values)
    picture = np.full(values.shape, EMPTY, np.uint8)
    if filled.any():
        low, high = np.quantile(values[filled], 0.02), values[filled].max()
        share = np.clip((values[filled] - low) / max(high - low, np.finfo(float).tiny), 0, 1)
        picture[filled] = np.rint(254 * share).astype(np.uint8)
    return picture


def _smaller(values: np.ndarray, side: int) -> np.ndarray:
    """At most `side` pixels along each axis."""
    for axis in (0, 1):
        length = values.shape[axis]
        if length > side:
            values = np.maximum.reduceat(values, np.arange(side) * length // side, axis=axis)
    return values
