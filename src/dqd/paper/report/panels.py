"""What the figures of a suite show, as plain arrays: NumPy in, NumPy out. Drawing is in `draw`.

A trial that is missing is left out of a mean, and the panel says so. Archives are read here one array at a time: their
solutions are large, and only one figure needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dqd.figures import arm
from dqd.figures.lines import Line, band, share_above
from dqd.figures.panels import HeatMap, Poses, heatmap
from dqd.paper.report.ceilings import LIMIT, ceiling
from dqd.paper.report.collect import EntryData, SuiteData
from dqd.paper.report.tables import domain_title
from dqd.storage import record
from dqd.tessellations import kinds

XY = tuple[np.ndarray, np.ndarray]
MAP = ("grid_lower", "grid_upper", "grid_shape", "cell", "objective")  # arrays of an archive


# Means over trials ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """One domain with all its algorithms."""

    title: str
    lines: tuple[Line, ...]
    bound: float | None  # no search can get above it
    missing: tuple[str, ...]


def curves(suite: SuiteData) -> list[Lines]:
    """QD-score against iteration, as in the paper's `fig:summary`."""
    return _by_domain(suite, lambda entry: (entry.steps, entry.curves["qd_score"]), "qd_score")


def cumulative(suite: SuiteData) -> list[Lines]:
    """Percent of all cells whose elite has an objective of at least t = 0, 1, ..., 100: `fig:cumulative_plots`."""
    thresholds = np.arange(101.0)
    return _by_domain(suite, lambda entry: (thresholds, _shares(entry, thresholds)), "coverage")


def _by_domain(suite: SuiteData, values: Callable[[EntryData], XY], bound: str) -> list[Lines]:
    panels = []
    for domain in suite.domains:
        entries = [entry for entry in suite.entries if entry.domain == domain]
        lines = tuple(_line(entry, *values(entry)) for entry in entries if len(entry.steps))
        best = ceiling(domain, entries[0].resolution, entries[0].n)
        panels.append(Lines(domain_title(domain), lines, getattr(best, bound, None), missing(entries)))
    return panels


def _line(entry: EntryData, x: np.ndarray, values: np.ndarray) -> Line:  # values (trials, points)
    return Line(entry.key, entry.name, x, values.mean(axis=0), *band(values), trials=len(values))


def _shares(entry: EntryData, thresholds: np.ndarray) -> np.ndarray:
    archives = [_arrays(entry, trial, MAP) for trial in entry.trials]
    return np.array([share_above(a["objective"], kinds.from_arrays(a).num_cells, thresholds) for a in archives])


# Archives -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Archives:
    """Archives side by side: a row per algorithm, a column per domain."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    maps: dict[tuple[int, int], HeatMap]  # (row, column); what is missing has a note instead
    notes: dict[tuple[int, int], str]

    def turned(self) -> Archives:
        """Rows become columns."""
        maps = {(column, row): each for (row, column), each in self.maps.items()}
        notes = {(column, row): note for (row, column), note in self.notes.items()}
        return Archives(self.columns, self.rows, maps, notes)


def archives(suite: SuiteData, domains: Iterable[str] | None = None) -> Archives:
    """The archive of every entry's first trial (`fig:results`); if that one is missing, of the next, with a note."""
    wanted = [domain for domain in suite.domains if domains is None or domain in domains]
    maps, notes = {}, {}
    for row, key in enumerate(suite.rows):
        for column, domain in enumerate(wanted):
            entry = suite.entry(key, domain)
            if entry is None or not entry.trials:
                notes[row, column] = "not run" if entry is None else "no trial yet"
                continue
            maps[row, column] = heatmap(_arrays(entry, entry.trials[0], MAP))
            if entry.trials[0] != 0:
                notes[row, column] = f"trial {entry.trials[0]}"
    return Archives(tuple(suite.rows.values()), tuple(map(domain_title, wanted)), maps, notes)


@dataclass(frozen=True)
class NearOptimum:
    """The last digits of an arm archive's objectives, as 100 sqrt(f / 100) like the paper's Figure 1."""

    nines: HeatMap  # -log10(100 - 100 sqrt(f / 100)): 3 at 99.999, 6 at 99.999999
    name: str
    precision: str  # of the search
    recomputed: bool  # f from the stored joint angles; otherwise as the archive holds it
    step: float  # the smallest distance above 0 that this precision can store
    at_optimum: float  # percent of the elites whose stored f is 100


def near_optimum(suite: SuiteData, algorithm: str = "cma-mega-adam") -> NearOptimum | None:
    """The first archive of that algorithm on the arm; None if there is none.

    Near 100 a float32 objective has steps of 7.6e-6. The joint angles carry more: their variance, computed from them in
    float64, tells elites apart which the archive holds as equal.
    """
    found = [entry for entry in suite.entries if (entry.domain, entry.algorithm) == ("arm", algorithm) and entry.trials]
    if not found:
        return None
    arrays = _arrays(found[0], found[0].trials[0], (*MAP, "solutions"))
    stored = arrays["objective"]
    if recomputed := "solutions" in arrays:
        arrays["objective"] = arm_objective(arrays["solutions"])
    distance = distance_from_optimum(arrays["objective"])
    arrays["objective"] = -np.log10(np.maximum(distance, 1e-16))  # float64 knows nothing between 1e-15 and 0
    step = float(distance_from_optimum(np.nextafter(stored.dtype.type(100), stored.dtype.type(0))))
    at_optimum = 100 * float(np.mean(stored >= 100)) if len(stored) else 0.0
    picture = heatmap(arrays, value_label="100 √(objective / 100)")
    return NearOptimum(picture, found[0].label, found[0].precision, recomputed, step, at_optimum)


def distance_from_optimum(objective: np.ndarray) -> np.ndarray:
    """100 - 100 sqrt(f / 100), without the loss of digits of that difference; f below 0 counts as 0."""
    lack = np.clip((100 - np.asarray(objective, np.float64)) / 100, 0, 1)
    return 100 * lack / (1 + np.sqrt(1 - lack))


# The domains explained ------------------------------------------------------------------------------------------------


def bates(n: int, x: np.ndarray) -> np.ndarray:
    """Density of the mean of n uniform numbers on [0, 1] (Bates 1955), like a measure of random solutions."""
    x = np.asarray(x, np.float64)
    y = n * np.minimum(x, 1 - x)[..., None]  # symmetric; the lower half of the alternating sum loses fewer digits
    k = np.arange(n // 2 + 1)
    signed = np.array([(-1) ** int(i) * math.comb(n, int(i)) for i in k], np.float64)
    terms = np.where(y >= k, signed * np.maximum(y - k, 0.0) ** (n - 1), 0.0)
    return np.where((x >= 0) & (x <= 1), n / math.factorial(n - 1) * terms.sum(axis=-1), 0.0)


def clip(x: np.ndarray) -> np.ndarray:
    """What a coordinate of the linear projection adds to its measure."""
    outside = np.abs(x) > LIMIT
    return np.where(outside, LIMIT / np.where(outside, x, 1.0), x)


def clip_slope(x: np.ndarray) -> np.ndarray:
    """Its derivative."""
    outside = np.abs(x) > LIMIT
    return np.where(outside, -LIMIT / np.where(outside, x, 1.0) ** 2, 1.0)


SUBOPTIMAL_ARM = (2.65, 0.75, 0.3, 0.6, -0.3, -0.23, -0.5)


def example_arms() -> dict[str, Poses]:
    """Arms of 7 joints as in the paper: an optimal one, one that is not, and many optimal ones."""
    angles = {
        "Optimal: all angles 0.65": np.full((1, 7), 0.65),
        "Sub-optimal": np.array([SUBOPTIMAL_ARM]),
        "Optimal: 19 arms of equal angles": np.repeat(np.linspace(-0.7, 0.7, 19)[:, None], 7, axis=1),
    }
    return {name: Poses(arm.joints(each), arm_objective(each), 7.0) for name, each in angles.items()}


def arm_objective(angles: np.ndarray) -> np.ndarray:
    """100 (1 - variance of the angles), in float64."""
    return 100 * (1 - np.var(np.asarray(angles, np.float64), axis=1))


# Reading --------------------------------------------------------------------------------------------------------------


def missing(entries: Iterable[EntryData]) -> tuple[str, ...]:
    """Which trials were asked for and are not there, in words."""
    return tuple(
        f"{entry.name}: {len(entry.trials)} of {entry.expected} trials"
        for entry in entries
        if len(entry.trials) < entry.expected
    )


def _arrays(entry: EntryData, trial: int, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Some arrays of an archive, without reading the others."""
    return record.newest(entry.trial_folder(trial), lambda checkpoint: checkpoint.arrays(only=names))
