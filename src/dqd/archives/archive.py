"""The archive: rows of elites, and the one way into them.

Who is kept, and in which row, is said by its competition: `cells`, `dominated` (DNS) or `novelty`. The archive writes
what was said, counts, and keeps the sums from which its metrics follow.
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

from dqd.archives.cells import Cells
from dqd.archives.competition import (
    IMPROVED,
    NEW,
    REJECTED,
    CellsLike,
    Competition,
    Verdict,
    beside,
    called,
    can_enter,
    check_cells,
)
from dqd.archives.exact_sum import ExactSum
from dqd.archives.field_rows import set_rows, shapes_of, unknown, written
from dqd.archives.memory import check_room, filled
from dqd.archives.metrics import Metrics, Standing
from dqd.archives.movable import Movable
from dqd.archives.moving import MovingCells
from dqd.archives.rivals import number_before
from dqd.archives.threshold import Threshold
from dqd.compiler.unfused import apart, once
from dqd.inputs.bounds import Box
from dqd.inputs.fields import Shapes
from dqd.saved.archive import SavedArchive, checked_measures
from dqd.saved.archived import Archived
from dqd.saved.elites import Elites
from dqd.tessellations import kinds
from dqd.tessellations.scattered import Scattered
from dqd.tessellations.tessellation import Tessellation
from dqd.types import AddResult, Evaluation, all_finite, pytree, replace

if TYPE_CHECKING:
    import pandas

__all__ = ["IMPROVED", "NEW", "REJECTED", "Archive"]


@pytree
class Archive(Archived):
    """Rows of elites: one for each cell, or as many as there is room for. Frozen: `add` returns a new archive.

    A candidate (x, f, m) of cell c replaces the elite of c if f is above its objective, or c is empty; equally good
    ones stay out. A batch is judged as if its rows came one by one. With a `dqd.Threshold`, f must be above the
    threshold of the cell, which rises.

    Of a search it is `result.archive`. By itself, `Archive.empty(cells, n)` takes a `dqd.Grid`, a `dqd.CVT` or a
    competition such as `dqd.DNS`, and keeps (n + k + 4) numbers for each cell. `add` costs O(batch n), whatever the
    number of cells; called often, it belongs into `jax.jit`.

    >>> archive = dqd.Archive.empty(dqd.Grid(lower=[0], upper=[1], shape=[4]), 2)
    >>> solutions = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> told = dqd.Evaluation(objective=jnp.array([1.0, 5.0, 2.0]), measures=jnp.array([[0.1], [0.2], [0.9]]))
    >>> archive, became = archive.add(solutions, told)
    >>> became.status.tolist()  # 2 new, 1 improved, 0 rejected
    [2, 1, 2]
    >>> len(archive), archive.qd_score, archive.retrieve([0.15]).solutions.tolist()
    (2, 1.75, [[3.0, 4.0]])
    """

    competition: Competition  # who is kept
    solutions: Array  # (cells, n)
    objective: Array  # (cells,) -inf where empty
    measures: Array  # (cells, k)
    found: Array  # (cells,) iteration at which the elite was found
    occupied: Array  # (cells,) occupied rows in the order of their first occupation
    count: Array  # () how many rows are occupied
    total: ExactSum  # of f - offset over the elites
    best: Array  # () best objective ever evaluated
    qd_score_offset: float
    fields: dict[str, Array] | None = None  # (cells, ...) numbers of the user's own by name, NaN where not known
    results: Archive | None = None  # stores all that this one is shown, too; nobody searches in it
    seen: Box | None = None  # an emitter's view: the coordinates in which elites are handed out

    @staticmethod
    def empty(
        tessellation: CellsLike,
        solution_size: int,
        *,
        threshold: Threshold = Threshold(),  # noqa: B008 - frozen
        qd_score_offset: float = 0.0,
        dtype: jnp.dtype | None = None,
        fields: Shapes | None = None,
        results: CellsLike | None = None,
        kept: jnp.dtype | None = None,
    ) -> Archive:
        """An archive without elites: in the cells of a tessellation, or in a competition that has none.

        `results` are the cells of one beside it, in which everything is stored too, by the rule of MAP-Elites. `kept`
        is the type of solutions within the archive, if it is another than `dtype`.
        """
        if not math.isfinite(qd_score_offset):
            raise ValueError(f"qd_score_offset: expected a finite number, got {qd_score_offset}")
        check_cells(tessellation)
        dtype = jnp.result_type(float) if dtype is None else dtype
        within = dtype if kept is None else kept
        described = _competition(tessellation)
        cells, measures = described.num_cells, described.num_measures
        check_room(cells, solution_size, within)
        competition = described.begun(threshold, dtype)
        shared: Any = {"qd_score_offset": qd_score_offset, "dtype": dtype, "fields": fields, "kept": kept}

        return Archive(
            competition=competition,
            solutions=filled((cells, solution_size), 0, within),
            objective=filled((cells,), -jnp.inf, dtype),
            measures=filled((cells, measures), 0, dtype),
            found=filled((cells,), -1, jnp.int32),
            occupied=filled((cells,), 0, jnp.int32),
            count=filled((), 0, jnp.int32),
            total=ExactSum.zero(dtype),
            best=filled((), -jnp.inf, dtype),
            qd_score_offset=float(qd_score_offset),
            fields=unknown(cells, fields, dtype),
            results=None if results is None else Archive.empty(beside(results, measures), solution_size, **shared),
        )

    @staticmethod
    def from_numpy(saved: SavedArchive) -> Archive:
        """An archive (MAP-Elites) that holds the elites of a saved one, in JAX's precision."""
        if saved.solutions is None:
            raise ValueError("from_numpy: the solutions were not saved")
        if isinstance(saved.tessellation, Scattered):
            raise ValueError("from_numpy: these elites lie in no cells; first saved.retessellate(dqd.Grid(...))")
        cell = saved.cell
        dtype = jax.dtypes.canonicalize_dtype(saved.solutions.dtype)
        archive = Archive.empty(
            saved.tessellation,
            saved.solutions.shape[1],
            qd_score_offset=saved.qd_score_offset,
            dtype=dtype,
            fields=shapes_of(saved.fields),
        )
        objective = saved.objective.astype(dtype)
        return replace(
            archive,
            solutions=set_rows(archive.solutions, cell, saved.solutions),
            objective=set_rows(archive.objective, cell, objective),
            measures=set_rows(archive.measures, cell, saved.measures),
            found=archive.found.at[cell].set(0 if saved.found is None else saved.found),
            occupied=archive.occupied.at[: len(cell)].set(cell),
            count=archive.count + len(cell),
            total=archive.total.add(jnp.asarray(objective)).add(jnp.full(len(cell), -saved.qd_score_offset, dtype)),
            best=jnp.asarray(saved.best, dtype),
            fields=written(archive.fields, cell, saved.fields),
        )

    def emptied(self, fields: Shapes | None = None) -> Archive:
        """The same without elites and thresholds, with other fields, in arrays of its own."""
        described = self.competition.tessellation if isinstance(self.competition, Cells) else self.competition
        size, kept = self.solutions.shape[1], self.solutions.dtype
        shared: Any = {"qd_score_offset": self.qd_score_offset, "dtype": self.dtype, "fields": fields, "kept": kept}
        return Archive.empty(jax.tree.map(jnp.array, described), size, **shared)

    @property
    def dtype(self) -> Any:
        """The type of all real numbers that come out; solutions may be kept in a shorter one."""
        return self.objective.dtype

    @property
    def reported(self) -> Archive:
        """The archive whose elites and metrics are a search's result: the one beside this one, if there is one."""
        return self if self.results is None else self.results

    @property
    def num_cells(self) -> int:
        """Rows: cells, or elites at most."""
        return self.competition.num_cells

    @property
    def num_measures(self) -> int:
        return self.competition.num_measures

    @property
    def tessellation(self) -> Tessellation:
        """The cells; TypeError where elites compete without any."""
        if not isinstance(self.competition, Cells):
            raise TypeError(
                f"archive: {called(self.competition)} has no cells that stay where they are; targeting, auto, SQUAD, "
                "DMS and the rankings 'rd' and '2rd' need some: take a dqd.Grid or a dqd.CVT, or another of these"
            )
        return self.competition.tessellation

    @property
    def threshold(self) -> Array | None:
        """The acceptance threshold of every cell; None where the elite is the threshold, or without cells."""
        return self.competition.threshold if isinstance(self.competition, Cells | MovingCells) else None

    @property
    def field_shapes(self) -> dict[str, tuple[int, ...]]:
        """What is kept of every elite besides: names and shapes."""
        return shapes_of(self.fields)

    @property
    def standing(self) -> Standing:
        return Standing.of(self.total, self.count, self.best)

    @property
    def metrics(self) -> Metrics:
        """The figures as NumPy's, for one archive or for those of several seeds; not within a compiled function."""
        standing = Standing.of(*jax.device_get((self.total, self.count, self.best)))
        return standing.metrics(self.num_cells, self.offset)

    @property
    def offset(self) -> float:
        """An objective that is worth nothing, the same for all seeds."""
        return float(np.ravel(self.qd_score_offset)[0])

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

    def add(
        self, solutions: Array, evaluation: Evaluation, iteration: Array | int = 0, mask: Array | None = None
    ) -> tuple[Archive, AddResult]:
        """Judge a batch (b, n) in its order; store those that the competition keeps.

        A candidate that is masked out, infeasible, or of which any number is not finite, is rejected with value -inf.
        At most b rows are written. Where there are cells, only b are read: the cost does not depend on their number.
        """
        allowed = all_finite(solutions)
        for admission in (mask, evaluation.feasible):
            allowed = allowed if admission is None else allowed & admission
        return self.competition.prepared(self, evaluation, allowed)._enter(solutions, evaluation, iteration, allowed)

    def _enter(
        self, solutions: Array, evaluation: Evaluation, iteration: Array | int, allowed: Array
    ) -> tuple[Archive, AddResult]:
        batch = (evaluation.objective, evaluation.measures, allowed)
        verdict = apart(self.count >= 0, lambda archive, batch: archive._judge(*batch), self, batch)
        result, row, fresh = verdict.result, verdict.row, verdict.fresh
        before = number_before(fresh)
        position = jnp.where(fresh, self.count + before, self.num_cells)
        archive = replace(
            self,
            competition=self.competition.after(verdict),
            solutions=set_rows(self.solutions, row, solutions),
            objective=set_rows(self.objective, row, evaluation.objective),
            measures=set_rows(self.measures, row, evaluation.measures),
            found=set_rows(self.found, row, jnp.full(row.shape, iteration, jnp.int32)),
            occupied=set_rows(self.occupied, position, result.cell),
            count=self.count + jnp.sum((before + fresh)[-1:], dtype=jnp.int32),
            total=self.total.add(verdict.gains),
            best=jnp.maximum(self.best, verdict.best),
            fields=written(self.fields, row, evaluation.fields or {}),
            results=None if self.results is None else self.results.add(solutions, evaluation, iteration, allowed)[0],
        )
        return archive, result

    def with_fields(self, fields: Mapping[str, np.ndarray]) -> Archive:
        """The same elites with more numbers kept of them: by name, (elites, ...) in the order of their cells."""
        cells = np.flatnonzero(np.asarray(self.objective) > -np.inf)
        empty = unknown(self.num_cells, shapes_of(fields), self.objective.dtype)
        return replace(self, fields={**(self.fields or {}), **(written(empty, cells, fields) or {})})

    def _judge(self, objective: Array, measures: Array, mask: Array) -> Verdict:
        return self.competition.judge(self, objective, measures, can_enter(objective, measures, mask))

    def pick(self, uniform: Array, fallback: Array) -> Array:
        """Elites chosen by uniform numbers in [0, 1), one each: (m,) -> (m, n); `fallback` while nothing is stored."""
        chosen = jnp.minimum((uniform * self.count).astype(jnp.int32), self.count - 1)
        return jnp.where(self.count > 0, self.elite(self.occupied[chosen]), fallback)

    def elite(self, row: Array) -> Array:
        """The solutions of some rows, (...,) -> (..., n), in the coordinates of whoever is shown the archive."""
        solutions = once(self.solutions[row]).astype(self.dtype)
        return solutions if self.seen is None else self.seen.outward(solutions)

    def sample(self, key: Array, size: int) -> Array:
        """Solutions of `size` elites drawn uniformly, with replacement: (size, n)."""
        if not isinstance(self.count, jax.core.Tracer) and int(self.count) == 0:
            raise ValueError("sample: the archive is empty; add solutions first")
        return self.pick(jax.random.uniform(key, (size,)), self.solutions[0].astype(self.dtype))

    @property
    def elites(self) -> Elites:
        """The elites as NumPy arrays, in the order of their cells."""
        cells = np.flatnonzero(np.asarray(self.objective) > -np.inf)
        return self._elites(cells, np.ones(len(cells), bool))

    def retrieve(self, measures: Any) -> Elites:
        """The elite of the cell of each row of measures, (b, k) or (k,); `occupied` says where there is one.

        Without cells it is the nearest elite.
        """
        cells = self.competition.placing(self).index_of(checked_measures(measures, self.measures))
        return self._elites(cells, np.asarray(self.objective)[cells] > -np.inf)

    def best_solution(self) -> np.ndarray:
        """The solution of the elite with the best objective."""
        if not len(self):
            raise KeyError("the archive is empty")
        return np.asarray(self.solutions[int(jnp.argmax(self.objective))]).astype(self.dtype)

    def to_numpy(self, solutions: bool = True) -> SavedArchive:
        """The elites and the grid as NumPy arrays, as `dqd.load` reads them from disk."""
        cells = np.flatnonzero(np.asarray(self.objective) > -np.inf)

        def rows(field: Array) -> np.ndarray:
            return np.asarray(field)[cells]

        placed = {"cell": cells.astype(np.int32), "measures": rows(self.measures)}
        return SavedArchive(
            placed["cell"],
            rows(self.objective),
            placed["measures"],
            rows(self.solutions).astype(self.dtype) if solutions else None,
            rows(self.found),
            kinds.from_arrays(self.competition.placing(self).arrays() | placed),
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
        return Elites(cells, occupied, solutions.astype(self.dtype), objective, measures, found, fields)

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


def _competition(cells: CellsLike) -> Competition:
    if isinstance(cells, Movable):
        return MovingCells(cells)
    return cells if isinstance(cells, Competition) else Cells(cells)
