"""What a finished search gives back."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import jax
import numpy as np

from dqd.archives.archive import Archive, Elites
from dqd.archives.metrics import Metrics
from dqd.describe import describe
from dqd.emitters.emitter import RESTART_REASONS
from dqd.history import METRICS
from dqd.search import Search, SearchState
from dqd.solutions import Layout

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")

ROWS = 1000  # about as many lines of metrics and of timings are kept
SETTINGS = (  # what decides a result
    *("domain", "emitter", "grid", "x0", "bounds", "initial_sigma", "dtype", "seed", "seeds"),
    *("archive_learning_rate", "archive_minimum", "qd_score_offset"),
)


def settings(search: Search, archive: Archive, x0: Any, domain: Any) -> dict[str, Any]:
    """Everything that decides a result but the seed, as JSON; and where it was computed."""
    return describe(
        {
            "domain": domain,
            "emitter": search.emitter,
            "grid": archive.tessellation,
            "x0": x0,
            "bounds": search.bounds,
            "initial_sigma": search.initial_sigma,
            "archive_learning_rate": archive.learning_rate,
            "archive_minimum": archive.minimum,
            "qd_score_offset": archive.qd_score_offset,
            "dtype": str(archive.solutions.dtype),
            "jax": jax.__version__,
            "device": jax.devices()[0].platform,
        }
    )


def thinned(rows: Sequence[Row], count: int = ROWS) -> list[Row]:
    """About `count` of the rows, evenly spaced, the last one always. It depends on their number alone."""
    every = max(1, len(rows) // count)
    return [*rows[every - 1 :: every], *(rows[-1:] if len(rows) % every else ())]


_metrics = jax.jit(lambda archive: archive.metrics)  # one small program instead of a dozen


class Result:
    """One finished search: the archive and how it was found."""

    def __init__(
        self,
        search: Search,
        state: SearchState,
        history: dict[str, np.ndarray],
        seed: int,
        layout: Layout,
        stopped: str | None,
        seconds: float,
        compile_seconds: float,
        domain: Any = None,
    ) -> None:
        self.search, self.state, self.seed, self.layout = search, state, seed, layout
        self.history = history  # `iteration` and the metrics after it, one row each
        self.stopped = stopped  # None, "interrupted" or "until"
        self.seconds, self.compile_seconds = seconds, compile_seconds
        self.domain = domain

    @property
    def archive(self) -> Archive:
        return self.state.archive

    @cached_property
    def elites(self) -> Elites:
        """The occupied cells as NumPy arrays."""
        return self.archive.elites

    @property
    def qd_score(self) -> float:
        """Sum of (objective - offset) over the occupied cells, divided by the number of all cells."""
        return float(self._metrics.qd_score)

    @property
    def coverage(self) -> float:
        """Occupied cells in percent."""
        return float(self._metrics.coverage)

    @property
    def best(self) -> float:
        """Best objective ever evaluated."""
        return float(self.archive.best)

    @property
    def mean(self) -> float:
        """Mean objective of the elites."""
        return float(self._metrics.mean)

    @cached_property
    def _metrics(self) -> Metrics:
        return _metrics(self.archive)

    @property
    def iterations(self) -> int:
        return int(self.state.iteration)

    @property
    def evaluations(self) -> int:
        """Solutions evaluated, the initial population included."""
        return self.state.tally.evaluations

    @property
    def gradients(self) -> int:
        """Points at which a jacobian was computed."""
        return self.state.tally.gradients

    @property
    def nonfinite(self) -> int:
        """Evaluations and jacobians that were NaN or infinite, and cost themselves only."""
        return self.state.tally.nonfinite

    @property
    def restarts(self) -> int:
        return sum(self.restart_reasons.values())

    @property
    def restart_reasons(self) -> dict[str, int]:
        counts = np.asarray(self.search.restarts(self.state)).tolist()
        return dict(zip(RESTART_REASONS, counts, strict=True))

    @property
    def clamped_share(self) -> float:
        """Share of the finite evaluations whose measures lay outside the grid."""
        return self.state.tally.outside / max(self.state.tally.finite, 1)

    def solution(self, measures: Any) -> Any:
        """The elite in the cell of these measures, shaped like x0."""
        found = self.archive.retrieve(measures)
        if len(found) != 1:
            raise ValueError(
                f"measures: expected those of one cell, got {len(found)} rows; archive.retrieve takes many"
            )
        if not found.occupied[0]:
            raise KeyError(f"no elite in the cell of measures {np.asarray(measures).tolist()}")
        return self.layout.unflatten(found.solutions[0])

    def best_solution(self) -> Any:
        """The elite with the best objective, shaped like x0."""
        if not len(self.elites):
            raise KeyError("the archive is empty")
        return self.layout.unflatten(self.elites.solutions[np.argmax(self.elites.objective)])

    def summary(self) -> dict[str, Any]:
        """The figures of the run as plain numbers, ready for JSON; of an empty archive, best and mean are None."""
        counts = ("iterations", "evaluations", "gradients", "nonfinite", "restarts")
        names = (*counts, *METRICS, "seconds", "compile_seconds", "stopped", "seed")
        figures = {name: getattr(self, name) for name in names}
        return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in figures.items()}

    def to_pandas(self) -> pandas.DataFrame:
        """One row per elite: cell, objective, measure_0..., solution_0..., found."""
        return self.archive.to_pandas()

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Heat map of the archive; written to `path` if one is given. Returns the matplotlib figure."""
        from dqd.report import draw, panels

        figure = draw.heatmap(panels.heatmap(self._arrays()), **options)
        if path is not None:
            draw.save(figure, path)
        return figure

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        solutions: bool = True,
        rows: int = 1000,
        about: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a finished run to a new folder.

        Without solutions the record is small; `rows` is about how many lines of metrics to keep; `about` is added to
        the config.
        """
        from dqd import record

        config = {**describe(about or {}), **self._config()}
        return record.write_run(folder, self.iterations, config, self.summary(), self.files(solutions, rows))

    def files(self, solutions: bool = True, rows: int = ROWS) -> dict[str, Any]:
        """What a checkpoint shows of this search."""
        from dqd import record

        return {record.METRICS: record.to_lines(self._rows(rows)), record.ARCHIVE: self._arrays(solutions)}

    def view(self) -> dict[str, np.ndarray]:
        """A small picture of the archive."""
        return _view(self.archive.objective)

    def _config(self) -> dict[str, Any]:
        made_of = settings(self.search, self.archive, self.state.x0, self.domain)
        return {**made_of, "seed": self.seed, "iterations": self.iterations}

    def _rows(self, count: int) -> Iterator[dict[str, float]]:
        for i in thinned(range(len(self.history["iteration"])), count):
            yield {"iteration": int(self.history["iteration"][i])} | {
                name: float(self.history[name][i]) for name in METRICS
            }

    def _arrays(self, solutions: bool = True) -> dict[str, np.ndarray]:
        return archive_arrays(self.archive, solutions)

    def __repr__(self) -> str:
        return (
            f"Result(qd_score={self.qd_score:.4g}, coverage={self.coverage:.2f} %, best={self.best:.4g}, "
            f"iterations={self.iterations:,}, evaluations={self.evaluations:,}, seconds={self.seconds:.2f})"
        )


class Results(Sequence[Result]):
    """The results of several seeds that ran side by side. `seconds` is the time of all of them together."""

    def __init__(
        self,
        search: Search,
        state: SearchState,
        history: dict[str, np.ndarray],
        seeds: list[int],
        layout: Layout,
        stopped: str | None,
        seconds: float,
        compile_seconds: float,
        domain: Any = None,
    ) -> None:
        self.state, self.history, self.seeds = state, history, seeds
        self.stopped, self.seconds, self.compile_seconds = stopped, seconds, compile_seconds
        self._common = (layout, stopped, seconds, compile_seconds, domain)
        self._search = search

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...

    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        state = jax.tree.map(lambda leaf: leaf[i], self.state)  # a copy, so it is made when asked for and not kept
        history = {name: values[:, i] if values.ndim == 2 else values for name, values in self.history.items()}
        return Result(self._search, state, history, self.seeds[i], *self._common)

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def qd_score(self) -> np.ndarray:
        """QD-score of every seed."""
        return np.asarray(self._metrics.qd_score)

    @property
    def coverage(self) -> np.ndarray:
        """Coverage of every seed, in percent."""
        return np.asarray(self._metrics.coverage)

    @property
    def best(self) -> np.ndarray:
        """Best objective of every seed."""
        return np.asarray(self._metrics.best)

    @cached_property
    def _metrics(self) -> Metrics:
        return jax.vmap(lambda archive: archive.metrics)(self.state.archive)

    def summary(self) -> dict[str, dict[str, Any]]:
        """The figures of every seed, under `seed-S`."""
        return {f"seed-{each.seed}": each.summary() for each in self}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """All seeds in one new folder; each is read as `folder/seed-S`."""
        from dqd import record

        first = self[0]
        config = {**first._config(), "seeds": self.seeds}
        del config["seed"]
        return record.write_run(folder, first.iterations, config, self.summary(), self.files())

    def files(self) -> dict[str, Any]:
        """What a checkpoint shows of every seed, under `seed-S/`."""
        return {f"seed-{each.seed}/{name}": content for each in self for name, content in each.files().items()}

    def view(self) -> dict[str, np.ndarray]:
        """A small picture of every archive."""
        views = dict(zip(self.seeds, map(_view, np.asarray(self.state.archive.objective)), strict=True))
        return {f"seed-{seed}/{name}": array for seed, view in views.items() for name, array in view.items()}

    def __repr__(self) -> str:
        return f"Results(seeds={self.seeds}, qd_score={self.qd_score.round(3).tolist()})"


def _view(objective: Any) -> dict[str, np.ndarray]:
    objective = np.asarray(objective)
    cells = np.flatnonzero(objective > -np.inf)
    return {"cell": cells.astype(np.int32), "objective": objective[cells].astype(np.float32)}


def archive_arrays(archive: Archive, solutions: bool = True) -> dict[str, np.ndarray]:
    """The elites and the grid as the arrays of a record."""
    grid = archive.tessellation
    cells = np.flatnonzero(np.asarray(archive.objective) > -np.inf)
    names = ("objective", "measures", "found") + (("solutions",) if solutions else ())
    return {
        "cell": cells.astype(np.int32),
        **{name: np.asarray(getattr(archive, name))[cells] for name in names},
        "grid_lower": np.asarray(grid.lower, np.float64),
        "grid_upper": np.asarray(grid.upper, np.float64),
        "grid_shape": np.asarray(grid.shape, np.int64),
    }
