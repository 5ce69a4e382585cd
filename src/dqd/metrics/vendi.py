"""Vendi score: how many different elites there are, in effect (Friedman & Dieng 2023); and times their quality."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dqd.metrics.elites import places, quality, saved, squared_distances

RESIDUE = 1e-8  # of the trace, left out of a factorisation
MANY = 0.15  # of all columns: from there on the whole matrix is taken


def vendi_score(
    archive: Any, *, bandwidth: float | None = None, order: float = 1.0, features: np.ndarray | None = None
) -> float:
    """How many elites that have nothing in common would be as diverse: 1 if all are alike, their number at most.

        K_ij = exp(-|b_i - b_j|^2 / bandwidth^2),  VS = exp(-sum_i l_i ln l_i),  l the eigenvalues of K / elites

    b are the measures as shares of their ranges. With another order q it is (sum_i l_i^q)^(1 / (1 - q)) (Pasarkar &
    Dieng 2024): below 1 it counts rare elites more, above 1 less.

    Args:
        archive: a result or an archive, live or saved.
        bandwidth: within which elites are alike; by default sqrt(k / 6), as Hedayatian & Nikolaidis (2026) compare
            archives by it: the distance of two random points, about.
        order: q, 0 or more; `math.inf` looks at the largest eigenvalue alone.
        features: what to tell elites by in place of their measures, (elites, d) in the order of the cells, such as an
            embedding of their pictures; as they are, so choose a bandwidth.

    K is factorised up to 1e-8 of its trace: costs O(elites rank^2), and the rank is small where the bandwidth is large;
    else O(elites^3), and elites^2 numbers.

    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> archive = dqd.Archive.empty(dqd.Grid([0, 0], [1, 1], [2, 2]), 1)
    >>> archive, _ = archive.add(jnp.ones((3, 1)), dqd.Evaluation(jnp.ones(3), jnp.asarray(corners)))
    >>> round(vendi_score(archive, bandwidth=0.01), 6), round(vendi_score(archive, bandwidth=1e6), 6)
    (3.0, 1.0)
    """
    found = saved(archive)
    rows = places(found) if features is None else np.asarray(features, np.float64)
    if rows.ndim != 2 or len(rows) != len(found):
        raise ValueError(f"vendi_score: features: expected ({len(found)}, d), one row per elite, got {rows.shape}")
    if features is not None and bandwidth is None:
        raise ValueError("vendi_score: features of one's own need a bandwidth of one's own")
    width = math.sqrt(rows.shape[1] / 6) if bandwidth is None else bandwidth
    if not width > 0 or not order >= 0:
        raise ValueError(f"vendi_score: expected bandwidth > 0 and order >= 0, got {bandwidth} and {order}")
    return _effective(_spectrum(rows / width), order) if len(rows) else 0.0


def quality_vendi_score(archive: Any, **options: Any) -> float:
    """The quality-weighted Vendi score, QVS (Nguyen & Dieng 2024): mean quality times `vendi_score`.

        QVS = VS mean_i f_i

    f is the objective above the archive's `qd_score_offset`, and must not be negative. Options are `vendi_score`'s.

    >>> archive = dqd.Archive.empty(dqd.Grid([0], [1], [2]), 1)
    >>> told = dqd.Evaluation(jnp.array([2.0, 4.0]), jnp.array([[0.0], [1.0]]))
    >>> round(quality_vendi_score(archive.add(jnp.ones((2, 1)), told)[0], bandwidth=0.01), 6)
    6.0
    """
    found = saved(archive)
    worth = quality(found)
    if np.any(worth < 0):
        raise ValueError(
            f"quality_vendi_score: quality must not be negative, and the lowest is {worth.min():.3g}; give the archive "
            "a qd_score_offset below all objectives"
        )
    return vendi_score(found, **options) * float(worth.mean()) if len(found) else 0.0


def _spectrum(rows: np.ndarray) -> np.ndarray:
    """Eigenvalues of K / elites that are not zero, by pivoted Cholesky: K = L L^T, and L^T L has the same ones.

    Where that takes many columns, all at once is quicker.
    """
    count = len(rows)
    left, factor, rank = np.ones(count), np.empty((count, min(count, 64))), 0  # what is left of the diagonal
    while rank < count and left.sum() > RESIDUE * count:
        if rank > MANY * count:
            return _shares(np.linalg.eigvalsh(np.exp(-squared_distances(rows, rows))))
        if rank == factor.shape[1]:
            factor = np.concatenate([factor, np.empty((count, min(rank, count - rank)))], axis=1)
        pivot = int(np.argmax(left))
        column = np.exp(-squared_distances(rows, rows[pivot : pivot + 1])[:, 0])
        column -= factor[:, :rank] @ factor[pivot, :rank]
        factor[:, rank] = column / math.sqrt(left[pivot])
        left = np.maximum(left - factor[:, rank] ** 2, 0)
        left[pivot] = 0
        rank += 1
    return _shares(np.linalg.eigvalsh(factor[:, :rank].T @ factor[:, :rank]))


def _shares(values: np.ndarray) -> np.ndarray:
    values = values[values > 0]
    return values / values.sum()


def _effective(values: np.ndarray, order: float) -> float:
    """The Hill number of shares that sum to 1."""
    if order == 1:
        return float(np.exp(-np.sum(values * np.log(values))))
    if math.isinf(order):
        return float(1 / values.max())
    return float(np.sum(values**order) ** (1 / (1 - order)))
