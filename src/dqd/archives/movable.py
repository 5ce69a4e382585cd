"""What cells that move are: a fixed number of them, and a rule that says where they are by now."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation
from dqd.types import PyTree


@runtime_checkable
class Movable(Protocol):
    """Interface: cells whose number is fixed and whose places are arrays, a pytree of its own choice. A frozen pytree.

    Of a batch it is told the measures (b, k), and which of them are valid (b,): the others hold anything.
    """

    @property
    def num_cells(self) -> int: ...

    @property
    def num_measures(self) -> int: ...

    def begin(self, dtype: jnp.dtype) -> PyTree:
        """Where the cells are before anything is known, in numbers of that type."""
        ...

    def at(self, places: PyTree) -> Tessellation:
        """The cells at these places."""
        ...

    def due(self, places: PyTree, measures: Array, valid: Array) -> Array:
        """Whether cells have to move before this batch is judged, (); never when they have just moved."""
        ...

    def moved(self, places: PyTree, measures: Array, valid: Array) -> PyTree:
        """Where they are then."""
        ...

    def after(self, places: PyTree, measures: Array, valid: Array) -> PyTree:
        """What is remembered of the batch, cells staying where they are."""
        ...


def checked_range(owner: str, shape: Any, lower: Any, upper: Any) -> dict[str, Any]:
    """The three as tuples; ValueError unless they describe a grid. A range that is not known is None."""
    if (lower is None) != (upper is None):
        raise ValueError(f"{owner}: a range to begin with has two ends; give lower and upper, or neither")
    size = int(np.size(shape))
    try:
        grid = Grid((0.0,) * size, (1.0,) * size, shape) if lower is None else Grid(lower, upper, shape)
    except ValueError as error:
        raise ValueError(str(error).replace("Grid:", f"{owner}:", 1)) from None
    return {"shape": grid.shape} | ({} if lower is None else {"lower": grid.lower, "upper": grid.upper})
