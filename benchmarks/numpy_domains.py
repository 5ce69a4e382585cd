"""The three domains in batched NumPy with analytic gradients: what the pyribs contestant evaluates.

`evaluate(solutions (b,n)) -> objective (b,), measures (b,2)` and `jacobian(point (n,)) -> (3,n)`. The objective row is
the gradient of the raw objective (-R, or minus the variance), as in the authors' code; normalisation takes the scale
out. Results have the precision of the solutions.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

SHIFT = 0.4 * 5.12
LIMIT = 5.12


class LinearProjection:
    """Shifted sphere or Rastrigin; a measure is the sum of one half of the clipped coordinates."""

    def __init__(self, name: str, n: int) -> None:
        self.rastrigin = name == "rastrigin"
        self.half = n // 2
        self.worst = float(self._raw(np.full((1, n), -LIMIT))[0])

    def evaluate(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        objective = 100 * (1 - self._raw(solutions) / self.worst)
        clipped = self._clip(solutions)
        measures = np.stack([clipped[:, : self.half].sum(1), clipped[:, self.half :].sum(1)], axis=1)
        return objective, measures

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        rows = np.zeros((3, point.size), point.dtype)
        distance = point - SHIFT
        rows[0] = -2 * distance
        if self.rastrigin:
            rows[0] -= 20 * np.pi * np.sin(2 * np.pi * distance)
        slope = np.ones(point.size, point.dtype)
        outside = np.abs(point) > LIMIT
        slope[outside] = -LIMIT / point[outside] ** 2
        rows[1, : self.half] = slope[: self.half]
        rows[2, self.half :] = slope[self.half :]
        return rows

    def _raw(self, solutions: np.ndarray) -> np.ndarray:
        distance = solutions - SHIFT
        total = np.einsum("bn,bn->b", distance, distance)
        if self.rastrigin:
            total += 10 * solutions.shape[1] - 10 * np.cos(2 * np.pi * distance).sum(1)
        return total

    @staticmethod
    def _clip(solutions: np.ndarray) -> np.ndarray:
        clipped = solutions.copy()
        outside = np.abs(solutions) > LIMIT
        clipped[outside] = LIMIT / solutions[outside]
        return clipped


class Arm:
    """Planar arm with n unit links: small variance of the joint angles, measures are the hand's position."""

    def evaluate(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = np.cumsum(solutions, axis=1)
        measures = np.stack([np.cos(angles).sum(1), np.sin(angles).sum(1)], axis=1)
        return 100 * (1 - solutions.var(1)), measures

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        angles = np.cumsum(point)
        from_the_end = np.cumsum(np.stack([-np.sin(angles), np.cos(angles)])[:, ::-1], axis=1)[:, ::-1]
        objective = -2 * (point - point.mean()) / point.size
        return np.concatenate([objective[None], from_the_end])


class Timed:
    """A domain that knows how long it was asked, where it was asked: its arrays come from elsewhere, as in any loop."""

    def __init__(self, domain: LinearProjection | Arm) -> None:
        self.domain, self.seconds = domain, 0.0

    def evaluate(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._timed(self.domain.evaluate, solutions)

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        return self._timed(self.domain.jacobian, point)

    def _timed(self, function: Callable, argument: np.ndarray) -> Any:
        begin = time.perf_counter()
        found = function(argument)
        self.seconds += time.perf_counter() - begin
        return found


def domain_of(name: str, n: int) -> LinearProjection | Arm:
    return Arm() if name == "arm" else LinearProjection(name.removeprefix("lp-"), n)
