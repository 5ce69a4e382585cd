"""Linear projection (Fontaine et al. 2020): easy objectives whose measures are hard to spread.

Every measure is a sum of many clipped coordinates, so random solutions crowd in the middle of measure space (a Bates
distribution) and only a directed search reaches its corners.
"""

from __future__ import annotations

import itertools
import math
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from dqd.domains.domain import Domain, sized
from dqd.domains.trigonometry import cos_turns, total
from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.types import pytree, static

LIMIT = 5.12
SHIFT = 0.4 * LIMIT  # the optimum lies off the centre


@pytree
class LinearProjection(Domain):
    """Linear projection: maximise -R(x), with d = x - 2.048, over sums of clipped coordinates.

        R        = sum_i d_i^2                              "sphere"
                   sum_i d_i^2 + 10 - 10 cos(2 pi d_i)      "rastrigin"
        measures = (sum of clip(x_i) over block 1, .. block k),  clip(x) = x if |x| <= 5.12, else 5.12 / x

    Stored is 100 (1 - R / R_max), R_max the worst within the box. The "plateau" (Fontaine & Nikolaidis 2023) is 100
    wherever all |x_i| <= 5.12, less the mean of (|x_i| - 5.12)^2 over all coordinates of which those inside count 0: an
    objective without a slope where the measures are.

    Args:
        objective: "sphere", "rastrigin" or "plateau".
        n: numbers in a solution.
        measures: k, the number of blocks, as equal as they can be.

    >>> domain = dqd.LinearProjection("sphere", n=10)
    >>> float(domain.evaluate(jnp.full((1, 10), 2.048)).objective[0])  # the best there is
    100.0
    >>> domain.grid(50).upper
    (25.6, 25.6)
    """

    objective: Literal["sphere", "rastrigin", "plateau"] = static()
    n: int = static(default=1000)
    measures: int = static(default=2)  # k: as many blocks of coordinates, of equal size as far as that goes

    def __post_init__(self) -> None:
        if self.objective not in ("sphere", "rastrigin", "plateau"):
            raise ValueError(f"objective: expected 'sphere', 'rastrigin' or 'plateau', got {self.objective!r}")
        if not 1 <= self.measures <= self.n:
            raise ValueError(f"n: {self.measures} measures need at least as many coordinates, got {self.n}")

    @property
    def transform(self) -> tuple[float, float]:
        if self.objective == "plateau":
            return 1 / self.n, 100.0
        d = LIMIT + SHIFT  # distance of the far corner x = -5.12
        worst = d * d if self.objective == "sphere" else 10 + d * d - 10 * math.cos(2 * math.pi * d)
        return 100 / (self.n * worst), 100.0

    def grid(self, resolution: int = 100) -> Grid:
        lower, upper = self.ends()
        return Grid(lower, upper, (resolution,) * self.measures)

    def cells(self, count: int) -> CVT:
        """Cells of about equal size around centroids, for more measures than a grid can cut."""
        return CVT.uniform(*self.ends(), count)

    def ends(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Both ends of every measure."""
        reach = LIMIT * self.n / self.measures
        return (-reach,) * self.measures, (reach,) * self.measures

    def score(self, x: Array) -> tuple[Array, Array]:
        x = sized(x, self.n)
        d = jnp.maximum(jnp.abs(x) - LIMIT, 0) if self.objective == "plateau" else x - SHIFT
        terms = jnp.square(d)
        if self.objective == "rastrigin":
            terms = terms + 10 - 10 * cos_turns(d)
        return -total(terms), self._measures(clip(x))

    def _measures(self, y: Array) -> Array:
        """The sum of every part, (k,)."""
        if self.n % self.measures == 0:
            return total(y.reshape(self.measures, -1))  # one product
        edges = [self.n * j // self.measures for j in range(self.measures + 1)]
        return jnp.stack([total(y[a:b]) for a, b in itertools.pairwise(edges)])


@jax.custom_jvp
def clip(x: Array) -> Array:
    """x inside [-5.12, 5.12], 5.12 / x outside: leaving the box is punished, not saturated."""
    inside = jnp.abs(x) <= LIMIT
    return jnp.where(inside, x, LIMIT / jnp.where(inside, 1, x))


@clip.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Its derivative as one factor, which is cheaper than what follows from the rules."""
    (x,), (tangent,) = primals, tangents
    inside = jnp.abs(x) <= LIMIT
    return clip(x), tangent * jnp.where(inside, 1, -LIMIT / jnp.square(jnp.where(inside, 1, x)))
