"""What a function of the field is, and how many of them share one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.domains.domain import Domain
from dqd.tessellations.grid import Grid
from dqd.types import pytree, static

CELLS = 10_000  # about, whatever the number of measures
SAMPLES = 1000  # random solutions by whose measures a grid is laid
ScoreOf = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Function:
    """score(x) -> objective, measures; the objective is at most 100."""

    score: ScoreOf
    lower: tuple[float, ...]  # of the grid
    upper: tuple[float, ...]
    x0: np.ndarray
    ceiling: float | None = None  # the best QD-score that is possible, where it is known

    @property
    def shape(self) -> tuple[int, ...]:
        """The same number of cells along each measure."""
        k = len(self.lower)
        return (round(CELLS ** (1 / k)),) * k

    @property
    def grid(self) -> Grid:
        return Grid(self.lower, self.upper, self.shape)

    @property
    def size(self) -> tuple[int, int]:
        """Functions of one size, (n, k), share a program."""
        return len(self.x0), len(self.lower)


def within(reach: float, k: int = 2) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A grid from -reach to reach along every measure."""
    return (-reach,) * k, (reach,) * k


def normals(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def near_zero(x: Array, distance: float = 1.0) -> Array:
    """100 at 0, half of it where the numbers are of size `distance`."""
    return 100 / (1 + jnp.mean(x * x) / distance**2)


def laid(score: ScoreOf, x0: np.ndarray, reach: float) -> Function:
    """With a grid of so many standard deviations around the mean of the measures of random solutions."""
    _, measures = jax.vmap(score)(jnp.asarray(normals(1200, SAMPLES, len(x0))))
    mean, spread = np.mean(measures, axis=0), np.std(measures, axis=0)
    lower, upper = (
        [float(f"{side:.4g}") for side in sides] for sides in (mean - reach * spread, mean + reach * spread)
    )
    return Function(score, tuple(lower), tuple(upper), x0)


@pytree
class Field(Domain):
    """One of several functions of one size, chosen when it runs: one program serves them all."""

    number: Array
    scores: tuple[ScoreOf, ...] = static()

    def score(self, x: Array) -> tuple[Array, Array]:
        with jax.default_matmul_precision("highest"):  # a GPU would round factors to 10 bits: noise in the measures
            return jax.lax.switch(self.number, self.scores, x)


def fields(functions: Mapping[str, Function]) -> dict[str, Field]:
    """The field in which each function is one of its size."""
    sizes: dict[tuple[int, int], list[str]] = {}
    for name, function in functions.items():
        sizes.setdefault(function.size, []).append(name)
    return {name: field for names in sizes.values() for name, field in _together(functions, names)}


def _together(functions: Mapping[str, Function], names: Sequence[str]) -> list[tuple[str, Field]]:
    scores = tuple(functions[name].score for name in names)
    return [(name, Field(jnp.asarray(i), scores)) for i, name in enumerate(names)]
