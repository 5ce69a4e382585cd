"""What figures show, as plain arrays: NumPy in, NumPy out. Drawing is in `draw`.

The input is a dictionary of arrays as `dqd.storage.record.read(folder).arrays` gives it: cell, objective, measures,
solutions, and those of the tessellation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.figures import arm
from dqd.tessellations import Grid, Raster, Tessellation, UnevenGrid, kinds
from dqd.tessellations.categorical import grid_of, names_of

Arrays = Mapping[str, np.ndarray]
BINS = 50  # along each axis, where cells are neither a grid nor drawn by pixels
MOST_PAIRED = 8  # measures
MARKS = 5  # parts that edges of unequal cells are marked in
Marks = tuple[tuple[float, str], ...]  # where, and what is written there


@dataclass(frozen=True)
class HeatMap:
    """The objective over one measure (a single row) or two of them, one to the right and one upward."""

    matrix: np.ndarray  # (rows, columns) row 0 at the bottom, NaN where a cell is empty
    extent: tuple[float, float, float, float]  # left, right, bottom, top
    num_measures: int
    x_label: str
    y_label: str
    value_label: str
    x_marks: Marks = ()  # in place of numbers, where the measure is a category or cells are of unequal width
    y_marks: Marks = ()


@dataclass(frozen=True)
class Poses:
    """Arms from an archive of the arm domain."""

    joints: np.ndarray  # (count, n + 1, 2) the base and the end of every link
    objective: np.ndarray  # (count,)
    reach: float  # length of the stretched arm


@dataclass(frozen=True)
class Pairs:
    """Maps over every two measures, the best over all others."""

    maps: dict[tuple[int, int], HeatMap]  # (row, column): measure `row` upward, measure `column` to the right
    labels: tuple[str, ...]
    value_label: str


@dataclass(frozen=True)
class Parallel:
    """Elites as lines across the measures, the best one last."""

    heights: np.ndarray  # (elites, k) from 0 to 1 along each measure
    objective: np.ndarray  # (elites,)
    ranges: tuple[tuple[float, float], ...]  # what 0 and 1 mean, for each measure
    labels: tuple[str, ...]
    value_label: str


def heatmap(
    arrays: Arrays,
    *,
    measures: tuple[int, int] = (0, 1),
    labels: Sequence[str] | None = None,
    value_label: str = "objective",
) -> HeatMap:
    """The archive as a picture over two of its measures, the best over all others; or over the only one."""
    tessellation, marks = _drawn(kinds.from_arrays(arrays))
    names = measure_labels(labels, tessellation.num_measures)
    if tessellation.num_measures == 1:
        raster = tessellation.raster()
        return HeatMap(_on(raster, tessellation, arrays), raster.extent, 1, names[0], "", value_label, marks[0])
    across, up = _two(measures, tessellation.num_measures)
    matrix, extent = _projected(arrays, tessellation, across, up)
    about = (names[across], names[up], value_label, marks[across], marks[up])
    return HeatMap(matrix, extent, tessellation.num_measures, *about)


def _drawn(tessellation: Tessellation) -> tuple[Tessellation, tuple[Marks, ...]]:
    """What a figure draws, and what it writes along each measure: cells of unequal width are drawn equally wide."""
    if isinstance(tessellation, UnevenGrid):
        shape = tessellation.shape
        equal = Grid((0.0,) * len(shape), tuple(map(float, shape)), shape)
        return equal, tuple(_edge_marks(edges) for edges in tessellation.edges)
    names = names_of(tessellation, tessellation.num_measures)
    return tessellation, tuple(tuple((float(i), name) for i, name in enumerate(own)) for own in names)


def _edge_marks(edges: np.ndarray) -> Marks:
    some = np.unique(np.linspace(0, len(edges) - 1, MARKS + 1).round().astype(int))
    return tuple((float(i), f"{edges[i]:.3g}") for i in some)


def measure_labels(labels: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """A name for each measure: those given, or their numbers."""
    if labels is None:
        return tuple(f"measure {j}" for j in range(count))
    if isinstance(labels, str) or len(labels) != count:
        raise ValueError(f"labels: expected one for each of the {count} measures, got {labels!r}")
    return tuple(map(str, labels))


def _two(measures: tuple[int, int], count: int) -> tuple[int, int]:
    across, up = measures
    if across == up or not (0 <= across < count and 0 <= up < count):
        raise ValueError(f"measures: expected two different ones from 0 to {count - 1}, got {measures}")
    return across, up


def _projected(
    arrays: Arrays, tessellation: Tessellation, across: int, up: int
) -> tuple[np.ndarray, tuple[float, float, float, float]]:
    """The best objective of every pixel, NaN where there is none; and left, right, bottom, top."""
    if tessellation.num_measures == 2:
        raster = tessellation.raster()
        left, right, bottom, top = raster.extent
        matrix = _on(raster, tessellation, arrays)
        return (matrix, raster.extent) if across == 0 else (matrix.T, (bottom, top, left, right))
    if grid := grid_of(tessellation):
        position = np.stack(np.unravel_index(arrays["cell"], grid.shape), axis=-1)
        counts, lower, upper = (np.asarray(each) for each in (grid.shape, grid.lower, grid.upper))
    else:  # cells of some other shape: by the measures of the elites
        lower, upper = _ranges(arrays["measures"])
        counts = np.full(len(lower), BINS)
        position = np.minimum(((arrays["measures"] - lower) / (upper - lower) * counts).astype(int), counts - 1)
    best = np.full((counts[up], counts[across]), -np.inf)
    np.maximum.at(best, (position[:, up], position[:, across]), arrays["objective"])
    extent = (float(lower[across]), float(upper[across]), float(lower[up]), float(upper[up]))
    return np.where(np.isneginf(best), np.nan, best), extent


def _on(raster: Raster, tessellation: Tessellation, arrays: Arrays) -> np.ndarray:
    values = np.full(tessellation.num_cells, np.nan)
    values[arrays["cell"]] = arrays["objective"]
    return np.where(raster.cells < 0, np.nan, values[raster.cells])


def _ranges(measures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From the least to the largest of each measure; never of no length."""
    if not len(measures):
        return np.zeros(measures.shape[1]), np.ones(measures.shape[1])
    lower, upper = measures.min(axis=0).astype(np.float64), measures.max(axis=0).astype(np.float64)
    return lower, np.where(upper > lower, upper, lower + 1)


def pairs(arrays: Arrays, *, labels: Sequence[str] | None = None, value_label: str = "objective") -> Pairs:
    """A map for every two measures."""
    count = kinds.from_arrays(arrays).num_measures
    names = measure_labels(labels, count)
    if not 2 <= count <= MOST_PAIRED:
        raise ValueError(f"pairs: expected 2 to {MOST_PAIRED} measures, got {count}; see dqd.plot.parallel")
    options: Any = {"labels": names, "value_label": value_label}
    maps = {(i, j): heatmap(arrays, measures=(j, i), **options) for i in range(count) for j in range(i)}
    return Pairs(maps, names, value_label)


def parallel(
    arrays: Arrays, *, labels: Sequence[str] | None = None, value_label: str = "objective", count: int = 1000
) -> Parallel:
    """At most `count` elites, those of evenly spaced ranks: the worst, the best, and what lies between."""
    tessellation, measures = kinds.from_arrays(arrays), np.asarray(arrays["measures"], np.float64)
    names = measure_labels(labels, tessellation.num_measures)
    if grid := grid_of(tessellation):
        lower, upper = np.asarray(grid.lower), np.asarray(grid.upper)
    else:
        lower, upper = _ranges(measures)
    order = np.argsort(arrays["objective"], kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int))]
    heights = np.clip((measures[chosen] - lower) / (upper - lower), 0, 1)  # a measure outside lies in a border cell
    ranges = tuple(zip(lower.tolist(), upper.tolist(), strict=True))
    return Parallel(heights, np.asarray(arrays["objective"])[chosen], ranges, names, value_label)


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
