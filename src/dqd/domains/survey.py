"""Which sigma? The one whose steps cross some cells: found by trying, before a search, from x0 and some points near it.

From a point, a few steps of some size are made as the emitter would make them: random numbers, or random combinations
of the gradients there. How many cells of the grid they cross tells which size would have crossed CELLS of them; the
next steps have that size, and when it fits, every second one starts from where a step from x0 ended. Where longer steps
do not reach further in proportion, because measures saturate, the size stays at half of that.

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
    "solutions": 2.0,
    "gradients": 20.0,
    "unit gradients": 20.0,
    "signs of gradients": 20.0,
}
SHARE = 0.25  # of the cells along a measure: no step need cross more, but always one
SAMPLES = 8  # steps from one point
ROUNDS = 12  # points at most
FITTING = 4  # points whose steps had about the right size; then it is known
RESOLVED = 1e-3  # a difference of objectives is known, as a share of themselves, beyond rounding
LEAP = 1e3  # the size changes by no more at once
NEAR, LINEAR = 0.001, 2.0  # what steps of a share NEAR promise is kept up to LINEAR times as large a size: it varies


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
    jacobians: list[np.ndarray] = field(default_factory=list)  # (1 + k, n)

    @staticmethod
    def of(x0: np.ndarray, tessellation: Tessellation, bounds: Box | None) -> Survey:
        """From a solution."""
        return Survey(x0 if bounds is None else bounds.outward(x0), tessellation, bounds)

    def sigma(self, along: Along) -> Generator[Ask, Evaluation, float]:
        """The size of steps, random ones or along gradients, that cross CELLS cells of a measure; of three digits."""
        generator, point, size = np.random.default_rng(0), self.x0, self._first_size()
        widths, counts = cells_along(self.tessellation)
        reach = widths * np.clip(counts * SHARE, 1, CELLS[along])  # (k,) what a step should change
        tried: list[float] = []
        fitting: list[float] = []
        noise: list[np.ndarray] = []  # (k,) squares, by evaluating points twice
        slope, ceiling = np.inf, np.inf  # sizes: wanted by the steepest response so far, and where it no longer grew
        for _ in range(ROUNDS):
            directions = yield from self._directions(point, along, generator)
            samples = self._inside(point + size * directions)
            found = yield Ask(np.concatenate([point[None], samples, point[None]]), jacobian=False)
            moved = (to_numpy(found.measures)[1:] - to_numpy(found.measures)[0]) / reach
            noise.append(np.nan_to_num(moved[-1].astype(float)) ** 2)
            known = np.flatnonzero(np.isfinite(moved[:-1]).all(axis=1))
            crossed = _mean(moved[known], np.mean(noise, axis=0)) if known.size else np.inf
            wanted = size * min(1 / crossed, LEAP) if crossed else size * LEAP
            if NEAR < crossed < np.inf:
                slope = min(slope, wanted)
            if wanted > LINEAR * slope:
                ceiling = min(ceiling, size)
            wanted = min(wanted, ceiling / 2)
            if 0 < crossed < np.inf:
                tried.append(wanted)
            if known.size and size / 3 < wanted < size * 3:
                fitting.append(wanted)
                point = samples[generator.choice(known)] if point is self.x0 else self.x0
            if len(fitting) == FITTING:
                break
            size = max(wanted, size / LEAP) if wanted < 10 * size else wanted / 2.5  # near first: it may not be linear
        if not tried:
            raise ValueError(_flat(along, size))
        return float(f"{np.exp(np.mean(np.log(fitting or tried[-1:]))):.3g}")

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
                point = self._inside(self.x0 + size * generator.normal(size=self.x0.size))
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
    return np.maximum(np.ptp(centers, axis=0), 1e-300) / counts, counts


def _mean(changes: np.ndarray, noise: np.ndarray) -> float:
    """How far steps (b, k) reach along a measure, beyond noise: geometric mean over the measures that change at all."""
    each = np.sqrt(np.maximum(np.mean(np.asarray(changes, float) ** 2, axis=0) - noise, 0))
    return float(np.exp(np.mean(np.log(each[each > 0])))) if np.any(each > 0) else 0.0


def _flat(along: Along, size: float) -> str:
    directions = "random directions" if along == "solutions" else "their gradients"
    return (
        f"sigma: none could be chosen, because no measure changed along {directions} from x0, by steps up to "
        f"{size:.2g}, or it was not finite; give sigma a number, or look at dqd.probe(score, x0, grid)"
    )
