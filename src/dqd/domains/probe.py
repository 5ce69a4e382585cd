"""`probe`: a first look at a function, before a search: its ranges, gradients, noise, cost, and a sigma that fits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd.domains.check_jacobian import told
from dqd.domains.domain import Domain, evaluating
from dqd.domains.function import as_domain
from dqd.domains.problem import Problem
from dqd.domains.rows import remarks, row_names, unit_rows
from dqd.domains.survey import Ask, Survey, lead, within
from dqd.inputs.arrays import to_numpy
from dqd.inputs.bounds import numpy_sides
from dqd.inputs.evaluator import Evaluator
from dqd.inputs.layout import Layout
from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Along, Evaluation, Score

RANDOM, POINTS = 16, 4  # random solutions; points with jacobians
CELLS = 10_000  # of a grid that is suggested
MARGIN = 0.1  # of the range that was seen, added on both sides
BATCH = 36  # evaluations of an iteration, one of them with its jacobian

_evaluate = jax.jit(lambda domain, solutions: domain.evaluate(solutions))
_evaluate_with_jacobian = jax.jit(lambda domain, solutions: domain.evaluate_with_jacobian(solutions))


@dataclass(frozen=True)
class Probe:
    """What `dqd.probe` found; printed, it is a table, and every row of it is an attribute."""

    n: int
    objective: tuple[float, float]  # least and largest that was seen
    lower: np.ndarray  # (k,) of the measures that were seen
    upper: np.ndarray  # (k,)
    grid: Tessellation  # that was given, or bounds to begin with
    outside: float  # share of what was seen that lies outside of it
    noise: np.ndarray  # (1 + k,) how much objective and measures differ when x0 is evaluated again
    gradients: np.ndarray | None  # (1 + k,) median length of the gradients; None without any
    condition: float | None  # of the unit gradients: 1 at right angles, infinite if one depends on the others
    remarks: list[str]  # rows that cannot be followed
    sigma: dict[str, float]  # that fit, by what they multiply
    seconds: float  # of an evaluation
    jacobian_seconds: float | None
    evaluations: int  # that were made, jacobians included
    iterations: int

    @property
    def expected_seconds(self) -> float:
        """Of the evaluations of so many iterations, 36 each, one of them with its jacobian."""
        return self.iterations * (BATCH * self.seconds + (self.jacobian_seconds or 0.0))

    def __str__(self) -> str:
        names = row_names(1 + len(self.lower))
        ranges = [self.objective, *zip(self.lower, self.upper, strict=True)]
        lines = [f"{self.n:,} numbers, {len(self.lower)} measures; {self.evaluations} evaluations", ""]
        lines.append(f"{'':16}{'from':>11}{'to':>11}{'noise':>11}{'gradient':>11}")
        for row, (name, (low, high)) in enumerate(zip(names, ranges, strict=True)):
            gradient = "-" if self.gradients is None else f"{self.gradients[row]:.3g}"
            lines.append(f"{name:16}{low:11.3g}{high:11.3g}{self.noise[row]:11.2g}{gradient:>11}")
        return "\n".join([*lines, "", *(f"{name:<12}{words}" for name, words in self._rows()), *self.remarks])

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("grid", f"{_words(self.grid)}; {self.outside:.0%} of what was seen lies outside")]
        if self.condition is not None:
            rows.append(("condition", f"{self.condition:.3g} of the unit gradients (1: at right angles)"))
        rows += [("sigma", f"{number:.3g} along {along}") for along, number in self.sigma.items()]
        costs = f"{_time(self.seconds)} per evaluation"
        costs += "" if self.jacobian_seconds is None else f", {_time(self.jacobian_seconds)} per jacobian"
        return [
            *rows,
            ("cost", f"{costs}: {_time(self.expected_seconds)} for {self.iterations:,} iterations of {BATCH}"),
        ]


def probe(
    score: Score | Domain | Evaluator | Problem[Any],
    x0: Any = None,
    grid: Tessellation | None = None,
    *,
    bounds: Any = None,
    spread: float = 1.0,
    iterations: int = 10_000,
) -> Probe:
    """Look at a function before a search: some dozens of evaluations around x0, and what they tell.

    Args:
        score: whatever `dqd.illuminate` takes.
        x0: where a search would start: an array (n,), or any pytree of arrays for a score function.
        grid: the cells, if you know them; else bounds are suggested, from the measures that were seen.
        bounds: (lower, upper) for solutions, numbers or shaped like x0; or a `dqd.Bounds`.
        spread: standard deviation of the random solutions around x0 whose measures are looked at; where there are
            bounds, they are drawn evenly between them.
        iterations: for which the time is to be told.

    >>> found = probe(lambda x: (-(x**2).sum(), x[:2] * 1000), np.zeros(5))
    >>> found.remarks, sorted(found.sigma)
    ([], ['solutions', 'unit gradients'])
    """
    if isinstance(score, Problem):
        filled = score.filled(x0=x0, tessellation=grid, bounds=bounds)
        score, x0, grid, bounds = score.domain, filled["x0"], filled["tessellation"], filled["bounds"]
    layout, flat = Layout.of(x0)
    score = evaluating(score)
    foreign = isinstance(score, Evaluator) and not isinstance(score, Domain)
    look = _Look(score if foreign else as_domain(score, layout))  # type: ignore[arg-type]
    box = layout.box(bounds, flat)
    limits, start = numpy_sides(box), np.asarray(flat)

    twice = [_outputs(look(Ask(start[None], jacobian=False)))[0] for _ in range(2)]
    samples = _around(start, limits, spread)
    points = np.concatenate([start[None], samples[: POINTS - 1]])
    jacobian = look.jacobian(points)
    seen = _outputs(
        look(Ask(np.concatenate([points, samples, *_along(start, jacobian, limits, spread)]), jacobian=False))
    )
    seen = seen[np.isfinite(seen).all(axis=1)]
    if not len(seen):
        raise ValueError(
            "probe: no evaluation around x0 was finite; check score(x0), or give a smaller spread or bounds"
        )
    lower, upper = seen.min(axis=0), seen.max(axis=0)
    cells = _grid(lower[1:], upper[1:]) if grid is None else grid
    return Probe(
        start.size,
        (float(lower[0]), float(upper[0])),
        lower[1:],
        upper[1:],
        cells,
        float(np.mean(cells.outside(seen[:, 1:]))),
        np.abs(twice[1] - twice[0]),
        None if jacobian is None else np.median(np.linalg.norm(jacobian, axis=2), axis=0),
        None if jacobian is None else _condition(jacobian),
        [] if jacobian is None else remarks(jacobian),
        _sigmas(Survey.of(start, cells, box), look, jacobian is not None),
        look.seconds(False) or 0.0,
        None if jacobian is None else look.seconds(True),
        look.count,
        iterations,
    )


@dataclass
class _Look:
    """Evaluates, counts and takes the time."""

    judge: Evaluator
    times: dict[tuple[bool, int], list[float]] = field(default_factory=dict)  # of jacobians or not, by rows

    def __call__(self, ask: Ask) -> Evaluation:
        started = time.perf_counter()
        found = jax.tree.map(to_numpy, told(self._function(ask.jacobian)(ask.solutions)))
        self.times.setdefault((ask.jacobian, len(ask.solutions)), []).append(time.perf_counter() - started)
        return found

    def _function(self, jacobian: bool) -> Callable[[Any], Any]:
        if isinstance(self.judge, Domain):
            domain, compiled = self.judge, _evaluate_with_jacobian if jacobian else _evaluate
            return lambda solutions: compiled(domain, jnp.asarray(solutions))
        return self.judge.evaluate_with_jacobian if jacobian else self.judge.evaluate

    def jacobian(self, points: np.ndarray) -> np.ndarray | None:
        """Finite jacobians at these points, one by one; None where there are none."""
        found = [self(Ask(point[None], jacobian=True)).jacobian for point in points]
        known = [to_numpy(each)[0].astype(float) for each in found if each is not None]
        finite = [each for each in known if np.isfinite(each).all()]
        return np.stack(finite) if finite else None

    def seconds(self, jacobian: bool) -> float | None:
        """Of one evaluation: the best of those calls whose program was there already."""
        calls = [(rows, many) for (kind, rows), many in self.times.items() if kind == jacobian]
        again = [min(many[1:]) / rows for rows, many in calls if len(many) > 1]
        return min(again or [many[0] / rows for rows, many in calls], default=None)

    @property
    def count(self) -> int:
        return sum(rows * len(many) for (_, rows), many in self.times.items())


def _sigmas(survey: Survey, look: _Look, gradients: bool) -> dict[str, float]:
    kinds: list[Along] = ["unit gradients", "solutions"] if gradients else ["solutions"]
    found = {}
    for along in kinds:
        try:
            found[along] = lead(within(survey.sigma(along), survey.bounds), look)
        except ValueError:  # nothing moves along it, as the remarks say
            continue
    return {str(along): number for along, number in found.items()}


def _around(x0: np.ndarray, bounds: tuple[Any, Any] | None, spread: float) -> np.ndarray:
    """Random solutions: between the bounds, or around x0."""
    generator = np.random.default_rng(0)
    normal = x0 + spread * generator.normal(size=(RANDOM, x0.size))
    if bounds is None:
        return normal.astype(x0.dtype)
    finite = np.isfinite(bounds[0]) & np.isfinite(bounds[1])
    low, high = (np.where(finite, side, 0) for side in bounds)
    even = generator.uniform(low, high, size=normal.shape)
    return np.clip(np.where(finite, even, normal), *bounds).astype(x0.dtype)


def _along(
    x0: np.ndarray, jacobian: np.ndarray | None, bounds: tuple[Any, Any] | None, spread: float
) -> list[np.ndarray]:
    """As far as a random solution, or to the bounds, up and down the gradient of every measure."""
    if jacobian is None:
        return []
    spans = np.zeros(1) if bounds is None else np.subtract(*bounds[::-1])
    steps = (
        max(spread, np.max(spans, where=np.isfinite(spans), initial=0)) * np.sqrt(x0.size) * unit_rows(jacobian[0])[1:]
    )
    ends = np.concatenate([x0 + steps, x0 - steps])
    return [(ends if bounds is None else np.clip(ends, *bounds)).astype(x0.dtype)]


def _outputs(found: Evaluation) -> np.ndarray:
    """Objective and measures, (b, 1 + k)."""
    return np.column_stack([to_numpy(found.objective), to_numpy(found.measures)]).astype(float)


def _condition(jacobian: np.ndarray) -> float:
    values = np.linalg.svd(unit_rows(jacobian), compute_uv=False)  # (p, 1 + k)
    return float(np.median(np.where(values[:, -1] > 1e-7, values[:, 0] / np.maximum(values[:, -1], 1e-7), np.inf)))


def _grid(lower: np.ndarray, upper: np.ndarray) -> Grid:
    margin = np.maximum(MARGIN * (upper - lower), 1e-6 * np.maximum(np.abs(lower), 1))
    each = max(2, round(CELLS ** (1 / len(lower))))
    low, high = ([float(f"{side:.2g}") for side in sides] for sides in (lower - margin, upper + margin))
    return Grid(low, high, [each] * len(lower))  # type: ignore[arg-type]


def _words(cells: Tessellation) -> str:
    if not isinstance(cells, Grid):
        return f"{cells.num_cells:,} cells"
    return f"lower={list(cells.lower)}, upper={list(cells.upper)}, shape={list(cells.shape)}"


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
