"""A tessellation of one's own: every point of measure space belongs to the nearest of some given centroids.
Here they are the seeds of a sunflower: cells of equal area in a disc, the shape that an arm can reach."""

import numpy as np

import dqd
from dqd.tessellations import Raster, floating, register
from dqd.types import pytree


@register  # files that hold one are read as this class
@pytree  # JAX traces it
class Voronoi:
    centroids: np.ndarray  # (cells, k)
    kind = "voronoi"

    def __post_init__(self):
        if self.centroids.ndim != 2 or not self.centroids.size or not np.isfinite(self.centroids).all():
            raise ValueError(f"centroids: expected finite numbers (cells, k), got shape {self.centroids.shape}")

    @property
    def num_cells(self):
        return self.centroids.shape[0]

    @property
    def num_measures(self):
        return self.centroids.shape[1]

    def _squares(self, measures):
        """Squared distances (..., k) -> (..., cells), measure by measure: NumPy and JAX add in the same order."""
        xp, measures = floating(measures)
        centroids = xp.asarray(self.centroids, measures.dtype)
        return sum((measures[..., j, None] - centroids[:, j]) ** 2 for j in range(self.num_measures))

    def index_of(self, measures):
        return self._squares(measures).argmin(axis=-1).astype(np.int32)

    def outside(self, measures):
        return floating(measures)[0].zeros(measures.shape[:-1], bool)  # every point has a nearest centroid

    def centers(self):
        return np.asarray(self.centroids)

    def misplaced(self, cell, measures):
        squares = self._squares(measures.astype(np.float64))
        rounding = 64 * np.finfo(measures.dtype).eps * (np.abs(self.centroids).max() + np.abs(measures).max()) ** 2
        return squares[np.arange(len(cell)), cell] > squares.min(axis=-1) + rounding

    def check_precision(self, dtype):
        if len(np.unique(self.centroids.astype(dtype), axis=0)) < self.num_cells:
            raise ValueError(f"Voronoi: some centroids are the same in {np.dtype(dtype)}")

    def arrays(self):
        return {"voronoi_centroids": np.asarray(self.centroids, np.float64)}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(np.asarray(arrays["voronoi_centroids"], np.float64))

    def raster(self):
        if self.num_measures != 2:
            raise ValueError(f"heatmap: expected 2 measures, got {self.num_measures}")
        (left, bottom), (right, top) = self.centroids.min(axis=0), self.centroids.max(axis=0)
        pixels = np.meshgrid(np.linspace(left, right, 200), np.linspace(bottom, top, 200))
        return Raster(self.index_of(np.stack(pixels, axis=-1)), (left, right, bottom, top))


def sunflower(cells, radius):
    i = np.arange(cells)
    r, angle = radius * np.sqrt((i + 0.5) / cells), i * np.pi * (3 - np.sqrt(5))
    return Voronoi(np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1))


if __name__ == "__main__":
    arm, cells, emitter = dqd.Arm(20), sunflower(500, radius=20), dqd.cma_mega(sigma=0.1)
    dqd.illuminate(arm, emitter, cells, x0=np.zeros(20), iterations=1000, out="runs/sunflower")
    archive = dqd.load("runs/sunflower")  # by NumPy alone
    archive.plot("sunflower.png")
    print(f"coverage {archive.coverage:.1f} % of {archive.num_cells} cells, best {archive.best:.2f}")
