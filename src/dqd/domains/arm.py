"""Arm repertoire: a planar arm of n joints should reach every point with its angles as equal as can be.

Objective: minus the variance of the joint angles. Measures: the position of the hand.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.domains.domain import Domain, sized
from dqd.domains.trigonometry import cosine, running_sum, sine, total
from dqd.figures import arm
from dqd.tessellations.grid import Grid
from dqd.types import pytree, static


@pytree
class Arm(Domain):
    """The arm repertoire of the paper: n links of length 1, each turned by an angle x_i against the link before.

        objective = - variance of x,  stored as 100 (1 - variance)
        measures  = (sum_i cos(x_1 + .. + x_i), sum_i sin(x_1 + .. + x_i)),  the hand, within a disc of radius n

    Args:
        n: joints; a solution has as many angles, in radians.

    >>> arm = dqd.Arm(n=3)
    >>> objective, measures = arm.score(jnp.zeros(3))  # stretched out
    >>> measures.tolist()
    [3.0, 0.0]
    >>> arm.grid(50).shape
    (50, 50)
    """

    n: int = static(default=1000)

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n: an arm needs at least 1 joint, got {self.n}")

    @property
    def transform(self) -> tuple[float, float]:
        return 100.0, 100.0

    def grid(self, resolution: int = 100) -> Grid:
        return Grid((-self.n, -self.n), (self.n, self.n), (resolution, resolution))

    def score(self, x: Array) -> tuple[Array, Array]:
        directions = running_sum(sized(x, self.n))
        variance = total((x - total(x) / self.n) ** 2) / self.n
        return -variance, jnp.stack([total(cosine(directions)), total(sine(directions))])

    def joints(self, x: Array) -> Array:
        """Positions of the base and of the end of every link, (n + 1, 2)."""
        return arm.joints(jnp.asarray(x))
