"""A uniform grid over measure space."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.cells import index_of
from dqd.types import pytree, static


@pytree
class Grid:
    """Cells of equal size between `lower` and `upper`, `shape[j]` of them along measure j.

    A measure outside the range belongs to the border cell on its side; nothing is refused.

    >>> Grid(lower=[-1, 0], upper=[1, 5], shape=[20, 50]).num_cells
    1000
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    shape: tuple[int, ...] = static()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", _numbers("lower", self.lower))
        object.__setattr__(self, "upper", _numbers("upper", self.upper))
        object.__setattr__(self, "shape", _counts(self.shape))
        sizes = {"lower": len(self.lower), "upper": len(self.upper), "shape": len(self.shape)}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"Grid: lower, upper and shape need one entry per measure, got lengths {sizes}")
        for j, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low < high:
                raise ValueError(f"Grid: lower must lie below upper; measure {j} has lower={low}, upper={high}")

    @property
    def num_measures(self) -> int:
        return len(self.shape)

    @property
    def num_cells(self) -> int:
        return math.prod(self.shape)

    def index_of(self, measures: Array) -> Array:
        """Cell index of each row of measures (..., k) -> (...); C order, measure 0 slowest."""
        measures, low, high = self._real(measures)
        return index_of(measures, low, high, self.shape, jnp)

    def outside(self, measures: Array) -> Array:
        """Which rows of measures (..., k) lie outside the range and are moved to a border cell."""
        measures, low, high = self._real(measures)
        return jnp.any((measures < low) | (measures > high), axis=-1)

    def _real(self, measures: Array) -> tuple[Array, Array, Array]:
        """Measures and both edges in one floating type."""
        measures = jnp.asarray(measures, jnp.result_type(measures, float) if measures.dtype.kind != "f" else None)
        return measures, jnp.asarray(self.lower, measures.dtype), jnp.asarray(self.upper, measures.dtype)

    def centers(self) -> np.ndarray:
        """Middle of every cell, (num_cells, k), in index order."""
        axes = [
            low + (np.arange(count) + 0.5) * (high - low) / count
            for low, high, count in zip(self.lower, self.upper, self.shape, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(self.num_cells, self.num_measures)


def _per_measure(name: str, values: Any) -> np.ndarray:
    array = np.atleast_1d(values)
    if array.ndim != 1:
        raise ValueError(f"Grid: {name} needs one number per measure, got an array of shape {array.shape}")
    return array


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in _per_measure(name, values))
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"Grid: {name} must be finite, got {numbers}")
    return numbers


def _counts(shape: Any) -> tuple[int, ...]:
    values = _per_measure("shape", shape)
    if not all(float(value).is_integer() and value >= 1 for value in values):
        raise ValueError(f"Grid: shape must hold whole numbers of cells, at least 1 each, got {tuple(values.tolist())}")
    counts = tuple(int(value) for value in values)
    if math.prod(counts) >= 2**31:
        raise ValueError(f"Grid: {math.prod(counts):,} cells are more than the 2**31 - 1 that an index can name")
    return counts
