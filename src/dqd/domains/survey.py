"""Which sigma? The one whose steps cross some cells: found by trying, before a search, from x0 and some points near it.

From a point, a few steps of some size are made as the emitter would make them: random numbers, or random combinations
of the gradients there. How many cells of the grid they cross tells which size would have crossed CELLS of them; the
next steps have that size, and when it fits, every second one starts from where a step from x0 ended. Where longer steps
do not reach further in proportion, because measures saturate, the size stays at half of that. Nor are steps longer than
costs them a share LOSS of the objective: random ones in many dimensions soon do. And what noise does is not taken for
steps: where a point evaluated again is not the same, only steps count that go beyond that.

A survey is a generator that asks for evaluations and is sent them, so that whoever evaluates can lead it: the runners,
`dqd.probe`, or a loop of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from dqd.domains.rows import unit_rows
from dqd.inputs.arrays import to_numpy
from dqd.inputs.bounds import Box
from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Along, Evaluation, replace

T = TypeVar("T")

CELLS: dict[Along, float] = {  # what benchmarks/sigma.py found to fit
    "solutions": 6.0,
    "gradients": 20.0,
    "unit gradients": 20.0,
    "signs of gradients": 20.0,
}
SHARE = 0.25  # of the cells along a measure: no step need cross more, but always one
LOSS = 0.1  # of what the objective of x0 lies above an offset: no step need cost more
LEAST = 0.5  # cells that it crosses all the same
SAMPLES = 8  # steps from one point
ROUNDS = 12  # points at most
FITTING = 4  # points whose steps had about the right size; then it is known
RESOLVED = 1e-3  # a difference of objectives is known, as a share of themselves, beyond rounding
LEAP = 1e3  # the size changes by no more at once
NEAR, LINEAR = 0.001, 2.0  # what steps of a share NEAR promise is kept up to LINEAR times as large a size: it varies

AGAIN = 16  # times that x0 is evaluated again, where it is noisy
SEEN = 6.0  # a variance of steps, in that of the noise, above which they are seen; one in 700 is so by chance
CLEAR = 4.0  # what steps do, in standard deviations of the noise, that is believed to be their slope
GROWTH = 8.0  # of the size, where noise hides what steps do


@dataclass(frozen=True)
class Ask:
    """Solutions (b, n) to be evaluated, with or without their jacobians."""

    solutions: np.ndarray
    jacobian: bool


@dataclass
class Survey:
    """Steps from x0 and from a few points near it, in the coordinates of a search; `within` asks in those of solutions.

    `jacobians` are those that were met on the way.
    """

    x0: np.ndarray  # (n,)
    tessellation: Tessellation
    bounds: Box | None = None
    offset: float = 0.0  # an objective that is worth nothing
    jacobians: list[np.ndarray] = field(default_factory=list)  # (1 + k, n)
    _worth: float | None = None  # of x0, above the offset
    _variance: np.ndarray = field(default_factory=lambda: np.zeros(1))  # (k,) of the measures of x0, if they are noisy

    @staticmethod
    def of(x0: np.ndarray, tessellation: Tessellation, bounds: Box | None, offset: float = 0.0) -> Survey:
        """From a solution."""
        return Survey(x0 if bounds is None else bounds.outward(x0), tessellation, bounds, offset)

    def sigma(self, along: Along) -> Generator[Ask, Evaluation, float]:
        """The size of steps, random ones or along gradients, that cross CELLS cells of a measure; of three digits."""
        widths, counts = cells_along(self.tessellation)
        cells = np.clip(counts * SHARE, 1, CELLS[along])
        reach = widths * cells  # (k,) what a step should change
        generator, point, sizes = np.random.default_rng(0), self.x0, Sizes(self._first_size(), LEAST / np.max(cells))
        for _ in range(ROUNDS):
            directions = yield from self._directions(point, along, generator)
            samples = self._inside(point + sizes.size * directions)
            found = yield Ask(np.concatenate([point[None], samples, point[None]]), jacobian=False)
            if not directions.any():  # gradients that are zero or NaN at x0 need not be so beside it
                point = self._beside(sizes.size, generator)
                continue
            measures, objective = (to_numpy(each).astype(float) for each in (found.measures, found.objective))
            noise = yield from self._noise(measures[[0, -1]])
            crossed = _crossed(measures / reach, noise / reach**2)
            fits = sizes.tried(crossed, self._lost(objective[:-1]), float(np.max(noise / reach**2)) ** 0.5)
            finite = np.flatnonzero(np.isfinite(measures[1:-1]).all(axis=1))
            if fits and finite.size:
                point = samples[generator.choice(finite)] if point is self.x0 else self.x0
            if len(sizes.fitting) == FITTING:
                break
        if not sizes.known:
            raise ValueError(_flat(along, sizes.size))
        return float(f"{np.exp(np.mean(np.log(sizes.fitting or sizes.known[-1:]))):.3g}")

    def _noise(self, twice: np.ndarray) -> Generator[Ask, Evaluation, np.ndarray]:
        """The variance of every measure, (k,), where one point evaluated twice was not the same."""
        if not self._variance.any() and np.any(np.ptp(twice, axis=0) > 0):
            again = to_numpy((yield Ask(np.repeat(self.x0[None], AGAIN, axis=0), jacobian=False)).measures)
            self._variance = np.nan_to_num(np.var(again.astype(float), axis=0, ddof=1))
        return self._variance

    def _lost(self, objective: np.ndarray) -> float:
        """How much of the objective (b,) of a point, the first, steps lose for sure: as a share of what x0 is worth.

        What is worth nothing has nothing to lose: then it is 0.
        """
        if self._worth is None:
            self._worth = float(objective[0]) - self.offset
        after = objective[1:][np.isfinite(objective[1:])]
        if not (self._worth > 0 and np.isfinite(self._worth) and after.size > 1):
            return 0.0
        lost = objective[0] - np.mean(after) - np.std(after) / after.size**0.5
        return float(lost) / self._worth if np.isfinite(lost) else 0.0

    def slope(self) -> Generator[Ask, Evaluation, float]:
        """How much an objective, as it is stored, grows when its gradient says that it grows by 1; of four digits.

        By differences along the gradient: up and down by as much, so that its curvature does not count.
        """
        generator, point, size = np.random.default_rng(0), self.x0, self._first_size()
        found = np.nan
        for _ in range(ROUNDS):
            gradient = to_numpy((yield Ask(point[None], jacobian=True)).jacobian)[0, 0].astype(float)
            length = float(np.linalg.norm(gradient))
            if np.isfinite(length) and length > 0:
                ends = self._inside(point + np.outer([size, -size], gradient / length))
                high, low = to_numpy((yield Ask(ends, jacobian=False)).objective).astype(float)
                promised = gradient @ (ends[0].astype(float) - ends[1])
                found = (high - low) / promised if promised > 0 else np.nan
                if found > 0 and high - low > RESOLVED * max(abs(high), abs(low)):
                    break
                size = 5 * size
            else:
                point = self._beside(size, generator)
                yield Ask(point[None], jacobian=False)  # in a loop of one's own both kinds take turns
        return float(f"{found:.4g}") if found > 0 else 1.0

    def _directions(
        self, point: np.ndarray, along: Along, generator: np.random.Generator
    ) -> Generator[Ask, Evaluation, np.ndarray]:
        """Steps of an emitter whose sigma is 1, (SAMPLES, n)."""
        if along == "solutions":
            return generator.normal(size=(SAMPLES, point.size))
        jacobian = to_numpy((yield Ask(point[None], jacobian=True)).jacobian)[0]
        self.jacobians.append(jacobian)
        rows = np.nan_to_num(jacobian if along == "gradients" else unit_rows(jacobian))
        steps = generator.normal(size=(SAMPLES, len(rows))) @ rows
        return np.sign(steps) if along == "signs of gradients" else steps

    def _first_size(self) -> float:
        """A guess: a hundredth of what the bounds allow, or of the numbers in x0."""
        spans = np.zeros(1) if self.bounds is None else np.asarray(self.bounds.upper - self.bounds.lower)
        spans = np.where(np.isfinite(spans), spans, 0)
        return 0.01 * float(np.max(spans) or np.sqrt(np.mean(self.x0.astype(float) ** 2)) or 1)

    def _beside(self, size: float, generator: np.random.Generator) -> np.ndarray:
        """A random point that far from x0."""
        return self._inside(self.x0 + size * generator.normal(size=self.x0.size))

    def _inside(self, solutions: np.ndarray) -> np.ndarray:
        free = self.bounds is None or self.bounds.is_free
        return np.asarray(solutions if free else self.bounds.inside(solutions), self.x0.dtype)  # type: ignore[union-attr]


def within(survey: Generator[Ask, Evaluation, T], bounds: Box | None) -> Generator[Ask, Evaluation, T]:
    """A survey that asks in the coordinates of solutions, which those of its search lead to."""
    if bounds is None or not bounds.is_free:
        return (yield from survey)
    try:
        ask = next(survey)
        while True:
            solutions = bounds.inside(ask.solutions)
            found = yield replace(ask, solutions=solutions)
            if found.jacobian is not None:
                found = replace(found, jacobian=bounds.chained(to_numpy(found.jacobian), solutions))
            ask = survey.send(found)
    except StopIteration as end:
        return end.value


def lead(survey: Generator[Ask, Evaluation, T], evaluate: Callable[[Ask], Evaluation]) -> T:
    """Answer what a survey asks until it knows."""
    try:
        ask = next(survey)
        while True:
            ask = survey.send(evaluate(ask))
    except StopIteration as end:
        return end.value


def cells_along(tessellation: Tessellation) -> tuple[np.ndarray, np.ndarray]:
    """Along each measure, how wide a cell is, and how many there are; where cells differ, as if they were alike."""
    if isinstance(tessellation, Grid):
        counts = np.asarray(tessellation.shape, float)
        return (np.asarray(tessellation.upper) - np.asarray(tessellation.lower)) / counts, counts
    centers = tessellation.centers()
    counts = np.full(tessellation.num_measures, len(centers) ** (1 / tessellation.num_measures))
    spans = np.ptp(centers, axis=0)
    spans = np.where(spans > 0, spans, np.max(spans) or 1.0)  # along this measure, all cells are one
    return spans / counts, counts


@dataclass
class Sizes:
    """Which size of steps? From what those of some sizes did."""

    size: float  # that is tried next
    least: float  # how far steps should go at least, whatever it costs, in what they should
    slope: float = np.inf  # the size that the steepest response so far wants
    ceiling: float = np.inf  # the size at which the response no longer grew
    known: list[float] = field(default_factory=list)  # that were wanted, of steps that did something
    fitting: list[float] = field(default_factory=list)  # of those of about the right size

    def tried(self, crossed: float, lost: float, noise: float) -> bool:
        """Steps went so far, in what they should: 0 if that was not seen, inf if nothing was finite. Do they fit?"""
        size, unseen = self.size, GROWTH if noise else LEAP
        wanted = size * (min(1 / crossed, LEAP) if crossed else unseen)
        if max(NEAR, CLEAR * noise) < crossed < np.inf:
            self.slope = min(self.slope, wanted)
        if wanted > LINEAR * self.slope:
            self.ceiling = min(self.ceiling, size)
        wanted, dear = min(wanted, self.ceiling / 2), size * (LOSS / lost) ** 0.5 if lost > 0 else np.inf
        if crossed:
            dear = max(dear, size * self.least / crossed)
        if 0 < crossed < np.inf or (noise and dear < wanted):
            self.known.append(min(wanted, dear))
        wanted = min(wanted, dear)
        fits = crossed < np.inf and size / 3 < wanted < size * 3
        self.fitting += [wanted] if fits else []
        self.size = max(wanted, size / LEAP) if wanted < 10 * size else wanted / 2.5  # near first: it may not be linear
        return fits


def _crossed(measures: np.ndarray, noise: np.ndarray) -> float:
    """How far steps reach from a point, the first and last of (b, k), beyond noise of this variance (k,).

    Geometric mean over the measures that are seen to change; 0 if none is, inf if nothing is finite.
    """
    moved = measures[1:-1] - (measures[0] + measures[-1]) / 2
    moved, unsure = moved[np.isfinite(moved).all(axis=1)], 1.5 * noise  # the point is the mean of two
    if not len(moved):
        return np.inf
    squares = np.mean(moved**2, axis=0)
    each = np.sqrt(np.where(squares > SEEN * unsure, squares - unsure, 0))
    return float(np.exp(np.mean(np.log(each[each > 0])))) if np.any(each > 0) else 0.0


def _flat(along: Along, size: float) -> str:
    directions = "random directions" if along == "solutions" else "their gradients"
    return (
        f"sigma: none could be chosen, because no measure changed along {directions} from x0, by steps up to "
        f"{size:.2g}, or it was not finite; give sigma a number, or look at dqd.probe(score, x0, grid)"
    )
