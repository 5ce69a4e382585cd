"""Competition within cells that move: when measures leave them, or as their distribution shifts.

How they move is said by a description such as `UnboundedGrid` or `SlidingBoundaries`. Before a batch is judged, cells
move if that is due, every elite goes to the cell in which it now lies, and of those who meet the best is kept. All the
rest is competition within cells that stand still.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array

from dqd.archives.cells import Cells
from dqd.archives.competition import Verdict, can_enter
from dqd.archives.movable import Movable
from dqd.archives.rebinned import rebinned_if, rebinned_levels
from dqd.archives.threshold import Threshold
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation, PyTree, pytree, replace

if TYPE_CHECKING:
    from dqd.archives.archive import Archive


@pytree
class MovingCells:
    """Those who lie in the same cell compete for it, wherever it is by now."""

    cells: Movable
    places: PyTree = field(default=None, compare=False)
    learning_rate: float = 1.0
    minimum: float = -math.inf
    threshold: Array | None = None  # as in `Cells`
    in_objectives = True
    moving = True

    @property
    def num_cells(self) -> int:
        return self.cells.num_cells

    @property
    def num_measures(self) -> int:
        return self.cells.num_measures

    @property
    def new_first(self) -> bool:
        return self.threshold is None

    @property
    def _still(self) -> Cells:
        return Cells(self.cells.at(self.places), self.learning_rate, self.minimum, self.threshold)

    def begun(self, threshold: Threshold, dtype: jnp.dtype) -> MovingCells:
        places = self.cells.begin(dtype) if self.places is None else self.places
        rate, minimum = float(threshold.learning_rate), float(threshold.minimum)
        levels = None if rate == 1.0 else jnp.full(self.num_cells, minimum, dtype)
        return MovingCells(self.cells, places, rate, minimum, levels)

    def prepared(self, archive: Archive, evaluation: Evaluation, allowed: Array) -> Archive:
        batch = (evaluation.measures, can_enter(evaluation.objective, evaluation.measures, allowed))

        def due(here: tuple[PyTree, Any], batch: tuple[Array, Array]) -> Array:
            return self.cells.due(here[0], *batch)

        def moved(
            archive: Archive, here: tuple[PyTree, Any], batch: tuple[Array, Array]
        ) -> tuple[tuple[PyTree, Any], Array]:
            places = self.cells.moved(here[0], *batch)
            cell = self.cells.at(places).index_of(archive.measures)
            levels = None if here[1] is None else rebinned_levels(here[1], archive, cell, self.minimum)
            return (places, levels), cell

        archive, (places, levels) = rebinned_if(archive, (self.places, self.threshold), batch, due, moved)
        return replace(archive, competition=replace(self, places=places, threshold=levels))

    def judge(self, archive: Archive, objective: Array, measures: Array, valid: Array) -> Verdict:
        verdict = self._still.judge(archive, objective, measures, valid)
        result = replace(verdict.result, outside=jnp.zeros_like(valid))  # cells will follow
        return replace(verdict, result=result, learnt=(verdict.learnt, measures, valid))

    def after(self, verdict: Verdict) -> MovingCells:
        levels, *met = verdict.learnt
        still = self._still.after(replace(verdict, learnt=levels))
        return replace(self, places=self.cells.after(self.places, *met), threshold=still.threshold)

    def placing(self, archive: Archive) -> Tessellation:
        return self.cells.at(self.places)

    def settings(self) -> dict[str, Any]:
        return {"grid": self.cells, "archive_learning_rate": self.learning_rate, "archive_minimum": self.minimum}
