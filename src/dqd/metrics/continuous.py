"""CQD score: what an archive has for somebody who wants certain measures, and how exactly (Kent et al. 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dqd.metrics.elites import Ends, ends, saved

AT_ONCE = 2**22  # distances


def cqd_score(
    archive: Any,
    targets: int | np.ndarray = 1000,
    penalties: int | np.ndarray = 5,
    *,
    minimum: float,
    maximum: float,
    distance: float | None = None,
    seed: int = 0,
) -> float:
    """The continuous QD score (Kent et al. 2022): of every target the best compromise of objective and distance.

        CQD = sum over targets t and penalties p of max_i (f_i - minimum) / (maximum - minimum) - p |m_i - t| / distance

    It sees within cells, and asks for no resolution. pyribs' `cqd_score` divides objectives without taking `minimum`
    away; with `minimum=0` both agree.

    Args:
        archive: a result or an archive, live or saved.
        targets: points (m, k) in measure space; a number of them is drawn uniformly between the ends of the measures.
        penalties: how much the distance counts, (p,); a number of them is spread evenly from 0 to 1.
        minimum, maximum: objectives that are worth 0 and 1.
        distance: how far measures lie apart at most; by default the diagonal of their ranges.
        seed: of the drawn targets.

    Costs O(elites targets penalties). An empty archive has -inf: nothing for anybody.

    >>> grid = dqd.Grid([0], [1], [4])
    >>> archive = dqd.Archive.empty(grid, 1)
    >>> archive, _ = archive.add(jnp.ones((1, 1)), dqd.Evaluation(jnp.array([3.0]), jnp.array([[0.25]])))
    >>> cqd_score(archive, np.array([[0.25], [0.75]]), np.array([0.0, 1.0]), minimum=0, maximum=6)
    1.5
    """
    found = saved(archive)
    if not maximum > minimum:
        raise ValueError(f"cqd_score: expected minimum below maximum, got {minimum} and {maximum}")
    ranges = ends(found)
    points = _targets(targets, ranges, seed)
    weights = np.linspace(0, 1, penalties) if isinstance(penalties, int) else np.asarray(penalties, np.float64)
    if weights.ndim != 1:
        raise ValueError(f"cqd_score: penalties: expected a number, or an array (p,), got shape {weights.shape}")
    if not len(found):
        return -np.inf
    scale = float(np.linalg.norm(ranges.upper - ranges.lower)) if distance is None else float(distance)
    worth = (found.objective.astype(np.float64) - minimum) / (maximum - minimum)
    measures, total = found.measures.astype(np.float64), 0.0
    step = max(AT_ONCE // (measures.size or 1), 1)
    for start in range(0, len(points), step):
        away = np.linalg.norm(points[start : start + step, None] - measures, axis=2) / scale  # (targets, elites)
        total += sum(float(np.sum(np.max(worth - weight * away, axis=1))) for weight in weights)
    return total


def _targets(targets: int | np.ndarray, ranges: Ends, seed: int) -> np.ndarray:
    k = len(ranges.lower)
    if isinstance(targets, int):
        return np.random.default_rng(seed).uniform(ranges.lower, ranges.upper, (targets, k))
    points = np.asarray(targets, np.float64)
    if points.ndim != 2 or points.shape[1] != k:
        raise ValueError(f"cqd_score: targets: expected a number of them, or (m, {k}), got shape {points.shape}")
    return points
