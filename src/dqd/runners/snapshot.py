"""A search at one moment, as files hold it: settings, metrics, elites. What a checkpoint and a saved result share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.beginning import Beginning
from dqd.archives.metrics import Metrics
from dqd.emitters.combine import Staggered
from dqd.inputs.names import METRICS
from dqd.search.search import Search, SearchState
from dqd.storage import record
from dqd.storage.settings import describe, finite

Row = TypeVar("Row")

ROWS = 1000  # about as many lines of metrics and of timings are kept
MOST_LINES = 10 * ROWS  # that may be asked for; up to twice as many are written, and no more are read
SETTINGS = (  # what decides a result
    *("domain", "fields", "emitter", "grid", "x0", "bounds", "initial_sigma", "archive", "dtype", "solutions", "seed"),
    *("seeds", "archive_learning_rate", "archive_minimum", "result_archive", "qd_score_offset", "random_numbers"),
)


def settings(
    search: Search, archive: Archive, x0: Any, domain: Any, beginning: Beginning | None = None
) -> dict[str, Any]:
    """Everything that decides a result but the seed, as JSON; and where it was computed."""
    timing = {"asynchronous": True} if isinstance(search.emitter, Staggered) else {}
    return describe(
        {
            **timing,
            **({"fields": archive.field_shapes} if archive.fields else {}),
            "domain": domain,
            "emitter": search.emitter,
            **archive.competition.settings(),
            **(
                {"result_archive": archive.results.competition.settings()["grid"]}
                if archive.results is not None
                else {}
            ),
            "x0": x0,
            "bounds": search.bounds,
            "initial_sigma": search.initial_sigma,
            "archive": beginning,
            "qd_score_offset": archive.qd_score_offset,
            "dtype": str(archive.dtype),
            **({} if archive.solutions.dtype == archive.dtype else {"solutions": str(archive.solutions.dtype)}),
            "random_numbers": {
                name: getattr(jax.config, name) for name in ("jax_default_prng_impl", "jax_threefry_partitionable")
            },
            "jax": jax.__version__,
            "device": jax.devices()[0].platform,
        }
    )


def thinned(rows: Sequence[Row], count: int = ROWS) -> list[Row]:
    """About `count` of the rows, evenly spaced, the last one always. It depends on their number alone."""
    every = max(1, len(rows) // count)
    return [*rows[every - 1 :: every], *(rows[-1:] if len(rows) % every else ())]


@dataclass(eq=False, repr=False)
class Snapshot:
    """One search: where it stands and how it came there."""

    search: Search
    state: SearchState
    history: dict[str, np.ndarray]  # `iteration`, `evaluations` and the metrics after it, one row each
    seed: int
    stopped: str | None  # None, "interrupted", "terminated" or "until"
    seconds: float
    compile_seconds: float

    @property
    def archive(self) -> Archive:
        return self.state.reported

    @cached_property
    def _metrics(self) -> Metrics:
        return self.archive.metrics

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

    @property
    def asynchronous(self) -> bool:
        """Whether the order of insertions, and so the archive, depended on when evaluations ended."""
        return isinstance(self.search.emitter, Staggered)

    @property
    def iterations(self) -> int:
        return int(self.state.iteration)

    @property
    def evaluations(self) -> int:
        """All evaluations: the initial population, repetitions and those that estimate jacobians included."""
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
    def infeasible(self) -> int:
        """Solutions that their evaluator kept out of the archive."""
        return self.state.tally.infeasible

    @property
    def restarts(self) -> int:
        return sum(self.restart_reasons.values())

    @property
    def restart_reasons(self) -> dict[str, int]:
        """How often the emitters restarted, and why."""
        return self.search.restarts(self.state)

    @property
    def account(self) -> str:
        """What the emitter tells of its choices, such as the shares of `dqd.auto`; most have nothing to tell."""
        return self.search.account(self.state)

    def summary(self) -> dict[str, Any]:
        """The metrics of the run as plain numbers, ready for JSON; of an empty archive, best and mean are None."""
        counts = ("iterations", "evaluations", "gradients", "nonfinite", "infeasible", "restarts")
        names = (*counts, *METRICS, "seconds", "compile_seconds", "stopped", "seed")
        return finite({name: getattr(self, name) for name in names})

    def files(self, solutions: bool = True, rows: int = ROWS) -> dict[str, Any]:
        """What a checkpoint shows of this search."""
        return {record.METRICS: record.to_lines(self.rows(rows)), record.ARCHIVE: self.archive.arrays(solutions)}

    def view(self) -> dict[str, np.ndarray]:
        """A small picture of the archive."""
        return _view(self.archive.objective, self.archive.measures if self.archive.competition.moving else None)

    def rows(self, count: int) -> Iterator[dict[str, float]]:
        """About `count` lines of metrics, evenly spaced."""
        for i in thinned(range(len(self.history["iteration"])), min(count, MOST_LINES)):
            counts = {name: int(self.history[name][i]) for name in ("iteration", "evaluations")}
            yield counts | {name: float(self.history[name][i]) for name in METRICS}


@dataclass(eq=False, repr=False)
class Snapshots:
    """Several seeds side by side. `seconds` is the time of all of them together."""

    search: Search
    state: SearchState  # every leaf with a leading axis for the seeds
    history: dict[str, np.ndarray]
    seeds: list[int]
    stopped: str | None
    seconds: float
    compile_seconds: float

    def one(self, index: int) -> Snapshot:
        """That of one seed: a copy, so it is made when asked for and not kept."""
        state = _of_one(self.state, index)
        history = {name: values[:, index] if values.ndim == 2 else values for name, values in self.history.items()}
        times = (self.stopped, self.seconds, self.compile_seconds)
        return Snapshot(self.search, state, history, self.seeds[index], *times)

    def summary(self) -> dict[str, dict[str, Any]]:
        """The metrics of every seed, under `seed-S`."""
        return {f"seed-{each.seed}": each.summary() for each in self._each()}

    def files(self, solutions: bool = True, rows: int = ROWS) -> dict[str, Any]:
        """What a checkpoint shows of every seed, under `seed-S/`."""
        return {
            f"seed-{each.seed}/{name}": content
            for each in self._each()
            for name, content in each.files(solutions, rows).items()
        }

    def view(self) -> dict[str, np.ndarray]:
        """A small picture of every archive."""
        archive = self.state.reported
        objective = np.asarray(archive.objective)
        measures = np.asarray(archive.measures) if archive.competition.moving else [None] * len(self.seeds)
        named = zip(self.seeds, map(_view, objective, measures), strict=True)
        return {f"seed-{seed}/{name}": array for seed, view in named for name, array in view.items()}

    def _each(self) -> Iterator[Snapshot]:
        return map(self.one, range(len(self.seeds)))


@jax.jit
def _of_one(state: SearchState, index: int) -> SearchState:
    """One program, whichever the seed."""
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, index, keepdims=False), state)


def _view(objective: Any, measures: Any) -> dict[str, np.ndarray]:
    """Elites by their cells; with measures, where these will be others when the picture is looked at."""
    objective = np.asarray(objective)
    cells = np.flatnonzero(objective > -np.inf)
    view = {"cell": cells.astype(np.int32), "objective": objective[cells].astype(np.float32)}
    return view if measures is None else view | {"measures": np.asarray(measures)[cells]}
