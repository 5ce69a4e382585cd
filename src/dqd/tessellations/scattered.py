"""Elites that lie in no cells, as files and figures see them: where each of them is, and how many there may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dqd.tessellations.tessellation import A, Raster, floating

SIDE = 400  # pixels of a figure along an axis
MARGIN = 0.03  # of the range of the elites, beyond it on both sides
DISC = 0.008, 0.03  # of the side: radius of the disc that stands for an elite, at least and at most
_NAMES = ("scattered_capacity", "scattered_measures")


@dataclass(frozen=True, eq=False, repr=False)
class Scattered:
    """Every point of measure space belongs to the nearest elite. Made from what an archive holds.

    >>> Scattered(np.array([0, 3]), np.array([[0.0, 0.0], [1.0, 1.0]]), 8).index_of(np.array([[0.9, 0.5]])).tolist()
    [3]
    """

    cell: np.ndarray  # (elites,) the row of each
    measures: np.ndarray  # (elites, k)
    capacity: int  # rows
    kind: ClassVar[str] = "scattered"

    def __post_init__(self) -> None:
        if self.measures.ndim != 2 or self.cell.shape != self.measures.shape[:1] or not 1 <= self.capacity < 2**31:
            raise ValueError(
                f"Scattered: expected measures (elites, k), a row for each elite, and a capacity, got shapes "
                f"{self.measures.shape} and {self.cell.shape}, and {self.capacity}"
            )

    @property
    def num_cells(self) -> int:
        return self.capacity

    @property
    def num_measures(self) -> int:
        return self.measures.shape[1]

    def index_of(self, measures: A) -> A:
        """The row of the elite nearest to each row of measures (..., k) -> (...); 0 while there is none."""
        _, rows = floating(measures)
        if not len(self.cell):
            return np.zeros(rows.shape[:-1], np.int32)  # type: ignore[return-value]
        return self.cell[self._nearest(rows)[1]].astype(np.int32)

    def _nearest(self, rows: np.ndarray, scale: Any = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Distance and number of the nearest elite, where measures are multiplied by `scale`."""
        from scipy.spatial import cKDTree

        return cKDTree(np.asarray(self.measures, np.float64) * scale).query(rows * scale, workers=-1)

    def outside(self, measures: A) -> A:
        _, rows = floating(measures)
        return np.zeros(rows.shape[:-1], bool)  # type: ignore[return-value]

    def centers(self) -> np.ndarray:
        """The measures of the elites, (num_cells, k); NaN where there is none."""
        centers = np.full((self.capacity, self.num_measures), np.nan)
        centers[self.cell] = self.measures
        return centers

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        return np.zeros(len(cell), bool)  # an elite is where it is

    def check_precision(self, dtype: Any) -> None:
        pass

    def arrays(self) -> dict[str, np.ndarray]:
        """Where the elites are, a file says anyway."""
        return {
            name: np.array([number]) for name, number in zip(_NAMES, (self.capacity, self.num_measures), strict=True)
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Scattered:
        (capacity, count), measures = (
            (int(np.ravel(arrays[name])[0]) for name in _NAMES),
            np.asarray(arrays["measures"]),
        )
        if measures.ndim != 2 or measures.shape[1] != count:
            raise ValueError(f"measures: expected (elites, {count}), got {measures.shape}")
        return cls(np.asarray(arrays["cell"]), measures, capacity)

    def raster(self) -> Raster:
        """A disc for every elite, cut off half-way to its neighbours; where there is none, -1."""
        if self.num_measures > 2:
            raise ValueError(f"heatmap: expected an archive with 1 or 2 measures, got {self.num_measures}")
        lower, upper = self._ends()
        extent = (*np.stack([lower, upper], axis=1).ravel().tolist(), 0.0, 1.0)[:4]
        if not len(self.cell):
            return Raster(np.full((SIDE if self.num_measures == 2 else 1, SIDE), -1), extent)
        axes = [low + (np.arange(SIDE) + 0.5) * (high - low) / SIDE for low, high in zip(lower, upper, strict=True)]
        pixels = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, SIDE, self.num_measures)
        distance, nearest = self._nearest(pixels, 1 / (upper - lower))
        radius = np.clip(0.5 * len(self.cell) ** (-1 / self.num_measures), *DISC)
        return Raster(np.where(distance <= radius, self.cell[nearest], -1), extent)

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        if not len(self.cell):
            return np.zeros(self.num_measures), np.ones(self.num_measures)
        lower, upper = (end(self.measures, axis=0).astype(np.float64) for end in (np.min, np.max))
        margin = np.where(upper > lower, MARGIN * (upper - lower), 0.5)
        return lower - margin, upper + margin

    def __repr__(self) -> str:
        return f"Scattered({len(self.cell):,} of {self.capacity:,} elites, {self.num_measures} measures)"
