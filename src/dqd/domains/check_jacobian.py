"""Is this jacobian right? Compare it with central differences, and say in words which row is wrong and how.

Compared are slopes along directions, J v against (f(x + h v) - f(x - h v)) / 2h: along single coordinates (at most 64)
and along a few random directions, which see every coordinate at once and drown round-off.

Each slope is measured with h and h / 2. Their mismatch tells how far the measurement itself can be trusted: it grows
when h is too long for the function's curvature, too short for its floating-point numbers, or steps over a jump. So the
best of a few h is chosen row by row, whatever the precision, and only an error beyond the doubt counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd.domains.domain import Domain, evaluating
from dqd.domains.function import FunctionDomain
from dqd.domains.rows import remarks, row_names
from dqd.inputs.arrays import to_numpy
from dqd.inputs.evaluator import Answer, Evaluator
from dqd.inputs.layout import Layout, OnFlat
from dqd.types import Evaluation, Score

STEPS = (1e-1, 1e-2, 1e-3, 1e-4)  # of each coordinate that moves
COORDINATES, DIRECTIONS = 64, 32
ROWS = 64  # solutions per call of the evaluator: one shape to compile, and no more than a large model can hold
UNKNOWN = 1e300  # the doubt of a slope that could not be measured
ALIKE = 0.02  # two rows that differ by less, relative to their size, are recognised as one another


@dataclass(frozen=True)
class JacobianReport:
    """True in an `if` when every row agrees with finite differences; `message` says in words what does not.

    It also names rows that are right, but cannot be followed: those that are zero, or parallel to another.
    """

    ok: bool
    errors: np.ndarray  # (1 + k,) largest error of each row beyond doubt, relative to its largest slope
    message: str

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.message


def check_jacobian(
    evaluator: Evaluator | Score, x: Any, *, step: float | None = None, tolerance: float | None = None
) -> JacobianReport:
    """Compare the evaluator's jacobian at x, (n,) or (b, n), with central differences of its raw functions.

    A score function of structured solutions is checked at one, any pytree of arrays; an evaluator is given named parts
    as one vector.

    Takes a domain, a plain score function or any evaluator; solutions are handed over in the kind of x (JAX, NumPy,
    torch). `step` replaces the choice of h by one value and makes the check four times cheaper. `tolerance` is relative
    to the largest slope of a row, by default the fourth root of the machine epsilon: 1.2e-4 in float64, 1.9e-2 in
    float32. A jump or kink within h of x costs the directions that cross it, not the check.

    >>> bool(check_jacobian(lambda x: (-(x**2).sum(), x[:2]), np.array([1.0, 2.0, 3.0])))
    True
    """
    judge: Evaluator
    if isinstance(evaluator, Evaluator):
        judge, x = evaluator, Layout.of(x)[1] if isinstance(x, Mapping) else x
    elif _is_array(x):
        judge = FunctionDomain(evaluator)
    else:
        layout, x = Layout.of(x)
        judge = FunctionDomain(OnFlat(evaluator, layout))
    solutions = np.atleast_2d(to_numpy(x))
    solutions = solutions if jnp.issubdtype(solutions.dtype, jnp.floating) else solutions.astype(float)
    judge = _Programs(judge) if isinstance(judge, Domain) and evaluating(judge) is judge else judge
    found = told(judge.evaluate_with_jacobian(_like(x, solutions)))
    complaint = _shape_complaint(found, *solutions.shape)
    if complaint:
        return JacobianReport(False, np.full(1, np.nan), complaint)

    jacobian, scale = to_numpy(found.jacobian), _scale(judge)  # (b, 1 + k, n)
    dtype = max(solutions.dtype, jacobian.dtype, key=_epsilon)
    raw = _Raw(judge, x, scale)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is reported, not warned of
        slopes = [
            _compare(raw, point, rows, family, STEPS if step is None else (step,))
            for point, rows in zip(solutions.astype(dtype), jacobian.astype(float), strict=True)
            for family in _directions(point)
        ]
    flat = 10 * _epsilon(dtype) * np.max(np.abs(raw.rows(found)), axis=0)  # (1 + k,) slopes below are round-off
    report = _report(_joined(slopes), scale, flat, _epsilon(dtype) ** 0.25 if tolerance is None else tolerance)
    return replace(report, message="\n  ".join([report.message, *(remarks(jacobian) if report else [])]))


def told(answer: Answer) -> Evaluation:
    return Evaluation(*answer) if isinstance(answer, tuple | list) else answer


@jax.jit
def _evaluate(domain: Domain, solutions: Any) -> Evaluation:
    return domain.evaluate(solutions)


@jax.jit
def _evaluate_with_jacobian(domain: Domain, solutions: Any) -> Evaluation:
    return domain.evaluate_with_jacobian(solutions)


@dataclass(frozen=True)
class _Programs:
    """A domain whose evaluations are one program each; op by op, every operation is compiled for itself.

    One that JAX cannot compile is evaluated as it is: a loop of one's own may use it, and it says best what it lacks.
    """

    domain: Domain

    @property
    def transform(self) -> tuple[float, float]:
        return self.domain.transform

    def evaluate(self, solutions: Any) -> Evaluation:
        try:
            return _evaluate(self.domain, solutions)
        except (TypeError, ValueError, IndexError):  # those of JAX are such, too
            return self.domain.evaluate(solutions)

    def evaluate_with_jacobian(self, solutions: Any) -> Evaluation:
        try:
            return _evaluate_with_jacobian(self.domain, solutions)
        except (TypeError, ValueError, IndexError):
            return self.domain.evaluate_with_jacobian(solutions)


# Measuring slopes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Raw:
    """The raw functions: solutions (m, n) -> objective and measures (m, 1 + k)."""

    evaluator: Evaluator
    x: Any
    scale: float

    def __call__(self, points: np.ndarray) -> np.ndarray:
        pieces = [points[i : i + ROWS] for i in range(0, len(points), ROWS)]
        return np.concatenate([self.rows(told(self.evaluator.evaluate(_like(self.x, few)))) for few in pieces])

    def rows(self, found: Evaluation) -> np.ndarray:
        return np.column_stack([to_numpy(found.objective) / self.scale, to_numpy(found.measures)]).astype(float)


@dataclass(frozen=True)
class _Directions:
    v: np.ndarray  # (m, n) of length 1
    reach: np.ndarray  # (m,) h for a step of 1 in each coordinate that moves
    least: np.ndarray  # (m,) below this h, rounding of x would swallow the step
    labels: list[str]


@dataclass(frozen=True)
class _Slopes:
    """Directional derivatives: a row for each row of the jacobian, a column for each direction."""

    claimed: np.ndarray  # by the jacobian
    measured: np.ndarray  # by differences
    doubt: np.ndarray  # how far those can be off
    labels: list[str]


def _directions(x: np.ndarray) -> list[_Directions]:
    """Coordinates and random signs."""
    generator, n = np.random.default_rng(0), x.size
    least = 32 * _epsilon(x.dtype) * np.abs(x.astype(float))
    chosen = np.sort(generator.permutation(n)[:COORDINATES])
    units = np.zeros((chosen.size, n))
    units[np.arange(chosen.size), chosen] = 1
    signs = generator.choice([-1.0, 1.0], (DIRECTIONS, n)) / np.sqrt(n)
    reach = np.full(DIRECTIONS, np.sqrt(n))
    return [
        _Directions(units, np.ones(chosen.size), least[chosen], [f"coordinate {i}" for i in chosen]),
        _Directions(signs, reach, reach * np.median(least), ["a random direction"] * DIRECTIONS),
    ]


def _compare(raw: _Raw, x: np.ndarray, jacobian: np.ndarray, along: _Directions, steps: tuple[float, ...]) -> _Slopes:
    """Slopes with, for each row, the step at which h and h / 2 agree best."""
    claimed = jacobian @ along.v.T
    trials = [_trial(raw, x, jacobian, along, step) for step in steps]
    errors, mismatches = (np.stack(part) for part in zip(*trials, strict=True))  # (steps, 1 + k, m)
    share = mismatches / np.maximum(np.abs(claimed + errors), mismatches)  # from 0, exact, to 1, useless
    best = np.argmin(np.mean(share, axis=2, keepdims=True), axis=0, keepdims=True)  # (1, 1 + k, 1)
    error, mismatch = (np.take_along_axis(part, best, axis=0)[0] for part in (errors, mismatches))
    # A jump within reach doubles the slope as h is halved: 4 mismatches bound the extrapolated error even then.
    doubt = 4 * (mismatch + np.median(mismatch, axis=1, keepdims=True))
    # Where hardly any direction settles the function is noise, and a few that seem to are luck.
    share = mismatch / np.maximum(np.maximum(np.abs(claimed), np.abs(claimed + error)), mismatch)
    doubt = np.where(np.quantile(share, 0.25, axis=1, keepdims=True) < 0.1, doubt, UNKNOWN)
    return _Slopes(claimed, claimed + error, doubt, along.labels)


def _trial(
    raw: _Raw, x: np.ndarray, jacobian: np.ndarray, along: _Directions, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Measured minus claimed slopes, extrapolated to h = 0 (Richardson), and the mismatch between h and h / 2."""

    def error(h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ahead, behind = ((x + side * h[:, None] * along.v).astype(x.dtype) for side in (1, -1))
        walked = ahead.astype(float) - behind.astype(float)  # not quite 2 h v: the points were rounded
        values = raw(np.concatenate([ahead, behind]))
        rise = values[: h.size] - values[h.size :]
        round_off = _epsilon(x.dtype) * np.max(np.abs(values), axis=0)
        return (rise - walked @ jacobian.T).T / (2 * h), round_off[:, None] / h

    h = np.maximum(step * along.reach, along.least)
    (long, _), (short, round_off) = error(h), error(h / 2)
    mismatch = np.abs(long - short) + round_off
    known = np.isfinite(mismatch)
    return np.where(known, (4 * short - long) / 3, 0), np.where(known, mismatch, UNKNOWN)


def _joined(slopes: list[_Slopes]) -> _Slopes:
    claimed, measured, doubt = (
        np.concatenate([getattr(part, name) for part in slopes], axis=1) for name in ("claimed", "measured", "doubt")
    )
    return _Slopes(claimed, measured, doubt, [label for part in slopes for label in part.labels])


# Saying what is wrong -------------------------------------------------------------------------------------------------


def _report(slopes: _Slopes, scale: float, flat: np.ndarray, tolerance: float) -> JacobianReport:
    names = row_names(len(slopes.claimed))
    verdicts = [_verdict(slopes, row, names, scale, flat[row], tolerance) for row in range(len(names))]
    errors = np.array([error for error, _ in verdicts])
    wrong = [f"row {row} ({names[row]}) {words}" for row, (_, words) in enumerate(verdicts) if words]
    if not wrong:
        return JacobianReport(True, errors, f"jacobian agrees with finite differences: error {errors.max():.2g}")
    if any("is the gradient of" in line for line in wrong):
        wrong.append(f"expected the rows in this order: {', '.join(names)}")
    return JacobianReport(False, errors, "\n  ".join(["jacobian disagrees with finite differences:", *wrong]))


def _verdict(
    slopes: _Slopes, row: int, names: list[str], scale: float, flat: float, tolerance: float
) -> tuple[float, str]:
    """The relative error of one row, and what is wrong with it: nothing is an empty string."""
    claimed, measured, doubt = slopes.claimed[row], slopes.measured[row], slopes.doubt[row]
    if not np.isfinite(claimed).all():
        return np.inf, "is not finite"
    size = np.maximum(np.abs(claimed), np.abs(measured))
    settled = doubt <= 0.5 * size
    excess = np.maximum(np.abs(claimed - measured) - doubt, 0)
    error = float(np.max(excess) / max(np.max(size, where=settled, initial=0), np.max(np.abs(claimed)), 1e-300))
    if error > tolerance:
        worst = int(np.argmax(excess))
        along = (
            f"is wrong along {slopes.labels[worst]}: it says {claimed[worst]:.4g}, differences {measured[worst]:.4g}"
        )
        return error, _diagnosis(slopes, row, names, scale) or along
    if np.any(np.abs(claimed) > flat) and not np.any(settled):
        return error, "cannot be checked here: differences do not settle (noise, a jump, not finite); try another x"
    return error, ""


def _diagnosis(slopes: _Slopes, row: int, names: list[str], scale: float) -> str:
    """Recognise a wrong row as zero, or as a multiple of this or another gradient; else an empty string."""
    if not np.any(slopes.claimed[row]):
        return "is zero, but the function is not flat"
    fits = [(*_fit(slopes, row, other), other) for other in range(len(names))]
    misfit, factor, other = min(fits, key=lambda fit: (fit[0] > ALIKE, fit[2] != row, fit[0]))
    if misfit > ALIKE or (other == row and abs(factor - 1) < ALIKE):
        return ""
    if other != row:
        return f"is the gradient of {names[other]}" + ("" if abs(factor - 1) < ALIKE else f", times {factor:.4g}")
    if abs(factor + 1) < ALIKE:
        return "has the wrong sign"
    if row == 0 and abs(factor / scale - 1) < ALIKE:
        return f"belongs to the stored objective; expected that of the raw one: divide by {scale:.4g}"
    return f"is scaled by {factor:.4g}"


def _fit(slopes: _Slopes, row: int, other: int) -> tuple[float, float]:
    """(misfit, factor) of the claimed row as a multiple of another function's measured slopes."""
    claimed, measured, doubt = slopes.claimed[row], slopes.measured[other], slopes.doubt[other]
    settled = doubt <= 0.5 * np.maximum(np.abs(claimed), np.abs(measured))
    claimed, measured = claimed[settled], measured[settled]
    if not np.any(claimed) or not np.any(measured):
        return np.inf, 0.0
    factor = float(claimed @ measured / (measured @ measured))
    return float(np.linalg.norm(claimed - factor * measured) / np.linalg.norm(claimed)), factor


def _shape_complaint(found: Evaluation, b: int, n: int) -> str:
    """What is wrong with the shapes: nothing is an empty string."""
    objective, measures = to_numpy(found.objective).shape, to_numpy(found.measures).shape
    if objective != (b,):
        return f"objective: expected ({b},) = (batch,), got {objective}"
    if len(measures) != 2 or measures[0] != b:
        return f"measures: expected ({b}, k) = (batch, measures), got {measures}"
    if found.jacobian is None:
        return "jacobian: evaluate_with_jacobian returned none"
    expected, got = (b, 1 + measures[1], n), to_numpy(found.jacobian).shape
    hint = "; swap its last two axes" if got == (b, n, 1 + measures[1]) else ""
    wanted = f"expected {expected} = (batch, 1 + measures, n), objective first"
    return "" if got == expected else f"jacobian: {wanted}, got {got}{hint}"


# Arrays of any kind ---------------------------------------------------------------------------------------------------


def _scale(evaluator: Evaluator) -> float:
    """The archive may store scale * objective + offset; the jacobian is that of the objective itself."""
    transform = getattr(evaluator, "transform", None)
    return float(transform[0]) if isinstance(transform, tuple) else 1.0


def _is_array(x: Any) -> bool:
    """Or numbers in lists; any other pytree is a structured solution."""
    return hasattr(x, "shape") or all(isinstance(leaf, int | float) for leaf in jax.tree.leaves(x))


def _like(x: Any, points: np.ndarray) -> Any:
    """The points in the kind of array that x is."""
    if isinstance(x, jax.Array):
        return jnp.asarray(points)
    return x.new_tensor(points, dtype=x.dtype) if type(x).__module__ == "torch" else points


def _epsilon(dtype: Any) -> float:
    return float(jnp.finfo(dtype).eps)
