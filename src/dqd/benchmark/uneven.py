"""Linear projections in which no two coordinates are alike, and the best that any search could reach on them.

Coordinate i costs c_i max(|x_i - s_i| - r_i, 0)^2, and every measure is a weighted sum of a block of coordinates. So
every cell splits into a problem for each block: its least cost if its weighted sum is the cell's measure. Without
ripples the cost is convex, and pulling along the weights w finds it (Lagrange): of all blocks of one sum

    x_i = s_i + sign(p w_i) r_i + p w_i / (2 c_i),   not beyond the box,

for some pull p, costs least. Coordinates outside the box fold back to measures that cost less inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import CELLS, Function, within
from dqd.domains.linear_projection import LIMIT, clip

PULLS = np.sinh(np.linspace(-15, 15, 8001))  # twice as many change the QD-score by less than 1e-4


def uneven(
    n: int,
    seed: int,
    flat: float = 0.0,
    ripples: float = 0.0,
    scale: float = 4.0,
    ends: Sequence[float] = (0.35,),
    spread: float = 0.5,
) -> Function:
    """Unequal weights, signs, curvatures and optima, in unequal blocks; the objective is 50 at cost `scale`.

    Around its optimum a coordinate may be `flat` about so far, with a steep rim, or have `ripples` of unequal length.
    Blocks end at such shares of all coordinates; `spread` is that of the logarithm of the weights.
    """
    random = np.random.default_rng(seed)
    block = np.digitize(random.random(n), ends)
    weights = random.lognormal(0, spread, n) * random.choice([-1, 1], n)
    rows = np.stack([weights * (block == j) for j in range(len(ends) + 1)])
    rows = rows / np.abs(rows).sum(axis=1, keepdims=True)
    best, radius = random.uniform(-2, 2, n), flat * random.uniform(0.7, 1.3, n)
    curvature = random.lognormal(0, 0.7, n) * (10 if flat else 1)
    heights, lengths = ripples * random.uniform(0.5, 1.5, n), random.uniform(0.7, 1.4, n)

    def score(x: Array) -> tuple[Array, Array]:
        beyond = jnp.maximum(jnp.abs(x - best) - radius, 0)
        waves = heights * (1 - jnp.cos(2 * np.pi * (x - best) / lengths))
        return 100 / (1 + jnp.mean(curvature * beyond * beyond + waves) / scale), rows @ clip(x)

    intervals = round(CELLS ** (1 / len(rows)))
    costs = reduce(np.add.outer, [least(row, best, radius, curvature, intervals) for row in rows]) / n
    ceiling = None if ripples else float(np.mean(100 / (1 + costs / scale)))
    return Function(score, *within(LIMIT, len(rows)), random.uniform(-3, 3, n), ceiling)


def least(
    row: np.ndarray, best: np.ndarray, radius: np.ndarray, curvature: np.ndarray, intervals: int = 100
) -> np.ndarray:
    """The least cost of a block in each interval of its measure, (intervals,)."""
    pulls = PULLS[:, None] * row
    pulled = np.clip(best + np.sign(pulls) * radius + pulls / (2 * curvature), -LIMIT, LIMIT)  # (pulls, n)
    costs = np.maximum(np.abs(pulled - best) - radius, 0) ** 2 @ curvature
    edges = np.linspace(-LIMIT, LIMIT, intervals + 1)
    return np.interp(np.clip(row @ best, edges[:-1], edges[1:]), pulled @ row, costs)
