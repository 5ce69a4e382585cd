"""Jacobians estimated from plain evaluations, for functions that nobody can differentiate.

Samples lie around a point in pairs, x + o and x - o. What a pair says is its rise, f(x + o) - f(x - o), over what it
really moved: rounding and bounds may have shortened the step. So bounds hold for samples, too, and at a bound a
difference becomes one-sided. A pair that could not be evaluated is left out.

NumPy only, so that a worker that merely evaluates need not load JAX.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dqd.inputs.arguments import check_seed

Bounds = tuple[np.ndarray, np.ndarray]


@runtime_checkable
class Estimate(Protocol):
    """Interface. Equal points give equal samples, in whatever process and order: a run can be repeated and resumed."""

    def around(self, point: np.ndarray, bounds: Bounds | None) -> np.ndarray:
        """Where to evaluate (m, n) for the jacobian at a point (n,), in its precision."""
        ...

    def jacobian(self, point: np.ndarray, samples: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """The jacobian (1 + k, n) from objective and measures (m, 1 + k) of the samples; NaN where it is not known."""
        ...


@dataclass(frozen=True)
class FiniteDifferences:
    """Central differences, coordinate by coordinate: 2 n evaluations for each jacobian.

    Args:
        step: length of a step, relative to max(1, |x|) of each coordinate. By default the cube root of the precision of
            solutions, 5e-3 in float32 and 6e-6 in float64, where rounding and curvature do equal harm. Give one where
            solutions are much smaller than 1, or where the function is noisy or less precise than its solutions.

    >>> differences = FiniteDifferences()
    >>> x = np.array([1.0, 2.0])
    >>> samples = differences.around(x, None)
    >>> differences.jacobian(x, samples, (samples**2).sum(axis=1, keepdims=True)).round(6).tolist()
    [[2.0, 4.0]]
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None:
            _check_length("FiniteDifferences", "step", self.step)

    def around(self, point: np.ndarray, bounds: Bounds | None) -> np.ndarray:
        return _pairs(point, self._offsets(point), bounds)

    def jacobian(self, point: np.ndarray, samples: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        return _slopes(self._offsets(point), samples, outputs)

    def _offsets(self, point: np.ndarray) -> np.ndarray:
        step = float(np.cbrt(np.finfo(point.dtype).eps)) if self.step is None else self.step
        return np.diag(step * np.maximum(1.0, np.abs(point.astype(np.float64))))


@dataclass(frozen=True)
class EvolutionStrategies:
    """The antithetic estimate of an evolution strategy: the mean of (f(x + sigma e) - f(x - sigma e)) e / (2 sigma).

    It is the gradient of f smoothed by N(0, sigma^2 I): jumps, plateaus and noise do little harm. With fewer samples
    than numbers in a solution it is rough, yet right on average.

    Args:
        samples: evaluations for each jacobian, an even number.
        sigma: standard deviation of the samples around the point, in the units of solutions.
        seed: of the directions, which depend on it and on the point alone.

    >>> noisy = dqd.evaluator(lambda x: (-np.sum(x**2, axis=1), x[:, :2]), jacobian=dqd.EvolutionStrategies(samples=20))
    >>> told = noisy.evaluate_with_jacobian(np.ones((1, 4)))
    >>> told.jacobian.shape, told.evaluations.tolist()  # 20 for the jacobian, and the point itself
    ((1, 3, 4), [21])
    """

    samples: int = 40
    sigma: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        count = self.samples
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2 or count % 2:
            raise ValueError(f"EvolutionStrategies: samples: expected an even number, at least 2, got {count!r}")
        _check_length("EvolutionStrategies", "sigma", self.sigma)
        check_seed(self.seed)

    def around(self, point: np.ndarray, bounds: Bounds | None) -> np.ndarray:
        return _pairs(point, self._offsets(point), bounds)

    def jacobian(self, point: np.ndarray, samples: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        offsets = self._offsets(point)
        # A pair speaks for a coordinate as strongly as its direction points there.
        return _slopes(offsets, samples, outputs) * np.mean((offsets / self.sigma) ** 2, axis=0)

    def _offsets(self, point: np.ndarray) -> np.ndarray:
        digest = hashlib.sha256(int(self.seed).to_bytes(8, "little") + np.ascontiguousarray(point).tobytes()).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
        return self.sigma * generator.standard_normal((self.samples // 2, point.size))


def _pairs(point: np.ndarray, offsets: np.ndarray, bounds: Bounds | None) -> np.ndarray:
    """Samples (2 m, n): the point plus the offsets (m, n), then minus them."""
    samples = np.concatenate([point + offsets, point - offsets]).astype(point.dtype)
    return samples if bounds is None else np.clip(samples, *bounds)


def _slopes(offsets: np.ndarray, samples: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Outputs (2 m, d) regressed on each coordinate by itself, (d, n): whatever else moved averages out."""
    there, back = np.split(samples.astype(np.float64), 2)
    rises = np.subtract(*np.split(outputs.astype(np.float64), 2))
    known = np.isfinite(rises).all(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # a coordinate that nothing moved is not known
        return rises[known].T @ offsets[known] / np.sum((there - back)[known] * offsets[known], axis=0)


def _check_length(owner: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ValueError(f"{owner}: {name}: expected a finite number above 0, got {value!r}")


ESTIMATES: dict[str, Estimate] = {"fd": FiniteDifferences(), "es": EvolutionStrategies()}  # by their short names
