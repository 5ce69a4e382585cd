"""The archive: the best solution found in every cell, and the one rule by which solutions enter it.

A batch is judged in its order, as if its candidates came one by one. The acceptance threshold of a cell is
that of CMA-MAE (Fontaine & Nikolaidis 2023): it starts at `minimum` and moves by `learning_rate` towards every
objective that beats it. `learning_rate=1, minimum=-inf` is MAP-Elites. The threshold decides what counts as progress;
what is *stored* is always the best objective of the cell, so no elite ever worsens.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.exact_sum import ExactSum
from dqd.archives.memory import check_room
from dqd.archives.metrics import Metrics, Standing
from dqd.archives.rivals import Rivals, rivals
from dqd.archives.threshold import Threshold
from dqd.compiler.unfused import apart, once
from dqd.inputs.fields import Shapes
from dqd.saved.archive import SavedArchive, checked_measures
from dqd.saved.archived import Archived
from dqd.saved.elites import Elites
from dqd.tessellations import kinds
from dqd.tessellations.buckets import Buckets
from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.tessellations.products import Products
from dqd.tessellations.tessellation import Tessellation
from dqd.types import AddResult, Evaluation, pytree, register, replace

if TYPE_CHECKING:
    import pandas

REJECTED, IMPROVED, NEW = 0, 1, 2
for _description in (Grid, CVT, Buckets, Products):
    register(_description)


@pytree
class Verdict:
    """What a batch will change."""

    result: AddResult
    row: Array  # (b,) cell that the candidate is written to; the number of cells, which is dropped, if it does not win
    after: Array  # (b,) acceptance threshold it leaves behind
    gains: Array  # (2b,) what the sum of f - offset over the elites grows by
    best: Array  # ()


@pytree
class Archive(Archived):
    """Per-cell arrays over a tessellation. Frozen: `add` returns a new archive."""

    tessellation: Tessellation
    solutions: Array  # (cells, n)
    objective: Array  # (cells,) -inf where empty
    measures: Array  # (cells, k)
    found: Array  # (cells,) iteration at which the elite was found
    threshold: (
        Array | None
    )  # (cells,) acceptance threshold; None with learning rate 1, where the elite is the threshold
    occupied: Array  # (cells,) occupied cells in the order of their first occupation
    count: Array  # () how many cells are occupied
    total: ExactSum  # of f - offset over the elites
    best: Array  # () best objective ever evaluated
    learning_rate: float
    minimum: float
    qd_score_offset: float
    fields: dict[str, Array] | None = None  # (cells, ...) numbers of the user's own by name, NaN where not known

    @staticmethod
    def empty(
        tessellation: Tessellation,
        solution_size: int,
        *,
        threshold: Threshold = Threshold(),  # noqa: B008 - frozen
        qd_score_offset: float = 0.0,
        dtype: jnp.dtype | None = None,
        fields: Shapes | None = None,
    ) -> Archive:
        """An archive without elites."""
        if not math.isfinite(qd_score_offset):
            raise ValueError(f"qd_score_offset: expected a finite number, got {qd_score_offset}")
        learning_rate, minimum = threshold.learning_rate, threshold.minimum
        dtype = jnp.zeros(0).dtype if dtype is None else dtype
        if any(leaf is tessellation for leaf in jax.tree.leaves(tessellation)):
            raise TypeError(
                f"tessellation: the class {type(tessellation).__name__} needs the decorator @dqd.types.pytree"
            )
        tessellation.check_precision(dtype)
        cells, measures = tessellation.num_cells, tessellation.num_measures
        check_room(cells, solution_size, dtype)

        return Archive(
            tessellation=tessellation,
            solutions=jnp.zeros((cells, solution_size), dtype),
            objective=jnp.full(cells, -jnp.inf, dtype),
            measures=jnp.zeros((cells, measures), dtype),
            found=jnp.full(cells, -1, jnp.int32),
            threshold=None if learning_rate == 1.0 else jnp.full(cells, minimum, dtype),
            occupied=jnp.zeros(cells, jnp.int32),
            count=jnp.zeros((), jnp.int32),
            total=ExactSum.zero(dtype),
            best=jnp.array(-jnp.inf, dtype),
            learning_rate=float(learning_rate),
            minimum=float(minimum),
            qd_score_offset=float(qd_score_offset),
            fields={name: jnp.full((cells, *shape), jnp.nan, dtype) for name, shape in fields.items()}
            if fields
            else None,
        )

    @staticmethod
    def from_numpy(saved: SavedArchive) -> Archive:
        """An archive (MAP-Elites) that holds the elites of a saved one, in JAX's precision."""
        if saved.solutions is None:
            raise ValueError("from_numpy: the solutions were not saved")
        cell = saved.cell
        dtype = jax.dtypes.canonicalize_dtype(saved.solutions.dtype)
        archive = Archive.empty(
            saved.tessellation,
            saved.solutions.shape[1],
            qd_score_offset=saved.qd_score_offset,
            dtype=dtype,
            fields={name: values.shape[1:] for name, values in saved.fields.items()},
        )
        objective = saved.objective.astype(dtype)
        return replace(
            archive,
            solutions=_set(archive.solutions, cell, saved.solutions),
            objective=_set(archive.objective, cell, objective),
            measures=_set(archive.measures, cell, saved.measures),
            found=archive.found.at[cell].set(0 if saved.found is None else saved.found),
            occupied=archive.occupied.at[: len(cell)].set(cell),
            count=archive.count + len(cell),
            total=archive.total.add(jnp.asarray(objective)).add(jnp.full(len(cell), -saved.qd_score_offset, dtype)),
            best=jnp.asarray(saved.best, dtype),
            fields=archive._fields_with(cell, saved.fields),
        )

    @property
    def num_cells(self) -> int:
        return self.tessellation.num_cells

    @property
    def field_shapes(self) -> dict[str, tuple[int, ...]]:
        """What is kept of every elite besides: names and shapes."""
        return {name: values.shape[1:] for name, values in (self.fields or {}).items()}

    @property
    def standing(self) -> Standing:
        return Standing.of(self.total, self.count, self.best)

    @property
    def metrics(self) -> Metrics:
        return self.metrics_of(self.standing)

    @property
    def qd_score(self) -> float:
        """Sum of (objective - offset) over the occupied cells, divided by the number of all cells."""
        return float(self.metrics.qd_score)

    @property
    def coverage(self) -> float:
        """Occupied cells in percent."""
        return float(self.metrics.coverage)

    @property
    def mean(self) -> float:
        """Mean objective of the elites; NaN if there is none."""
        return float(self.metrics.mean)

    def metrics_of(self, standing: Standing) -> Metrics:
        """The metrics at some time, or at many, of this archive."""
        return standing.metrics(self.num_cells, self.qd_score_offset)

    def add(
        self, solutions: Array, evaluation: Evaluation, iteration: Array | int = 0, mask: Array | None = None
    ) -> tuple[Archive, AddResult]:
        """Judge a batch (b, n) in its order; store the best of each cell.

        A candidate that is masked out, infeasible, or of which any number is not finite, is rejected with value -inf.
        The cost does not depend on the number of cells: b rows are read and at most b are written.
        """
        allowed = jnp.all(jnp.isfinite(solutions), axis=-1)
        for admission in (mask, evaluation.feasible):
            allowed = allowed if admission is None else allowed & admission
        batch = (evaluation.objective, evaluation.measures, allowed)
        verdict = apart(self.count >= 0, lambda archive, batch: archive._judge(*batch), self, batch)
        result, row = verdict.result, verdict.row
        new = result.status == NEW
        position = jnp.where(new, self.count + jnp.cumsum(new, dtype=jnp.int32) - 1, self.num_cells)
        archive = replace(
            self,
            solutions=_set(self.solutions, row, solutions),
            objective=_set(self.objective, row, evaluation.objective),
            measures=_set(self.measures, row, evaluation.measures),
            found=_set(self.found, row, jnp.full(row.shape, iteration, jnp.int32)),
            threshold=None
            if self.threshold is None
            else self.threshold.at[result.cell].max(verdict.after, mode="drop"),
            occupied=_set(self.occupied, position, result.cell),
            count=self.count + jnp.sum(new, dtype=jnp.int32),
            total=self.total.add(verdict.gains),
            best=jnp.maximum(self.best, verdict.best),
            fields=self._fields_with(row, evaluation.fields or {}),
        )
        return archive, result

    def _fields_with(self, row: Array | np.ndarray, told: Mapping[str, Any]) -> dict[str, Array] | None:
        """The fields with rows replaced: by what was told, NaN where it was not."""
        if self.fields is None:
            return None
        unknown = {name: jnp.full((len(row), *values.shape[1:]), jnp.nan) for name, values in self.fields.items()}
        return {name: _set(values, row, {**unknown, **told}[name]) for name, values in self.fields.items()}

    def _judge(self, objective: Array, measures: Array, mask: Array) -> Verdict:
        """Everything about a batch that depends on what the archive holds before it."""
        valid = mask & jnp.isfinite(objective) & jnp.all(jnp.isfinite(measures), axis=-1)
        cell = jnp.where(valid, self.tessellation.index_of(measures), self.num_cells)
        objective = jnp.where(valid, objective, -jnp.inf)
        stored = once(self.objective.at[cell].get(mode="fill", fill_value=-jnp.inf))  # (b,)
        among = rivals(cell)
        met, after = self._thresholds(cell, objective, stored, among)

        accepted = valid & (objective > met)
        empty = jnp.isneginf(stored)
        new = among.first(accepted) & empty
        status = jnp.where(new, NEW, jnp.where(accepted, IMPROVED, REJECTED))
        value = jnp.where(jnp.isneginf(met), objective, objective - met)

        replaced = jnp.where(empty, self.qd_score_offset, stored)
        winner = among.best(accepted & (objective > stored), objective)
        return Verdict(
            result=AddResult(status, value, cell, valid & self.tessellation.outside(measures)),
            row=jnp.where(winner, cell, self.num_cells),
            after=after,
            gains=jnp.concatenate([jnp.where(winner, objective, 0), jnp.where(winner, -replaced, 0)]),
            best=jnp.max(objective, initial=-jnp.inf),
        )

    def _thresholds(self, cell: Array, objective: Array, stored: Array, among: Rivals) -> tuple[Array, Array]:
        """Threshold that each candidate meets when its turn comes, and the one it leaves behind."""
        if self.threshold is None:  # the running maximum
            met = jnp.maximum(jnp.maximum(stored, self.minimum), among.highest_before(objective))
            return met, jnp.maximum(met, objective)

        def rise(threshold: Array) -> Array:  # t <- t + rate * max(f - t, 0)
            return threshold + self.learning_rate * jnp.maximum(objective - threshold, 0)

        before = once(self.threshold.at[cell].get(mode="fill", fill_value=0))  # 0 for invalid ones, never used
        met = among.walk(before, rise)
        return met, rise(met)

    def pick(self, uniform: Array, fallback: Array) -> Array:
        """Elites chosen by uniform numbers in [0, 1), one each: (m,) -> (m, n); `fallback` while nothing is stored."""
        chosen = jnp.minimum((uniform * self.count).astype(jnp.int32), self.count - 1)
        return jnp.where(self.count > 0, once(self.solutions[self.occupied[chosen]]), fallback)

    def sample(self, key: Array, size: int) -> Array:
        """Solutions of `size` elites drawn uniformly, with replacement: (size, n)."""
        if not isinstance(self.count, jax.core.Tracer) and int(self.count) == 0:
            raise ValueError("sample: the archive is empty; add solutions first")
        return self.pick(jax.random.uniform(key, (size,)), self.solutions[0])

    @property
    def elites(self) -> Elites:
        """The occupied cells as NumPy arrays, in the order of their index."""
        cells = np.flatnonzero(np.asarray(self.objective) > -np.inf)
        return self._elites(cells, np.ones(len(cells), bool))

    def retrieve(self, measures: Any) -> Elites:
        """The elite of the cell of each row of measures, (b, k) or (k,); `occupied` says where there is one."""
        cells = self.tessellation.index_of(checked_measures(measures, self.measures))
        return self._elites(cells, np.asarray(self.objective)[cells] > -np.inf)

    def best_solution(self) -> np.ndarray:
        """The solution of the elite with the best objective."""
        if not len(self):
            raise KeyError("the archive is empty")
        return np.asarray(self.solutions[int(jnp.argmax(self.objective))])

    def to_numpy(self, solutions: bool = True) -> SavedArchive:
        """The elites and the grid as NumPy arrays, as `dqd.load` reads them from disk."""
        cells = np.flatnonzero(np.asarray(self.objective) > -np.inf)

        def rows(field: Array) -> np.ndarray:
            return np.asarray(field)[cells]

        return SavedArchive(
            cells.astype(np.int32),
            rows(self.objective),
            rows(self.measures),
            rows(self.solutions) if solutions else None,
            rows(self.found),
            kinds.from_arrays(self.tessellation.arrays()),
            float(self.qd_score_offset),
            fields={name: rows(values) for name, values in (self.fields or {}).items()},
        )

    def arrays(self, solutions: bool = True) -> dict[str, np.ndarray]:
        """The elites and the grid as the arrays of a record."""
        arrays = self.to_numpy(solutions).arrays()
        del arrays["qd_score_offset"]  # stands in the settings
        return arrays

    def to_pandas(self) -> pandas.DataFrame:
        """One row per elite: cell, objective, measure_0..., solution_0..., found."""
        return self.to_numpy().to_pandas()

    def save(self, path: str | os.PathLike[str], *, solutions: bool = True) -> Path:
        """Write a file that `dqd.load` reads: .parquet, .csv, .npz or .safetensors."""
        return self.to_numpy(solutions).save(path, solutions=solutions)

    def _elites(self, cells: np.ndarray, occupied: np.ndarray) -> Elites:
        def rows(values: Array) -> np.ndarray:
            return np.asarray(values)[cells]

        solutions, objective, measures, found = map(rows, (self.solutions, self.objective, self.measures, self.found))
        fields = {name: rows(values) for name, values in (self.fields or {}).items()}
        return Elites(cells, occupied, solutions, objective, measures, found, fields)

    def __len__(self) -> int:
        return int(self.count)

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>" if self._is_many else super()._repr_html_()

    @property
    def _is_many(self) -> bool:
        """In a program, or those of several seeds in one."""
        return isinstance(self.count, jax.core.Tracer) or np.ndim(self.count) > 0

    def __repr__(self) -> str:
        cells = f"cells={self.num_cells:,}"
        if self._is_many:
            return f"Archive({cells})"
        figures = f"qd_score={self.qd_score:.4g}, coverage={self.coverage:.2f} %, best={float(self.best):.4g}"
        return f"Archive({figures}, elites={len(self):,}, {cells})"


def _set(field: Array, row: Array | np.ndarray, values: Array | np.ndarray) -> Array:
    # Rows are unique apart from the sentinel, which is out of range and dropped.
    return field.at[row].set(values.astype(field.dtype), mode="drop")
