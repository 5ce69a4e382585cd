"""Elites as these metrics see them: how good each is, and where it lies as a share of the range of every measure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dqd.saved.archive import SavedArchive
from dqd.saved.archived import Archived


class Ends(NamedTuple):
    """Of the range of every measure."""

    lower: np.ndarray  # (k,)
    upper: np.ndarray  # (k,)

    def shares(self, measures: np.ndarray) -> np.ndarray:
        """Measures (..., k) with 0 at the lower end and 1 at the upper."""
        return (measures - self.lower) / (self.upper - self.lower)


def saved(archive: Any, solutions: bool = False) -> SavedArchive:
    """Whatever has elites, as arrays."""
    if not isinstance(archive, Archived):
        raise TypeError(f"archive: expected a result or an archive, live or saved, got {type(archive).__name__}")
    return archive.to_numpy(solutions)


def ends(found: SavedArchive, lower: Any = None, upper: Any = None) -> Ends:
    """As they are given, or those of the cells; of elites without cells, those of the elites."""
    given = {"lower": lower, "upper": upper}
    k = found.tessellation.num_measures
    for name, reduce in (("lower", np.min), ("upper", np.max)):
        if given[name] is None:
            given[name] = getattr(found.tessellation, name, None)
        if given[name] is None:
            given[name] = reduce(found.measures, axis=0) if len(found) else np.zeros(k)
    low, high = (np.broadcast_to(np.asarray(given[name], np.float64), (k,)) for name in ("lower", "upper"))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and np.all(low <= high)):
        raise ValueError(f"lower, upper: expected finite numbers, lower below upper, got {lower} and {upper}")
    return Ends(low, np.where(high > low, high, low + 1))  # a measure that is always the same


def quality(found: SavedArchive) -> np.ndarray:
    """The objective of every elite above what is worth nothing, (elites,)."""
    return found.objective.astype(np.float64) - found.qd_score_offset


def places(found: SavedArchive, lower: Any = None, upper: Any = None) -> np.ndarray:
    """The measures of every elite as shares of their ranges, (elites, k)."""
    return ends(found, lower, upper).shares(found.measures.astype(np.float64))


def squared_distances(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(b, k), (m, k) -> (b, m)."""
    lengths = np.sum(rows * rows, axis=1)[:, None] + np.sum(points * points, axis=1)
    return np.maximum(lengths - 2 * rows @ points.T, 0)
