"""The best that any search could reach on the paper's domains, for any resolution and number of coordinates.

Linear projection. Objective and measures are sums over coordinates, and the two halves of a solution do not meet, so
every cell splits into two problems: the least cost of a half whose coordinates add up to the cell's measure.

- All coordinates equal: the cost of one coordinate, least over the cell's interval. For the sphere nothing is better,
  because its cost is convex (Jensen).
- Unequal coordinates: a half may mix values, so the cost of its mean falls to the convex envelope of the cost of one
  coordinate. With finitely many coordinates the mixture is only approached: this is a bound, and a very close one.

Coordinates beyond +-5.12 fold back to measures within +-1 and cost more than any value inside: they never help.

Arm. The hand reaches the disc of radius n, and no objective exceeds 100. An exact 100 needs equal angles, and arms of
equal angles end on a curve, so the QD-score is a bound. It is close: the QD-score and the coverage that the paper
prints for CMA-MEGA agree in all digits, so the mean of its elites is 100 to within 0.02.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

LIMIT = 5.12
SHIFT = 0.4 * LIMIT  # the optimum of the linear projection
CURVE_POINTS = 40_001  # of the envelope; twice as many change the QD-score by less than 1e-5

Curve = Callable[[np.ndarray], np.ndarray]
Least = Callable[[np.ndarray, np.ndarray], np.ndarray]  # lower and upper ends of intervals -> least cost in each


@dataclass(frozen=True)
class Ceiling:
    """Upper bounds of the metrics of an archive."""

    qd_score: float
    coverage: float  # percent
    best: float = 100.0
    symmetric_qd_score: float | None = None  # linear projection, all coordinates of a half equal


@cache
def ceiling(domain: str, resolution: int = 100, n: int = 1000) -> Ceiling | None:
    """The ceiling of a domain, or None where nobody knows it."""
    known: dict[str, Callable[[int, int], Ceiling]] = {
        "lp-sphere": lp_sphere,
        "lp-rastrigin": lp_rastrigin,
        "lp-plateau": lp_plateau,
        "arm": arm,
    }
    return known[domain](resolution, n) if domain in known else None


def lp_sphere(resolution: int = 100, n: int = 1000) -> Ceiling:
    """Equal coordinates are best: the bound is reached."""
    # A convex cost is least at the point of the interval nearest to the optimum.
    qd_score, coverage = _linear_projection(lambda low, high: sphere(np.clip(SHIFT, low, high)), sphere, resolution, n)
    return Ceiling(qd_score, coverage, symmetric_qd_score=qd_score)


def lp_rastrigin(resolution: int = 100, n: int = 1000) -> Ceiling:
    """A bound for mixed coordinates, and the best with equal ones."""
    envelope = convex_envelope(rastrigin)
    mixed, coverage = _linear_projection(
        lambda low, high: envelope(np.clip(SHIFT, low, high)), rastrigin, resolution, n
    )
    equal, _ = _linear_projection(_least_rastrigin, rastrigin, resolution, n)
    return Ceiling(mixed, coverage, symmetric_qd_score=equal)


def lp_plateau(resolution: int = 100, n: int = 1000) -> Ceiling:
    """Every cell that is reached can hold 100."""
    coverage = lp_sphere(resolution, n).coverage
    return Ceiling(coverage, coverage, symmetric_qd_score=coverage)


def arm(resolution: int = 100, n: int = 1000) -> Ceiling:
    """Cells that reach into the disc; one that only touches it from outside does not count. The grid grows with n."""
    edges = np.arange(resolution + 1) * 2 - resolution  # whole numbers, so that touching is decided exactly
    nearest = np.maximum(np.maximum(edges[:-1], -edges[1:]), 0)
    inside = nearest[:, None] ** 2 + nearest[None, :] ** 2 < resolution**2
    coverage = 100 * float(inside.mean())
    return Ceiling(qd_score=coverage, coverage=coverage)


def sphere(x: np.ndarray) -> np.ndarray:
    """Cost of one coordinate."""
    return (np.asarray(x) - SHIFT) ** 2


def rastrigin(x: np.ndarray) -> np.ndarray:
    """Cost of one coordinate."""
    d = np.asarray(x) - SHIFT
    return 10 + d * d - 10 * np.cos(2 * np.pi * d)


def convex_envelope(cost: Curve) -> Curve:
    """The greatest convex function below the cost on [-5.12, 5.12]: the lower hull of its graph (Andrew 1979)."""
    x = np.linspace(-LIMIT, LIMIT, CURVE_POINTS)
    y = cost(x)
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and _above(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return lambda at: np.interp(at, x[hull], y[hull])


def _above(x: np.ndarray, y: np.ndarray, left: int, middle: int, right: int) -> bool:
    """Whether the middle point lies on or above the line through the others."""
    return bool((y[middle] - y[left]) * (x[right] - x[left]) >= (y[right] - y[left]) * (x[middle] - x[left]))


def _linear_projection(least: Least, cost: Curve, resolution: int, n: int) -> tuple[float, float]:
    """QD-score and coverage when a half costs its size times `least` of the interval of its mean coordinate."""
    worst = n * float(cost(np.array(-LIMIT)))
    first, second = (_half(least, size, resolution, n) for size in (n // 2, n - n // 2))
    cells = 100 * (1 - (first[:, None] + second[None, :]) / worst)
    return float(np.nansum(cells)) / resolution**2, 100 * float(np.isfinite(cells).mean())


def _half(least: Least, size: int, resolution: int, n: int) -> np.ndarray:  # (resolution,)
    """Least cost of a half in every interval of the grid, NaN where it cannot reach."""
    edges = np.linspace(-LIMIT * n / 2, LIMIT * n / 2, resolution + 1) / size
    edges[[0, -1]] = -np.inf, np.inf  # the outer cells take what lies beyond
    low, high = np.maximum(edges[:-1], -LIMIT), np.minimum(edges[1:], LIMIT)
    reached = low < high
    return np.where(reached, size * least(np.minimum(low, high), high), np.nan)


def _least_rastrigin(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Least cost over each interval: at one of its ends, or in a valley between them."""
    valleys = _valleys()
    between = (low[:, None] <= valleys) & (valleys <= high[:, None])
    in_valley = np.where(between, rastrigin(valleys), np.inf).min(axis=1)
    return np.minimum(in_valley, np.minimum(rastrigin(low), rastrigin(high)))


def _valleys() -> np.ndarray:
    """The minima of the Rastrigin function, one near every whole number: Newton's method on its derivative."""
    d = np.arange(-7.0, 4.0)  # covers -5.12 - 2.048 to 5.12 - 2.048
    for _ in range(20):
        d = d - (2 * d + 20 * np.pi * np.sin(2 * np.pi * d)) / (2 + 40 * np.pi**2 * np.cos(2 * np.pi * d))
    return d + SHIFT
