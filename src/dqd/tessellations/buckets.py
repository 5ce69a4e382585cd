"""The nearest centroid in constant time: which centroids can be nearest is listed beforehand, box by box.

A lattice of boxes covers the centroids. A centroid c is on the list of a box unless another one, c', is nearer to all
of it: |p - c|^2 - |p - c'|^2 is linear in p, so its least value over the box with middle m and half widths h is

    |m - c|^2 - |m - c'|^2 - 2 sum_j h_j |c_j - c'_j|

and lists are exact up to the few that this test, made with the c' nearest to the middle, keeps in vain. What lies
outside the lattice has one list for all: the cell of its centroid is convex and holds both, so it crosses the border,
and the lists of the boxes there have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dqd.tessellations.nearest import directly, first_least, if_any, in_blocks, squares

MOST_MEASURES = 3  # beyond, lists are long
MOST_NEAR = 512  # centroids near one box; where they crowd more, one matrix product serves better
AT_ONCE = 8192  # boxes
SLACK = 0.01  # of a box: float32 may put a measure on the other side of an edge


@dataclass(frozen=True, eq=False)
class Buckets:
    """Lists of centroids, one after the other; that of box i from `starts[i]` to `starts[i + 1]`."""

    lower: np.ndarray  # (k,) of the lattice
    scale: np.ndarray  # (k,) boxes per unit
    starts: np.ndarray  # (boxes + 1,)
    listed: np.ndarray  # centroids, in order in each list
    border: np.ndarray  # centroids, in order: the list of the outside
    shape: tuple[int, ...] = field(metadata={"static": True})
    longest: int = field(metadata={"static": True})

    @staticmethod
    def of(centroids: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Buckets | None:
        """About one box per centroid; None where lists would be long: many measures, or centroids in heaps."""
        if centroids.shape[1] > MOST_MEASURES:
            return None
        lower, upper = np.minimum(lower, centroids.min(axis=0)), np.maximum(upper, centroids.max(axis=0))
        shape = _shape(upper - lower, len(centroids))
        lists = _lists(centroids, lower, (upper - lower) / shape, shape)
        if lists is None:
            return None
        counts, listed = lists
        starts = np.concatenate([[0], np.cumsum(counts)])
        at_border = np.ones(shape, bool)
        at_border[(slice(1, -1),) * len(shape)] = False
        border = np.unique(listed[np.repeat(at_border.reshape(-1), counts)])
        return Buckets(
            lower,
            shape / (upper - lower),
            starts.astype(np.int32),
            listed.astype(np.int32),
            border.astype(np.int32),
            tuple(map(int, shape)),
            int(counts.max()),
        )

    def nearest(self, xp: Any, rows: Any, centroids: Any) -> Any:
        """The number of the centroid nearest to each row (b, k)."""
        outside = self._outside(xp, rows)
        if xp is not np:
            within = self._within(xp, rows, centroids)
            return xp.where(outside, if_any(xp, outside, lambda: self._beyond(xp, rows, centroids), within), within)
        found = np.empty(len(rows), np.int32)
        found[~outside] = in_blocks(self._within, rows[~outside], centroids, self.longest)
        found[outside] = in_blocks(self._beyond, rows[outside], centroids, len(self.border))
        return found

    def _place(self, xp: Any, rows: Any) -> Any:
        return (rows - xp.asarray(self.lower, rows.dtype)) * xp.asarray(self.scale, rows.dtype)

    def _outside(self, xp: Any, rows: Any) -> Any:
        place = self._place(xp, rows)
        return xp.any((place < 0) | (place > xp.asarray(self.shape, rows.dtype)), axis=-1)

    def _within(self, xp: Any, rows: Any, centroids: Any) -> Any:
        """The nearest of those on the list of the box, (b,)."""
        position = xp.clip(self._place(xp, rows), 0, xp.asarray(self.shape, rows.dtype) - 1).astype(xp.int32)
        strides = np.cumprod((1, *self.shape[:0:-1]))[::-1]
        box = xp.sum(position * xp.asarray(strides, xp.int32), axis=-1, dtype=xp.int32)
        starts, listed = xp.asarray(self.starts), xp.asarray(self.listed)
        place = starts[box][:, None] + xp.arange(self.longest, dtype=xp.int32)
        here = listed[xp.minimum(place, len(listed) - 1)]
        apart = xp.where(place < starts[box + 1][:, None], squares(rows, centroids[here]), xp.inf)
        return xp.take_along_axis(here, first_least(xp, apart)[:, None], axis=1)[:, 0]

    def _beyond(self, xp: Any, rows: Any, centroids: Any) -> Any:
        """The nearest of those at the border, (b,)."""
        border = xp.asarray(self.border)
        return border[directly(xp, rows, centroids[border])]


def _shape(extent: np.ndarray, boxes: int) -> np.ndarray:
    """Cubes, about so many, or longer where the range is narrower than one."""
    side = (math.prod(extent) / boxes) ** (1 / len(extent))
    return np.maximum(np.rint(np.minimum(extent / side, boxes)), 1).astype(int)


def _lists(
    centroids: np.ndarray, lower: np.ndarray, widths: np.ndarray, shape: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """How many centroids are on the list of every box, and the lists; None if some are long."""
    from scipy.spatial import cKDTree

    tree = cKDTree(centroids)
    half = widths * (0.5 + SLACK) + 1e-6 * np.max(np.abs([lower, lower + widths * shape]), axis=0)
    counts, lists = [], []
    for start in range(0, math.prod(shape), AT_ONCE):
        box = np.arange(start, min(start + AT_ONCE, math.prod(shape)))
        middles = lower + (np.stack(np.unravel_index(box, shape), axis=1) + 0.5) * widths
        near = _near(tree, middles, 2 * math.sqrt(np.sum(half**2)))
        if near is None:
            return None
        kept = _kept(centroids, middles, half, near)
        near = np.where(kept, near, len(centroids))
        near.sort(axis=1)
        counts.append(np.sum(kept, axis=1))
        lists.append(near[near < len(centroids)])
    return np.concatenate(counts), np.concatenate(lists)


def _near(tree: Any, middles: np.ndarray, reach: float) -> np.ndarray | None:
    """For every box (b, m), all centroids that lie at most `reach` further than the nearest; None if they are many."""
    count = min(8 * 3 ** (middles.shape[1] - 1), tree.n)
    while True:
        distance, near = tree.query(middles, count, workers=-1)
        distance, near = distance.reshape(len(middles), -1), near.reshape(len(middles), -1)
        if count == tree.n or np.all(distance[:, -1] > distance[:, 0] + reach):
            return near
        if count > MOST_NEAR:
            return None
        count = min(2 * count, tree.n)


def _kept(centroids: np.ndarray, middles: np.ndarray, half: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Which of them can be nearest to some point of their box."""
    there = centroids[near] - middles[:, None]  # (b, m, k)
    further = np.sum(there**2, axis=2) - np.sum(there[:, :1] ** 2, axis=2)
    return further <= 2 * np.sum(half * np.abs(there - there[:, :1]), axis=2)
