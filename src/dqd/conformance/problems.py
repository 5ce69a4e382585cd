"""The small problems on which every emitter is tried.

Sizes are small and alike, and the problem is a traced choice, so that an emitter is compiled once, however many
problems, seeds and numbers it is tried with.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.domains import Arm, Domain, LinearProjection
from dqd.types import pytree

N, RESOLUTION = 40, 20
PROBLEMS = (LinearProjection("sphere", N), LinearProjection("rastrigin", N), Arm(N))
SPHERE, RASTRIGIN, ARM = range(3)


@pytree
class Chosen(Domain):
    """One of PROBLEMS, chosen when it runs."""

    number: Array

    @property
    def transform(self) -> tuple[Array, Array]:  # type: ignore[override]
        scales, offsets = zip(*(problem.transform for problem in PROBLEMS), strict=True)
        return jnp.array(scales)[self.number], jnp.array(offsets)[self.number]

    def score(self, x: Array) -> tuple[Array, Array]:
        return jax.lax.switch(self.number, [problem.score for problem in PROBLEMS], x)


def problem(number: int) -> Chosen:
    return Chosen(jnp.asarray(number))


def start(n: int = N) -> np.ndarray:
    """A start without symmetries, where an error of sign or order would show."""
    return np.linspace(-0.4, 0.5, n)


evaluate = jax.jit(Domain.evaluate)
evaluate_with_jacobian = jax.jit(Domain.evaluate_with_jacobian)
