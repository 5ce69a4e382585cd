"""What figures show, as plain arrays: NumPy in, NumPy out. Drawing is in `draw`.

The input is a dictionary of arrays as `dqd.storage.record.read(folder).arrays` gives it: cell, objective, measures,
solutions, and those of the tessellation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dqd.figures import arm
from dqd.tessellations import kinds

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class HeatMap:
    """The objective over measure space: measure 0 to the right, measure 1 upward. One measure gives a single row."""

    matrix: np.ndarray  # (cells of measure 1, cells of measure 0), NaN where a cell is empty
    extent: tuple[float, float, float, float]  # left, right, bottom, top
    num_measures: int
    x_label: str
    y_label: str
    value_label: str


@dataclass(frozen=True)
class Poses:
    """Arms from an archive of the arm domain."""

    joints: np.ndarray  # (count, n + 1, 2) the base and the end of every link
    objective: np.ndarray  # (count,)
    reach: float  # length of the stretched arm


def heatmap(
    arrays: Arrays, *, x_label: str = "measure 0", y_label: str = "measure 1", value_label: str = "objective"
) -> HeatMap:
    """The archive as a picture. For 1 or 2 measures."""
    tessellation = kinds.from_arrays(arrays)
    raster = tessellation.raster()
    values = np.full(tessellation.num_cells, np.nan)
    values[arrays["cell"]] = arrays["objective"]
    return HeatMap(values[raster.cells], raster.extent, tessellation.num_measures, x_label, y_label, value_label)


def arm_poses(arrays: Arrays, count: int = 4) -> Poses:
    """Arms whose hands lie far apart; the worst tenth of the elites is left out."""
    objective, solutions = arrays["objective"], np.asarray(arrays["solutions"], np.float64)
    if len(objective) == 0:
        raise ValueError("arm_poses: the archive is empty")
    good = np.flatnonzero(objective >= np.quantile(objective, 0.1))
    chosen = good[spread(arrays["measures"][good], min(count, len(good)))]
    return Poses(arm.joints(solutions[chosen]), objective[chosen], float(solutions.shape[1]))


def spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of `count` points that lie far apart: a central one, then always the farthest from all before
    (Gonzalez 1985)."""
    chosen = [int(np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    distance = np.full(len(points), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(np.argmax(distance)))
    return np.array(chosen)
