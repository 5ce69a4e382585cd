"""Runs against each other: groups of seeds, what they reached, and whether the difference is more than luck."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.paper.report.stats import bootstrap, holm

METRICS = ("qd_score", "coverage", "best")
NAN = math.nan
POINTS = 100  # of a curve
RESAMPLES = 1_000  # for the interval at each of them
FEW = 8  # trials in the smaller group; more are near enough to normal


@dataclass(frozen=True)
class Trial:
    """One run, as a comparison sees it."""

    name: str
    domain: str
    algorithm: str
    figures: Mapping[str, float]  # by METRICS
    curves: Mapping[str, Sequence[float]]  # by METRICS, and iteration
    id: str = ""


@dataclass(frozen=True)
class Estimate:
    """One metric of one group."""

    mean: float
    median: float
    iqm: float  # mean of the middle half
    low: float  # 95 % interval of the mean, by bootstrap
    high: float
    trials: int


@dataclass(frozen=True)
class Test:
    """One metric of two groups."""

    metric: str
    first: str
    second: str
    p: float  # Mann-Whitney, two-sided
    corrected: float  # after Holm, over all pairs of this metric
    effect: float  # how often the first beats the second; 0.5 is no difference


Groups = dict[str, list[Trial]]


def group(trials: Sequence[Trial]) -> Groups:
    """Trials of one problem and one algorithm belong together; if all do, each stands for itself."""
    several = len({trial.domain for trial in trials}) > 1
    groups: Groups = {}
    for trial in trials:
        label = " on ".join(filter(None, [trial.algorithm, trial.domain if several else ""])) or trial.name
        groups.setdefault(label, []).append(trial)
    return groups if len(groups) > 1 else {trial.name: [trial] for trial in trials}


def estimate(values: np.ndarray) -> Estimate:
    values = np.sort(values[np.isfinite(values)])
    if len(values) == 0:
        return Estimate(NAN, NAN, NAN, NAN, NAN, 0)
    middle = float(np.mean(values)), float(np.median(values)), _middle_half(values)
    return Estimate(*middle, *bootstrap(values), len(values))


def _middle_half(ordered: np.ndarray) -> float:
    """Mean of what is left when a quarter is cut off at each end; parts of a value count in part."""
    edges = np.arange(len(ordered) + 1) / len(ordered)
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(np.sum(weight * ordered) / weight.sum())


def values(groups: Groups, name: str, metric: str) -> np.ndarray:
    return np.array([trial.figures.get(metric, NAN) for trial in groups[name]], float)


def tests(groups: Groups) -> list[Test]:
    """Every pair of groups with two trials or more each."""
    usable = [name for name, trials in groups.items() if len(trials) > 1]
    pairs = list(itertools.combinations(usable, 2))
    found = []
    for metric in METRICS if pairs else ():
        ranked = [_rank_test(values(groups, a, metric), values(groups, b, metric)) for a, b in pairs]
        corrected = holm([p for p, _ in ranked])
        found += [
            Test(metric, a, b, p, q, effect) for (a, b), (p, effect), q in zip(pairs, ranked, corrected, strict=True)
        ]
    return found


def _rank_test(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return NAN, NAN
    wins = np.sum(first[:, None] > second) + 0.5 * np.sum(first[:, None] == second)
    return mann_whitney(first, second), float(wins) / (len(first) * len(second))


def mann_whitney(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p: exact for few values without ties, else by the normal distribution, corrected for both."""
    m, n = len(first), len(second)
    wins = float(np.sum(first[:, None] > second) + 0.5 * np.sum(first[:, None] == second))
    most = max(wins, m * n - wins)
    _, ties = np.unique(np.concatenate([first, second]), return_counts=True)
    if min(m, n) <= FEW and ties.max() == 1:
        ways = _orders(m, n)
        return min(1.0, 2 * sum(ways[round(most) :]) / sum(ways))
    total = m + n
    variance = m * n / 12 * (total + 1 - float(np.sum(ties**3 - ties)) / (total * (total - 1)))
    if variance == 0:
        return 1.0
    return math.erfc(max(0.0, most - m * n / 2 - 0.5) / math.sqrt(2 * variance))


def _orders(m: int, n: int) -> list[int]:
    """In how many orders of m + n values the first group wins so often: the coefficients of a Gaussian binomial."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for wins in range(m * n, n + i - 1, -1):
            ways[wins] -= ways[wins - n - i]
        for wins in range(i, m * n + 1):
            ways[wins] += ways[wins - i]
    return ways


def curves(groups: Groups) -> dict[str, dict[str, Any]]:
    """Mean and interval of every metric over the iterations that all trials of a group have."""
    return {name: _curves(trials) for name, trials in groups.items()}


def _curves(trials: Sequence[Trial]) -> dict[str, Any]:
    with_history = [trial for trial in trials if len(trial.curves.get("iteration", ())) > 1]
    if not with_history:
        return {}
    first = max(trial.curves["iteration"][0] for trial in with_history)
    last = min(trial.curves["iteration"][-1] for trial in with_history)
    steps = np.linspace(first, max(first, last), POINTS)
    content: dict[str, Any] = {"iteration": steps.tolist()}
    for metric in METRICS:
        rows = np.array([_at(steps, trial, metric) for trial in with_history])
        bounds = np.array([bootstrap(column, resamples=RESAMPLES) for column in rows.T])
        content[metric] = {
            "mean": rows.mean(axis=0).tolist(),
            "low": bounds[:, 0].tolist(),
            "high": bounds[:, 1].tolist(),
        }
    return content


def _at(steps: np.ndarray, trial: Trial, metric: str) -> np.ndarray:
    heights = np.array([NAN if value is None else value for value in trial.curves[metric]], float)
    return np.interp(steps, np.asarray(trial.curves["iteration"], float), heights)


def table(groups: Groups) -> list[dict[str, Any]]:
    """One row for every group and metric."""
    return [
        {"group": name, "metric": metric, **vars(estimate(values(groups, name, metric)))}
        for metric in METRICS
        for name in groups
    ]
