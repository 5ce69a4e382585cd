"""The floor: what the evaluations of CMA-MEGA alone cost on this engine. No archive, no ranking, no CMA-ES.

Per iteration one point with its jacobian and 35 branches theta + c @ J, coefficients drawn per chunk, under one scan.
A search that costs little more than this has nothing left to gain but faster domain functions. The points are elites of
a real search, because cosines cost more at some numbers than at others.
"""

import jax
import jax.numpy as jnp

from settings import BATCH

CHUNK = 250  # iterations per compiled scan, as in `illuminate`


class Floor:
    """Evaluates around the given points (CHUNK, n), again and again, and learns nothing."""

    def __init__(self, domain, points: jax.Array, sigma: float, seed: int) -> None:
        self.domain, self.points = domain, points
        rows = domain.evaluate_with_jacobian(points).jacobian  # (CHUNK, 3, n)
        self.spread = sigma / (jnp.linalg.norm(rows, axis=-1) + 1e-8)  # once, instead of normalising in the loop
        self.key = jax.random.key(seed)

    def advance(self, iterations: int) -> None:
        if iterations % CHUNK:
            raise ValueError(f"iterations: expected a multiple of {CHUNK}, got {iterations}")
        for _ in range(iterations // CHUNK):
            self.key, total = _chunk(self.domain, self.points, self.spread, self.key)
            jax.block_until_ready(total)

    def score(self) -> tuple[None, None]:
        return None, None


@jax.jit
def _chunk(domain, points, spread, key):
    key, normal_key = jax.random.split(key)
    normals = jax.random.normal(normal_key, (CHUNK, BATCH - 1, spread.shape[1]))

    def step(total, drawn):
        theta, c = drawn
        theta = theta + 1e-30 * total  # nothing, but the compiler cannot know that and must compute every result
        point = domain.evaluate_with_jacobian(theta[None])
        branches = domain.evaluate(theta + c @ point.jacobian[0])
        results = (point.objective, point.measures, branches.objective, branches.measures)
        return sum(jnp.sum(result) for result in results), None

    total, _ = jax.lax.scan(step, jnp.zeros(()), (points, spread[:, None] * normals))
    return key, total
