"""What is to be searched, checked, and the runner that fits where evaluations happen."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import Any

from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.beginning import Beginning
from dqd.archives.competition import CellsLike, check_cells
from dqd.archives.threshold import Threshold
from dqd.domains.domain import Domain, evaluating
from dqd.domains.function import as_domain, check_score
from dqd.domains.problem import Problem
from dqd.domains.survey import Ask, lead
from dqd.emitters.combine import Staggered
from dqd.emitters.emitter import Emitter, check_emitter, threshold_of
from dqd.emitters.presets import usual
from dqd.inputs.arguments import check_initial_sigma
from dqd.inputs.bounds import numpy_sides
from dqd.inputs.evaluator import Evaluator
from dqd.inputs.fields import Shapes
from dqd.inputs.layout import Layout
from dqd.interop.torch import TorchEvaluator
from dqd.runners.asynchronous import Asynchronous
from dqd.runners.compiled import Compiled
from dqd.runners.hosted import Hosted, described
from dqd.runners.runner import Runner
from dqd.runners.sharded import Devices, Sharded
from dqd.runners.snapshot import settings
from dqd.search.scales import Scales, say_chosen
from dqd.search.search import Search
from dqd.storage.folder import Folder
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation
from dqd.workers.batches import Evaluations
from dqd.workers.padded import OnHost
from dqd.workers.workers import Workers


@dataclass(frozen=True)
class Task:
    """What is to be searched, checked."""

    problem: Domain | Evaluator
    search: Search
    archive: Archive  # empty
    x0: Array  # flat
    layout: Layout
    given: Problem[Any] | None  # whose judges have the last word
    beginning: Beginning | None  # what the archive holds before iteration 1
    scales: Scales  # what is left to be chosen

    def begun(self) -> Archive:
        """The archive to begin with; its buffers are given away."""
        return self.archive if self.beginning is None else self.beginning.into(self.archive)

    def scaled(
        self, place: Workers | Devices | None, folder: Folder | None, progress: bool | None
    ) -> tuple[Task, dict[str, float]]:
        """With every sigma that was left out chosen, and what they are. A run that goes on has chosen already."""
        if not self.scales.names:
            return self, {}
        chosen = self.scales.recorded(folder)
        if chosen is None:
            k, bounds = self.archive.num_measures, numpy_sides(self.search.bounds)
            with contextlib.closing(Look(self.problem, place, k, bounds)) as look:
                chosen = lead(self.scales.choosing(self.x0, self.archive), look)
            if progress is not False:
                say_chosen(chosen)
        return dataclasses.replace(self, search=self.scales.chosen(chosen)), chosen

    def runner(self, place: Workers | Devices | None, batched: bool, folder: Folder | None, iterations: int) -> Runner:
        if isinstance(place, Devices):
            if not isinstance(self.problem, Domain):
                raise ValueError("where: devices share what is compiled; give an evaluator dqd.Workers instead")
            return Sharded(self.search, self.problem, batched, place.mesh)
        if isinstance(self.problem, Domain) and place is None:
            return Compiled(self.search, self.problem, batched)
        if batched:
            raise ValueError("seeds: evaluations outside the compiled program serve one seed at a time; give seed")
        k, workers, fields = self.archive.num_measures, place or Workers(), self.archive.field_shapes
        hosted = Hosted.of(self.search, self.problem, k, workers, None if folder is None else folder.path, fields)
        return hosted if workers.rounds == 1 else Asynchronous(hosted, iterations)

    def settings(self, place: Workers | Devices | None) -> dict[str, Any]:
        """All that decides the result but the seed."""
        workers = place if isinstance(place, Workers) else None
        return settings(self.search, self.archive, self.x0, described(self.problem, workers), self.beginning)


def task_of(
    score: Any,
    emitter: Emitter | None,
    rounds: int,
    tessellation: CellsLike | None,
    x0: Any,
    bounds: Any,
    initial_sigma: float | None,
    threshold: Threshold | None,
    result_archive: Tessellation | None,
    qd_score_offset: float,
    beginning: Any,
    fields: Shapes,
    kept: Any = None,
) -> Task:
    """What a user gave, checked, with the defaults of the problem filled in. `kept` is the type of kept solutions."""
    if emitter is not None:
        check_emitter("emitter", emitter)
    given = {"tessellation": tessellation, "x0": x0, "bounds": bounds, "initial_sigma": initial_sigma}
    problem = score if isinstance(score, Problem) else None
    if problem is not None:
        given, score = problem.filled(**given), problem.domain
    score = evaluating(score)
    if isinstance(score, TorchEvaluator):
        given["x0"] = score.start(given["x0"])
    tessellation = given["tessellation"]
    check_cells(tessellation)
    sigma = check_initial_sigma(given["initial_sigma"])
    layout, flat = Layout.of(given["x0"])
    emitter = usual(tessellation, threshold) if emitter is None else emitter
    wanted = threshold_of(emitter, threshold)
    emitter = emitter if rounds == 1 else Staggered(emitter, rounds)
    search = Search(emitter, layout.box(given["bounds"], flat, kept), sigma)
    scales = Scales.of(search, given["initial_sigma"])
    archive = Archive.empty(
        tessellation,
        flat.size,
        threshold=wanted,
        qd_score_offset=qd_score_offset,
        dtype=flat.dtype,
        fields=fields,
        results=result_archive,
        kept=kept,
    )
    begun = Beginning.of(beginning, archive, numpy_sides(search.bounds))
    rest = (search, archive, flat, layout, problem, begun, scales)
    if isinstance(score, Evaluator) and not isinstance(score, Domain | type):
        return Task(score, *rest)
    domain = as_domain(score, layout)
    check_score(domain, flat, archive.num_measures, fields)
    return Task(domain, *rest)


class Look:
    """Evaluates what is asked for before a search: a domain in this process, an evaluator wherever it will be."""

    def __init__(self, problem: Domain | Evaluator, place: Workers | Devices | None, k: int, bounds: Any) -> None:
        evaluator = OnHost(problem, None) if isinstance(problem, Domain) else problem
        workers = place if isinstance(place, Workers) and not isinstance(problem, Domain) else Workers()
        self.evaluations = Evaluations(evaluator, workers, k, None, bounds)

    def __call__(self, ask: Ask) -> Evaluation:
        return self.evaluations.evaluate(ask.solutions, 0, "points" if ask.jacobian else "a look around")

    def close(self) -> None:
        self.evaluations.close()


def place_of(where: Any) -> Workers | Devices | None:
    """A bare executor, or the address of a scheduler, is one of workers with all else as usual."""
    return where if where is None or isinstance(where, Workers | Devices) else Workers(where)
