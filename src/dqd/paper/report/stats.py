"""Our numbers beside printed ones, or beside each other: estimates, intervals, areas under curves, tests.

A case that cannot be computed (one trial, no variance) gives NaN, never an exception.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDING = 0.005  # half a unit of the last printed digit
NAN = math.nan


def library(name: str) -> Any:
    """scipy or statsmodels, loaded when needed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"the statistics need {name}: pip install 'dqd[report]'") from None


# One metric against the printed one -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """Mean and standard error over trials; NaN where there are too few."""

    mean: float
    se: float
    trials: int


@dataclass(frozen=True)
class Comparison:
    """Ours beside the published metric."""

    ours: Estimate
    published: Estimate | None
    difference: float  # ours - published
    joint_se: float
    verdict: str  # within, outside, undecided (one trial), other budget, missing, or unpublished

    @property
    def in_se(self) -> float:
        """The difference in joint standard errors."""
        return self.difference / self.joint_se


def estimate(values: np.ndarray) -> Estimate:
    """Mean and standard error, SD / sqrt(trials) with the SD of a sample."""
    count = len(values)
    mean = float(np.mean(values)) if count else NAN
    deviation = np.std(values, ddof=1) if count > 1 and np.ptp(values) else 0.0  # exactly 0 for equal values
    se = float(deviation) / math.sqrt(count) if count > 1 else NAN
    return Estimate(mean, se, count)


def compare(ours: Estimate, published: Estimate | None, same_budget: bool = True) -> Comparison:
    """Within: at most 3 joint standard errors or 1 % of the published value away.

    The joint standard error is at least half a unit of the last printed digit: a printed ± 0.00 means less than that.
    """
    if published is None:
        return Comparison(ours, None, NAN, NAN, "unpublished")
    difference = ours.mean - published.mean
    theirs = published.se if math.isfinite(published.se) else 0.0  # not printed: ours alone counts
    joint = max(math.hypot(ours.se, theirs), ROUNDING) if math.isfinite(ours.se) else NAN
    return Comparison(ours, published, difference, joint, _verdict(difference, joint, published, same_budget))


def _verdict(difference: float, joint: float, published: Estimate, same_budget: bool) -> str:
    if not math.isfinite(difference):
        return "missing"
    if not same_budget:
        return "other budget"
    slack = 1 + 1e-9  # three times 0.1 is not 0.3 in binary
    if abs(difference) <= slack * max(0.01 * abs(published.mean), ROUNDING) or abs(difference) <= slack * 3 * joint:
        return "within"
    return "outside" if math.isfinite(joint) else "undecided"


# Intervals and areas --------------------------------------------------------------------------------------------------


def bootstrap(values: np.ndarray, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of the mean (Efron 1979); NaN for fewer than two trials."""
    if len(values) < 2:
        return NAN, NAN
    drawn = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def area(steps: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Mean height of each curve over the iterations, by the trapezoidal rule: (trials, points) -> (trials,)."""
    if len(steps) == 0:
        return np.full(len(curves), NAN)
    if len(steps) == 1:
        return curves[:, 0]
    return np.trapezoid(curves, steps, axis=1) / (steps[-1] - steps[0])


# Tests ----------------------------------------------------------------------------------------------------------------


def paired(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p of the signed-rank test of trials that belong together two by two (Wilcoxon 1945)."""
    if len(first) < 2 or np.array_equal(first, second):
        return NAN if len(first) < 2 else 1.0
    return float(library("scipy.stats").wilcoxon(first, second).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Corrected for as many tests (Holm 1979)."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * np.asarray(p, float)[order])
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected.tolist()
