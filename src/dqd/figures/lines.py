"""What lines show, as plain arrays: means over trials, with the intervals of these means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Rows = Sequence[Mapping[str, Any]]
LEVEL = 0.95  # of the intervals
RESAMPLES = 2000
POINTS = 200  # where trials have no steps in common, and of thresholds


@dataclass(frozen=True)
class Line:
    """The mean over trials and the interval of that mean."""

    key: str  # by which a figure knows it
    name: str
    x: np.ndarray  # (points,)
    mean: np.ndarray
    low: np.ndarray  # NaN for a single trial
    high: np.ndarray
    trials: int


def progress(name: str, trials: Sequence[tuple[Rows, Rows]], metric: str, against: str = "iteration") -> Line:
    """A metric over what all trials have gone through; a trial is its lines of metrics and of timings."""
    columns = [_against(rows, timings, metric, against) for rows, timings in trials]
    steps = [x for x, _ in columns]
    if not all(len(each) for each in steps):
        raise ValueError(
            "curves: expected runs with metrics, got one without; exported files have none, nor have empty runs"
        )
    x = steps[0]
    if not all(np.array_equal(x, each) for each in steps):
        first, last = max(each[0] for each in steps), min(each[-1] for each in steps)
        x = np.linspace(first, max(first, last), POINTS)
    values = np.array([np.interp(x, *each) for each in columns])
    return Line(name, name, x, values.mean(axis=0), *band(values), trials=len(values))


def _against(rows: Rows, timings: Rows, metric: str, against: str) -> tuple[np.ndarray, np.ndarray]:
    """What was spent at every line of metrics, which may know it themselves, and the metric."""
    known = [row for row in rows if row.get(metric) is not None]
    if known and all(row.get(against) is not None for row in known):
        return np.array([row[against] for row in known], float), _columns(known, metric)[1]
    x, y = _columns(known, metric)
    return spent(timings, against, x), y


def spent(timings: Rows, name: str, iteration: np.ndarray) -> np.ndarray:
    """Evaluations or seconds at these iterations: between two lines of timings, or on the way of the nearest two."""
    if name == "iteration":
        return iteration
    x, y = _columns(timings, name)
    if len(x) < 2:
        raise ValueError(f"curves: it is not known how many {name} the iterations of a run took; leave against out")
    i = np.clip(np.searchsorted(x, iteration), 1, len(x) - 1)
    return np.maximum(y[i - 1] + (y[i] - y[i - 1]) * (iteration - x[i - 1]) / (x[i] - x[i - 1]), 0)


def _columns(rows: Rows, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Iterations, and a column beside them, of the rows that have it."""
    known = [row for row in rows if row.get(name) is not None]
    return np.array([row["iteration"] for row in known], float), np.array([row[name] for row in known], float)


def ccdf(name: str, trials: Sequence[tuple[np.ndarray, int]], thresholds: np.ndarray) -> Line:
    """Percent of all cells whose elite reaches each threshold; a trial is its objectives and its number of cells."""
    shares = np.array([share_above(objective, cells, thresholds) for objective, cells in trials])
    return Line(name, name, thresholds, shares.mean(axis=0), *band(shares), trials=len(shares))


def thresholds(objectives: Sequence[np.ndarray]) -> np.ndarray:
    """From the worst elite of all to the best."""
    values = np.concatenate(objectives)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return np.linspace(low, high, POINTS)


def share_above(objective: np.ndarray, cells: int, thresholds: np.ndarray) -> np.ndarray:
    """Percent of `cells` whose elite reaches each threshold; an empty cell reaches none."""
    ordered = np.sort(objective)
    return 100 * (len(ordered) - np.searchsorted(ordered, thresholds, side="left")) / cells


def band(values: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap interval of the mean over trials at every point, by percentiles (Efron 1979); NaN for one trial."""
    trials = len(values)  # values (trials, points)
    if trials < 2:
        return np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    # How often each trial is drawn: whole trials are resampled, so the points of a curve stay together.
    weights = np.random.default_rng(seed).multinomial(trials, np.full(trials, 1 / trials), RESAMPLES) / trials
    low, high = np.quantile(weights @ values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
