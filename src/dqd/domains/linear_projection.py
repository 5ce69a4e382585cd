"""Linear projection (Fontaine et al. 2020): easy objectives whose measures are hard to spread.

Both measures are sums of many clipped coordinates, so random solutions crowd in the middle of measure space (a Bates
distribution) and only a directed search reaches its corners.
"""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp
from jax import Array

from dqd.domains.domain import Domain, sized
from dqd.domains.trigonometry import cos_turns, total
from dqd.tessellations.grid import Grid
from dqd.types import pytree, static

LIMIT = 5.12
SHIFT = 0.4 * LIMIT  # the optimum lies off the centre


@pytree
class LinearProjection(Domain):
    """Maximise -R(x), R the sphere or the Rastrigin function shifted by 2.048; stored as 100 (1 - R / R_max).

    The plateau (Fontaine & Nikolaidis 2023) is 100 wherever all |x_i| <= 5.12, less the mean of (|x_i| - 5.12)^2 over
    all coordinates of which those inside count 0: an objective without a slope where the measures are.
    """

    objective: Literal["sphere", "rastrigin", "plateau"] = static()
    n: int = static(default=1000)

    def __post_init__(self) -> None:
        if self.objective not in ("sphere", "rastrigin", "plateau"):
            raise ValueError(f"objective: expected 'sphere', 'rastrigin' or 'plateau', got {self.objective!r}")
        if self.n < 2:
            raise ValueError(f"n: two measures need at least 2 coordinates, got {self.n}")

    @property
    def transform(self) -> tuple[float, float]:
        if self.objective == "plateau":
            return 1 / self.n, 100.0
        d = LIMIT + SHIFT  # distance of the far corner x = -5.12
        worst = d * d if self.objective == "sphere" else 10 + d * d - 10 * math.cos(2 * math.pi * d)
        return 100 / (self.n * worst), 100.0

    def grid(self, resolution: int = 100) -> Grid:
        reach = LIMIT * self.n / 2
        return Grid((-reach, -reach), (reach, reach), (resolution, resolution))

    def score(self, x: Array) -> tuple[Array, Array]:
        x = sized(x, self.n)
        d = jnp.maximum(jnp.abs(x) - LIMIT, 0) if self.objective == "plateau" else x - SHIFT
        terms = d * d
        if self.objective == "rastrigin":
            terms = terms + 10 - 10 * cos_turns(d)
        y, half = clip(x), self.n // 2
        return -total(terms), jnp.stack([total(y[:half]), total(y[half:])])


def clip(x: Array) -> Array:
    """x inside [-5.12, 5.12], 5.12 / x outside: leaving the box is punished, not saturated."""
    inside = jnp.abs(x) <= LIMIT
    return jnp.where(inside, x, LIMIT / jnp.where(inside, 1, x))  # the inner guard keeps the derivative finite at 0
