"""Competition within cells: one elite for each, the best, as MAP-Elites has it.

A batch is judged in its order, as if its candidates came one by one. The acceptance threshold of a cell is
that of CMA-MAE (Fontaine & Nikolaidis 2023): it starts at `minimum` and moves by `learning_rate` towards every
objective that beats it. `learning_rate=1, minimum=-inf` is MAP-Elites. The threshold decides what counts as progress;
what is *stored* is always the best objective of the cell, so no elite ever worsens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array

from dqd.archives.competition import IMPROVED, NEW, REJECTED, Verdict, check_pytree, growth
from dqd.archives.rivals import Rivals, rivals
from dqd.archives.threshold import Threshold
from dqd.compiler.unfused import once
from dqd.tessellations.buckets import Buckets
from dqd.tessellations.categorical import CategoricalGrid
from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.tessellations.products import Products
from dqd.tessellations.tessellation import Tessellation
from dqd.tessellations.uneven import UnevenGrid
from dqd.types import AddResult, Evaluation, pytree, register, replace

if TYPE_CHECKING:
    from dqd.archives.archive import Archive

for _description in (Grid, UnevenGrid, CategoricalGrid, CVT, Buckets, Products):
    register(_description)


@pytree
class Cells:
    """Those who lie in the same cell compete for it."""

    tessellation: Tessellation
    learning_rate: float = 1.0
    minimum: float = float("-inf")
    threshold: Array | None = (
        None  # (cells,) acceptance threshold; None with learning rate 1, where the elite is the threshold
    )
    in_objectives = True
    moving = False

    @property
    def num_cells(self) -> int:
        return self.tessellation.num_cells

    @property
    def num_measures(self) -> int:
        return self.tessellation.num_measures

    @property
    def new_first(self) -> bool:
        return self.threshold is None

    @property
    def takes_in_order(self) -> bool:
        """Whether nothing is rounded that a larger batch might round otherwise: thresholds and distances are."""
        return self.threshold is None and isinstance(self.tessellation, Grid | UnevenGrid | CategoricalGrid)

    def begun(self, threshold: Threshold, dtype: jnp.dtype) -> Cells:
        check_pytree(self.tessellation)
        self.tessellation.check_precision(dtype)
        rate, minimum = threshold.learning_rate, threshold.minimum
        levels = None if rate == 1.0 else jnp.full(self.num_cells, minimum, dtype)
        return replace(self, learning_rate=float(rate), minimum=float(minimum), threshold=levels)

    def prepared(self, archive: Archive, evaluation: Evaluation, allowed: Array) -> Archive:
        return archive

    def judge(self, archive: Archive, objective: Array, measures: Array, valid: Array) -> Verdict:
        cell = jnp.where(valid, self.tessellation.index_of(measures), self.num_cells)
        objective = jnp.where(valid, objective, -jnp.inf)
        stored = once(archive.objective.at[cell].get(mode="fill", fill_value=-jnp.inf))  # (b,)
        compete = self._by_maximum if self.threshold is None else self._by_threshold
        met, accepted, first, winner, left = compete(rivals(cell), cell, objective, stored, valid)
        new = first & jnp.isneginf(stored)
        status = jnp.where(new, NEW, jnp.where(accepted, IMPROVED, REJECTED))
        value = jnp.where(jnp.isneginf(met), objective, objective - met)
        return Verdict(
            result=AddResult(status, value, cell, valid & self.tessellation.outside(measures)),
            row=jnp.where(winner, cell, self.num_cells),
            fresh=new,
            gains=growth(winner, objective, stored, archive.qd_score_offset),
            best=jnp.max(objective, initial=-jnp.inf),
            learnt=left,
        )

    def _by_maximum(
        self, among: Rivals, cell: Array, objective: Array, stored: Array, valid: Array
    ) -> tuple[Array, Array, Array, Array, Any]:
        """The threshold is the best so far: those accepted rise, and the highest is the last of them.

        What each candidate meets when its turn comes; who is accepted, is the first of a cell, stays; what is left.
        """
        before = among.highest_before(objective)
        met = jnp.maximum(jnp.maximum(stored, self.minimum), before)
        accepted = valid & (objective > met)
        first = accepted & ~(before > self.minimum)  # counts in empty cells
        return met, accepted, first, accepted & (objective == among.highest(objective)), ()

    def _by_threshold(
        self, among: Rivals, cell: Array, objective: Array, stored: Array, valid: Array
    ) -> tuple[Array, Array, Array, Array, Any]:
        """The same where thresholds rise step by step: t <- t + rate * max(f - t, 0)."""
        assert self.threshold is not None

        def rise(threshold: Array) -> Array:
            return threshold + self.learning_rate * jnp.maximum(objective - threshold, 0)

        before = once(self.threshold.at[cell].get(mode="fill", fill_value=0))  # 0 for invalid ones, never used
        met = among.walk(before, rise)
        accepted = valid & (objective > met)
        winner = among.best(accepted & (objective > stored), objective)
        return met, accepted, among.first(accepted), winner, rise(met)

    def after(self, verdict: Verdict) -> Cells:
        if self.threshold is None:
            return self
        return replace(self, threshold=self.threshold.at[verdict.result.cell].max(verdict.learnt, mode="drop"))

    def placing(self, archive: Archive) -> Tessellation:
        return self.tessellation

    def settings(self) -> dict[str, Any]:
        return {
            "grid": self.tessellation,
            "archive_learning_rate": self.learning_rate,
            "archive_minimum": self.minimum,
        }
