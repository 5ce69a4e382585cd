"""What a finished search gives back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.metrics import Metrics
from dqd.domains.problem import Problem
from dqd.domains.rejudge import Say, nobody
from dqd.inputs.layout import Layout
from dqd.runners.snapshot import ROWS, Snapshot, Snapshots, settings
from dqd.saved.agreement import Agreement, Opinion
from dqd.saved.archive import SavedArchive
from dqd.saved.archived import Archived
from dqd.saved.elites import Elites
from dqd.storage import judgement, record
from dqd.storage.settings import finite, with_about
from dqd.types import PyTree

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dqd.figures.frame import Page


@dataclass(eq=False, repr=False)
class Result(Snapshot, Archived):
    """One finished search: the archive and how it was found.

    It is what `dqd.illuminate` returns: figures (`qd_score`, `coverage`, `best`, `mean`), the curve of each over the
    iterations (`history`), the elites (`elites`, `retrieve`, `solution`, `best_solution`, `to_pandas`), what it took
    (`evaluations`, `gradients`, `restarts`, `seconds`), pictures (`plot`, `show`) and a file (`save`).
    Of a problem whose scores are provisional, the archive is the one that its final judges leave; what the search
    itself found is `provisional`.

    >>> def score(x):
    ...     return -jnp.sum(x["angles"] ** 2), x["angles"][:2]
    >>> grid, x0 = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[10, 10]), {"angles": jnp.zeros(3)}
    >>> result = dqd.illuminate(score, dqd.cma_mega(sigma=1.0), grid, x0=x0, iterations=50, progress=False)
    >>> result.solution([0.1, 0.1])["angles"].shape  # shaped like x0
    (3,)
    >>> result.history["qd_score"].shape
    (50,)
    """

    layout: Layout
    domain: Any = None  # what was searched, or its name
    judged: Archive | None = None
    chosen: Mapping[str, float] = field(default_factory=dict)  # sigmas that were left out, by what they multiply
    opinions: Sequence[Opinion] = ()  # of held-out judges, in fields of what was judged

    @property
    def agreement(self) -> Agreement | None:
        """How far held-out judges agree, and what they trust; None where nobody was asked."""
        asked = self.judged is not None and self.opinions
        return Agreement(self.archive.to_numpy(False), self.opinions) if asked else None

    def judged_by(self, problem: Problem[Any], say: Say = nobody) -> Result:
        """The result that counts: by the judges of a problem, with the opinions of those that are held out.

        `illuminate` does so by itself; this is for what a loop of one's own has found. `say` is told how many of how
        many elites are done.
        """
        return dataclasses.replace(self, judged=problem.judged(self.archive, say), opinions=problem.opinions)

    def keep_judged(self, folder: str | os.PathLike[str], part: str = "") -> None:
        """Write what the judges left beside the record of the run, where `dqd.load` finds it."""
        judgement.write(Path(folder), self.iterations, self.archive.arrays(), self.summary(), part)

    def summary(self) -> dict[str, Any]:
        """The metrics of the run as plain numbers, ready for JSON; with held-out judges, how far they agree."""
        return super().summary() | ({} if (asked := self.agreement) is None else finite(asked.summary()))

    @property
    def archive(self) -> Archive:
        """What was found: in the result archive, if there is one."""
        return self.state.reported if self.judged is None else self.judged

    @property
    def searched(self) -> Archive:
        """The archive that the emitters saw; the same, unless a result archive was kept beside it."""
        return self.state.archive

    @property
    def provisional(self) -> Result:
        """The same by the scores of the search."""
        return dataclasses.replace(self, judged=None)

    @cached_property
    def elites(self) -> Elites:
        """The occupied cells as NumPy arrays."""
        return self.archive.elites

    @property
    def clamped_share(self) -> float:
        """Share of the finite evaluations whose measures lay outside the grid."""
        return self.state.tally.outside / max(self.state.tally.finite, 1)

    def retrieve(self, measures: Any) -> Elites:
        """The elite of the cell of each row of measures, (b, k) or (k,); `occupied` says where there is one."""
        return self.archive.retrieve(measures)

    def solution(self, measures: Any) -> PyTree:
        """The elite in the cell of these measures, shaped like x0."""
        found = self.archive.retrieve(measures)
        if len(found) != 1:
            raise ValueError(f"measures: expected those of one cell, got {len(found)} rows; retrieve takes many")
        if not found.occupied[0]:
            raise KeyError(f"no elite in the cell of measures {np.asarray(measures).tolist()}")
        return self.layout.unflatten(found.solutions[0])

    def best_solution(self) -> PyTree:
        """The elite with the best objective, shaped like x0."""
        return self.layout.unflatten(self.archive.best_solution())

    def to_pandas(self) -> pandas.DataFrame:
        """One row per elite: cell, objective, measure_0..., solution_0..., found."""
        return self.archive.to_pandas()

    def to_numpy(self, solutions: bool = True) -> SavedArchive:
        """The archive with its settings and metrics, as `dqd.load` reads them from disk."""
        saved, config = self.archive.to_numpy(solutions), {**self._config(), "summary": self.summary()}
        return dataclasses.replace(saved, config=config, metrics=list(self.rows(ROWS)), timings=self._timings())

    def _timings(self) -> list[dict[str, float]]:
        """The time at the beginning and at the end; a loop of one's own has no clock."""
        ends = ((0, 0.0), (self.iterations, self.seconds)) if self.seconds else ()
        return [{"iteration": iteration, "seconds": seconds} for iteration, seconds in ends]

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        solutions: bool = True,
        rows: int = ROWS,
        about: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a finished run to a new folder.

        Without solutions the record is small; `rows` is about how many lines of metrics to keep, up to 10,000;
        `about` is added to the config.
        """
        config = with_about(about, self._config())
        return record.write_run(folder, self.iterations, config, self.summary(), self.files(solutions, rows))

    def _config(self) -> dict[str, Any]:
        made_of = settings(self.search, self.searched, self.state.x0, self.domain)
        more = {"chosen": dict(self.chosen)} if self.chosen else {}
        return {**made_of, **more, "seed": self.seed, "iterations": self.iterations}

    def __repr__(self) -> str:
        order = ", asynchronous: its order depended on timing" if self.asynchronous else ""
        asked = self.agreement
        trusted = "" if asked is None else f"trusted_qd_score={asked.qd_score:.4g}, agreement={asked.share:.1f} %, "
        return (
            f"Result(qd_score={self.qd_score:.4g}, coverage={self.coverage:.2f} %, best={self.best:.4g}, {trusted}"
            f"iterations={self.iterations:,}, evaluations={self.evaluations:,}, seconds={self.seconds:.2f}{order})"
        )


@dataclass(eq=False, repr=False)
class Results(Snapshots, Sequence[Result]):
    """The results of several seeds that ran side by side: a sequence, and the figures of all as arrays.

    `seconds` is the time of all of them together.

    >>> def score(x):
    ...     return -jnp.sum(x**2), x[:2]
    >>> grid, many = dqd.Grid([-2, -2], [2, 2], [10, 10]), {"seeds": [1, 2, 3], "iterations": 20, "progress": False}
    >>> results = dqd.illuminate(score, dqd.cma_mega(sigma=1.0), grid, x0=jnp.zeros(3), **many)
    >>> results.qd_score.shape, results[0].seed
    ((3,), 1)
    """

    layout: Layout
    domain: Any = None
    chosen: Mapping[str, float] = field(default_factory=dict)
    judged: Sequence[Archive] | None = None  # of every seed
    opinions: Sequence[Opinion] = ()

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...

    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        about: Any = {"layout": self.layout, "domain": self.domain, "chosen": self.chosen, "opinions": self.opinions}
        return Result(**vars(self.one(number)), **about, judged=None if self.judged is None else self.judged[number])

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def qd_score(self) -> np.ndarray:
        """QD-score of every seed."""
        return self._metrics.qd_score

    @property
    def coverage(self) -> np.ndarray:
        """Coverage of every seed, in percent."""
        return self._metrics.coverage

    @property
    def best(self) -> np.ndarray:
        """Best objective of every seed."""
        return self._metrics.best

    @property
    def mean(self) -> np.ndarray:
        """Mean objective of the elites of every seed."""
        return self._metrics.mean

    def best_solution(self) -> PyTree:
        """The best elite of all seeds, shaped like x0."""
        return self[int(np.argmax(self.best))].best_solution()

    @cached_property
    def _metrics(self) -> Metrics:
        if self.judged is None:
            return self.state.reported.metrics
        return jax.tree.map(lambda *figures: np.stack(figures), *(each.metrics for each in self.judged))

    def _each(self) -> Iterator[Snapshot]:
        return iter(self)

    def judged_by(self, problem: Problem[Any], say: Say = nobody) -> Results:
        """As that of a result, for every seed."""
        judged = [problem.judged(each.archive, say) for each in self]
        return dataclasses.replace(self, judged=judged, opinions=problem.opinions)

    def keep_judged(self, folder: str | os.PathLike[str]) -> None:
        for each in self:
            each.keep_judged(folder, f"seed-{each.seed}")

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """All seeds in one new folder; each is read as `folder/seed-S`."""
        first = self[0]
        config = {**first._config(), "seeds": self.seeds}
        del config["seed"]
        return record.write_run(folder, first.iterations, config, self.summary(), self.files())

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Axes:
        """The maps of all seeds side by side, written to `path` if one is given; options as for `dqd.plot.maps`."""
        from dqd.figures import draw, plot

        axes = plot.maps(self, **options)
        if path is not None:
            draw.save(axes, path)
        return axes

    def show(self, *, solutions: bool = True, height: int = 820) -> Page:
        """The explorer's page of the seed with the best QD-score; `results[i].show()` is that of another."""
        return self[int(np.argmax(self.qd_score))].show(solutions=solutions, height=height)

    def _repr_html_(self) -> str:
        from dqd.figures.card import cards

        return cards(self)

    def __repr__(self) -> str:
        figures = (
            f"qd_score={self.qd_score.mean():.4g}, coverage={self.coverage.mean():.2f} %, best={self.best.max():.4g}"
        )
        return f"Results({len(self)} seeds, {figures}, seconds={self.seconds:.2f})"
