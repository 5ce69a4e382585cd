"""Soft QD score: how brightly elites light measure space, each like a lamp (Hedayatian & Nikolaidis 2026)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dqd.metrics.elites import places, quality, saved, squared_distances

AT_ONCE = 2**22  # distances


def soft_qd_score(archive: Any, bandwidth: float, *, samples: int = 4096, seed: int = 0) -> float:
    """The volume below the brightest lamp (Hedayatian & Nikolaidis 2026): no cells, and nothing counts twice.

        S = integral of max_i f_i exp(-|b - b_i|^2 / (2 bandwidth^2)) db

    b are measures as shares of their ranges, and the integral goes over all of them, also beyond these. f is the
    objective above the archive's `qd_score_offset`; elites below it give no light. An elite alone has
    f (2 pi bandwidth^2)^(k/2), and elites far from each other have the sum.

    That sum times the mean of max_i / sum_i over points drawn from the lamps, which lies between 1 / elites and 1, is
    the integral, in any number of dimensions. It is off by sum / (2 sqrt(samples)) at most, in standard errors.

    Args:
        archive: a result or an archive, live or saved.
        bandwidth: how far a lamp shines, as a share of the range of every measure.
        samples: points drawn.
        seed: of these points; the same for all archives that are compared.

    Costs O(samples elites k).

    >>> archive = dqd.Archive.empty(dqd.Grid([0], [2], [2]), 1)
    >>> archive, _ = archive.add(jnp.ones((1, 1)), dqd.Evaluation(jnp.array([3.0]), jnp.array([[0.5]])))
    >>> round(soft_qd_score(archive, 0.1) / (3 * math.sqrt(2 * math.pi) * 0.1), 6)
    1.0
    """
    if not bandwidth > 0 or samples < 1:
        raise ValueError(f"soft_qd_score: expected bandwidth > 0 and samples >= 1, got {bandwidth} and {samples}")
    found = saved(archive)
    light, rows = quality(found), places(found)
    light, rows = light[light > 0], rows[light > 0]
    if not len(light):
        return 0.0
    random, k = np.random.default_rng(seed), rows.shape[1]
    # Lamps in turn, each as often as it is bright: one uniform number for all samples leaves less to chance.
    marks = (np.arange(samples) + random.uniform()) / samples * light.sum()
    lamp = np.minimum(np.searchsorted(np.cumsum(light), marks), len(light) - 1)
    points = rows[lamp] / bandwidth + random.standard_normal((samples, k))
    step = max(AT_ONCE // len(rows), 1)
    shares = [_share(points[i : i + step], rows / bandwidth, np.log(light)) for i in range(0, samples, step)]
    volume = (2 * math.pi * bandwidth**2) ** (k / 2)
    return float(light.sum() * volume * np.mean(np.concatenate(shares)))


def _share(points: np.ndarray, rows: np.ndarray, light: np.ndarray) -> np.ndarray:
    """How much of all light at each point comes from the brightest lamp, (points,)."""
    logs = light - squared_distances(points, rows) / 2
    return 1 / np.sum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
