"""A small picture of an archive, for lists: bytes that the page gives its colours."""

from __future__ import annotations

import numpy as np

from dqd.saved.archive import SavedArchive
from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation

SIDE = 56  # pixels
EMPTY = 255  # the byte of an empty pixel; 0 to 254 are the objective from low to high


def thumbnail(archive: SavedArchive) -> np.ndarray:
    """(rows, columns) bytes, row 0 at the bottom; each pixel is the best of what lies under it."""
    values = _smaller(_map(archive))
    filled = np.isfinite(values)
    picture = np.full(values.shape, EMPTY, np.uint8)
    if filled.any():
        low, high = np.quantile(values[filled], 0.02), values[filled].max()
        share = np.clip((values[filled] - low) / max(high - low, np.finfo(float).tiny), 0, 1)
        picture[filled] = np.rint(254 * share).astype(np.uint8)
    return picture


def _map(archive: SavedArchive) -> np.ndarray:
    """Objectives over measures 0 and 1, the best over all others; -inf where there is nothing."""
    tessellation = archive.tessellation
    if tessellation.num_measures <= 2:
        values = np.full(tessellation.num_cells, -np.inf)
        values[archive.cell] = archive.objective
        return values[tessellation.raster().cells]
    across, up, shape = _positions(tessellation, archive)
    values = np.full(shape, -np.inf)
    np.maximum.at(values, (up, across), archive.objective)
    return values


def _positions(tessellation: Tessellation, archive: SavedArchive) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    if isinstance(tessellation, Grid):
        across, up = np.unravel_index(archive.cell, tessellation.shape)[:2]
        return across, up, (tessellation.shape[1], tessellation.shape[0])
    points = archive.measures[:, :2]
    low, high = points.min(0, initial=0), points.max(0, initial=1)
    position = np.minimum(((points - low) / (high - low) * SIDE).astype(int), SIDE - 1)
    return position[:, 0], position[:, 1], (SIDE, SIDE)


def _smaller(values: np.ndarray) -> np.ndarray:
    """At most SIDE pixels along each axis."""
    for axis in (0, 1):
        length = values.shape[axis]
        if length > SIDE:
            values = np.maximum.reduceat(values, np.arange(SIDE) * length // SIDE, axis=axis)
    return values
