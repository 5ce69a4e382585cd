"""Cells of another kind than a grid's: those of the nearest of some points, drawn by pixels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dqd.saved.archive import SavedArchive
from dqd.tessellations import Raster

PIXELS = 90


@dataclass(frozen=True)
class Voronoi:
    sites: tuple[tuple[float, float], ...]
    kind: ClassVar[str] = "voronoi"

    @property
    def num_cells(self) -> int:
        return len(self.sites)

    @property
    def num_measures(self) -> int:
        return 2

    def index_of(self, measures: Any) -> Any:
        apart = np.asarray(measures)[..., None, :] - np.array(self.sites)
        return np.argmin(np.sum(apart**2, axis=-1), axis=-1).astype(np.int32)

    def outside(self, measures: Any) -> Any:
        return np.any((measures < 0) | (measures > 1), axis=-1)

    def centers(self) -> np.ndarray:
        return np.array(self.sites)

    def misplaced(self, cell: np.ndarray, measures: np.ndarray) -> np.ndarray:
        return self.index_of(measures) != cell

    def check_precision(self, dtype: Any) -> None:
        pass

    def arrays(self) -> dict[str, np.ndarray]:
        return {"voronoi_sites": np.array(self.sites)}

    @classmethod
    def from_arrays(cls, arrays: Any) -> "Voronoi":
        return cls(tuple(map(tuple, np.asarray(arrays["voronoi_sites"]).tolist())))

    def raster(self) -> Raster:
        middle = (np.arange(PIXELS) + 0.5) / PIXELS
        return Raster(self.index_of(np.stack(np.meshgrid(middle, middle), axis=-1)), (0.0, 1.0, 0.0, 1.0))


def voronoi_archive(count: int = 60, seed: int = 0) -> SavedArchive:
    """Every third cell is empty."""
    random = np.random.default_rng(seed)
    cells = Voronoi(tuple(map(tuple, random.uniform(size=(count, 2)).tolist())))
    filled = np.array([cell for cell in range(count) if cell % 3], np.int32)
    measures = cells.centers()[filled].astype(np.float32)
    objective = random.uniform(0, 10, len(filled)).astype(np.float32)
    return SavedArchive(
        filled, objective, measures, random.normal(size=(len(filled), 4)).astype(np.float32), None, cells
    )
