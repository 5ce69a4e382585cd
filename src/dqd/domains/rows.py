"""The rows of a jacobian, by name, and those that cannot be followed: a gradient of zero, or the same one twice."""

from __future__ import annotations

import numpy as np

PARALLEL = 1e-6  # the square of the sine of their angle, below which two gradients count as one


def row_names(rows: int) -> list[str]:
    """What each row belongs to."""
    return ["the objective", *(f"measure {j}" for j in range(rows - 1))]


def named(rows: list[int], count: int) -> str:
    """`row 1 (measure 0) and row 2 (measure 1)`, of so many rows."""
    names = row_names(count)
    return " and ".join(f"row {row} ({names[row]})" for row in rows)


def zero_rows(jacobian: np.ndarray) -> list[int]:
    """Rows of (p, 1 + k, n) that are zero at every point."""
    return np.flatnonzero(np.max(np.abs(jacobian), axis=(0, 2)) == 0).tolist()


def parallel_rows(jacobian: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of rows of (p, 1 + k, n) that point the same way, or opposite ways, at every point, and are not zero."""
    units = unit_rows(jacobian)
    cosines = np.einsum("pin,pjn->pij", units, units)
    apart = np.max(1 - cosines**2, axis=0)
    zero = zero_rows(jacobian)
    pairs = zip(*np.nonzero(np.triu(apart < PARALLEL, 1)), strict=True)
    return [(int(i), int(j)) for i, j in pairs if i not in zero and j not in zero]


def unit_rows(jacobian: np.ndarray) -> np.ndarray:
    """Every row divided by its length, whatever its size; a zero row stays zero."""
    largest = np.max(np.abs(jacobian), axis=-1, keepdims=True)
    rows = np.asarray(jacobian, float) / np.where(largest > 0, largest, 1)
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)


def remarks(jacobian: np.ndarray) -> list[str]:
    """What cannot be followed at these points (p, 1 + k, n), one line each; those with NaN or infinity are left out."""
    jacobian = jacobian[np.isfinite(jacobian).all(axis=(1, 2))]
    if not jacobian.size:
        return []
    count = jacobian.shape[1]
    lines = [
        f"{named([row], count)} is zero wherever it was looked at: it cannot be followed" for row in zero_rows(jacobian)
    ]
    return lines + [
        f"{named(list(pair), count)} have the same direction wherever they were looked at: neither can change "
        "without the other"
        for pair in parallel_rows(jacobian)
    ]
