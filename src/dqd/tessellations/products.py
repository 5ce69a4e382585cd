"""The nearest of very many centroids along many axes: by a matrix product, then exactly.

|m - c|^2 and |c|^2 - 2 m c are least for the same c, and a table of (-2 c, |c|^2) times (m, 1) is the latter for all of
them, but for rounding. So centroids are taken in groups; those groups whose best lies within rounding of the best of
all are looked at again by squared distances, which decide.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.tessellations.nearest import first_least, in_blocks, squares

GROUP = 64  # centroids that stand or fall together
GROUPS = 3  # that are looked at again, besides the best
BLOCK = 2**15  # centroids of one product, about: what it gives stays in the cache until it is looked at


@dataclass(frozen=True, eq=False)
class Products:
    """What is multiplied with rows of measures."""

    middle: np.ndarray  # (k,) of the centroids: differences of large numbers would round badly
    tables: np.ndarray  # (blocks, 1 + k, GROUP, groups): one centroid of every group, then the next of every group
    reach: float  # of the centroids along an axis, seen from the middle

    @staticmethod
    def of(centroids: np.ndarray) -> Products:
        middle = centroids.mean(axis=0)
        seen = (centroids - middle).T
        table = np.concatenate([-2 * seen, np.sum(seen**2, axis=0)[None]])
        blocks = max(2, -(-len(centroids) // BLOCK))  # two at least: a loop of one is none
        table = np.pad(table, ((0, 0), (0, -len(centroids) % (blocks * GROUP))), mode="edge")
        parts = table.reshape(len(table), blocks, -1, GROUP).transpose(1, 0, 3, 2)
        return Products(middle, np.ascontiguousarray(parts), float(np.abs(seen).max()))

    def nearest(self, xp: Any, rows: Any, centroids: Any) -> Any:
        """The number of the centroid nearest to each row (b, k)."""
        return (
            in_blocks(self._nearest, rows, centroids, len(centroids))
            if xp is np
            else self._nearest(xp, rows, centroids)
        )

    def _nearest(self, xp: Any, rows: Any, centroids: Any) -> Any:
        seen = rows - xp.asarray(self.middle, rows.dtype)
        lows = self._lows(xp, seen)
        groups, close = [first_least(xp, lows)], lows <= xp.min(lows, axis=1, keepdims=True) + self._rounding(xp, seen)
        numbers = xp.arange(lows.shape[1], dtype=xp.int32)
        for _ in range(GROUPS):  # in their order: of equally near centroids the first is among them
            groups.append(xp.min(xp.where(close, numbers, lows.shape[1] - 1), axis=1))
            close = close & (numbers != groups[-1][:, None])
        among = xp.sort(xp.stack(groups, axis=1), axis=1)[..., None] * GROUP + xp.arange(GROUP, dtype=xp.int32)
        among = xp.minimum(among.reshape(len(rows), -1), len(centroids) - 1)
        place = first_least(xp, squares(rows, centroids[among]))
        return xp.take_along_axis(among, place[:, None], axis=1)[:, 0]

    def _lows(self, xp: Any, seen: Any) -> Any:
        """The least |c|^2 - 2 m c in every group, (b, groups).

        In a loop on a CPU: otherwise XLA takes the least of the products anew wherever it is used, five times.
        """
        rows = xp.concatenate([seen, xp.ones_like(seen[:, :1])], axis=1)
        tables = xp.asarray(self.tables, rows.dtype)
        exact = {} if xp is np else {"precision": "highest"}  # a GPU would round the factors

        def block(table: Any) -> Any:
            products = xp.matmul(rows, table.reshape(len(table), -1), **exact)
            return xp.min(products.reshape(len(rows), GROUP, -1), axis=1)  # (b, groups)

        if xp is np:
            return np.concatenate([block(table) for table in tables], axis=1)
        jax = sys.modules["jax"]
        found = jax.lax.map(block, tables) if jax.default_backend() == "cpu" else jax.vmap(block)(tables)
        return xp.moveaxis(found, 0, 1).reshape(len(rows), -1)

    def _rounding(self, xp: Any, seen: Any) -> Any:
        """How far products may be off, (b, 1)."""
        k, size = seen.shape[1], xp.max(xp.abs(seen), axis=1, keepdims=True) + xp.asarray(self.reach, seen.dtype)
        return 4 * k * (k + 2) * xp.finfo(seen.dtype).eps * size**2
