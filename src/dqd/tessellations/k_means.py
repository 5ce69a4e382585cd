"""k-means (Lloyd 1982): centroids that lie in the middle of the points that are nearest to them."""

from __future__ import annotations

import numpy as np

from dqd.tessellations.nearest import in_blocks

ITERATIONS = 15
STILL = 1e-2  # of the distance between centroids: when they move less on average, they stay
TREES = 8  # measures; beyond, a tree looks at every centroid too


def k_means(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """(count, k) centroids of points (m, k); they begin at points drawn by the seed."""
    random = np.random.default_rng(seed)
    centroids = points[random.choice(len(points), count, replace=False)]
    apart = np.ptp(points, axis=0) / count ** (1 / points.shape[1])
    for _ in range(ITERATIONS):
        before, centroids = centroids, _middles(points, centroids)
        if np.mean(np.abs(centroids - before)) < STILL * np.mean(apart):
            break
    return centroids


def _middles(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """The mean of the points of each centroid; one without points stays."""
    owner = _owners(points, centroids)
    members = np.bincount(owner, minlength=len(centroids))
    sums = np.stack([np.bincount(owner, column, len(centroids)) for column in points.T], axis=1)
    return np.where(members[:, None] > 0, sums / np.maximum(members, 1)[:, None], centroids)


def _owners(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    if points.shape[1] > TREES:
        middle = centroids.mean(axis=0)
        rows, others = ((each - middle).astype(np.float32) for each in (points, centroids))
        return in_blocks(_about_nearest, rows, others, len(others))
    from scipy.spatial import cKDTree

    return cKDTree(centroids).query(points, workers=-1)[1]


def _about_nearest(_: object, rows: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """|m - c|^2 is least where m c - |c|^2 / 2 is largest. Whoever is equally near up to rounding may win."""
    return np.argmax(rows @ centroids.T - np.sum(centroids**2, axis=1) / 2, axis=1)
