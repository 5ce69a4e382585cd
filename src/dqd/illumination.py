"""`illuminate`: run a search from one function.

What the user gave is checked, a runner is chosen (`runners.runner` says what that is), and `runners.loop` turns it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.beginning import Beginning
from dqd.archives.competition import CellsLike, check_cells
from dqd.archives.threshold import Threshold
from dqd.compiler import cache
from dqd.console.saying import say
from dqd.domains.domain import Domain, evaluating
from dqd.domains.function import as_domain, check_score
from dqd.domains.problem import Problem
from dqd.domains.survey import Ask, lead
from dqd.emitters.combine import Staggered
from dqd.emitters.emitter import Emitter, check_emitter, threshold_of
from dqd.emitters.presets import usual
from dqd.inputs.arguments import check_arguments, check_initial_sigma
from dqd.inputs.bounds import numpy_sides
from dqd.inputs.evaluator import Evaluator
from dqd.inputs.fields import Shapes, check_fields
from dqd.inputs.layout import Layout
from dqd.interop.torch import TorchEvaluator
from dqd.result import Result, Results
from dqd.runners.asynchronous import Asynchronous
from dqd.runners.callbacks import Callbacks
from dqd.runners.checkpoints import recording
from dqd.runners.compiled import Compiled, counted, grain, run_chunk, start_seeds
from dqd.runners.hosted import Hosted, described, named
from dqd.runners.loop import advance
from dqd.runners.progress import CompileClock, Interrupt, Progress, judging
from dqd.runners.runner import Runner
from dqd.runners.sharded import Devices, Sharded
from dqd.runners.snapshot import settings
from dqd.runners.until import Until
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.scales import Scales, say_chosen
from dqd.search.search import Search
from dqd.storage.folder import Folder
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Evaluation, Score
from dqd.workers.batches import Evaluations
from dqd.workers.padded import OnHost
from dqd.workers.workers import Workers

Where = Workers | Devices | Executor | Callable[[], Executor] | str
ENDED_BY_SIGNAL = ("interrupted", "terminated")  # judging elites again would keep the signal waiting


class Terminated(SystemExit):
    """SIGTERM came: the run is on disk, and the program ends with code 143 unless this is caught."""

    def __init__(self, result: Result | Results) -> None:
        super().__init__(143)
        self.result = result


@overload
def illuminate(
    score: Score | Domain | Evaluator | Problem[Any],
    emitter: Emitter | None = None,
    tessellation: CellsLike | None = None,
    *,
    x0: Any = None,
    iterations: int = 1000,
    seed: int | None = None,
    seeds: None = None,
    bounds: Any = None,
    initial_sigma: float | None = None,
    archive: Any = None,
    threshold: Threshold | None = None,
    result_archive: Tessellation | None = None,
    qd_score_offset: float = 0.0,
    fields: Mapping[str, tuple[int, ...]] | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    chunk: int | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool | None = None,
) -> Result: ...


@overload
def illuminate(
    score: Score | Domain | Evaluator | Problem[Any],
    emitter: Emitter | None = None,
    tessellation: CellsLike | None = None,
    *,
    seeds: Sequence[int],
    x0: Any = None,
    iterations: int = 1000,
    bounds: Any = None,
    initial_sigma: float | None = None,
    archive: Any = None,
    threshold: Threshold | None = None,
    result_archive: Tessellation | None = None,
    qd_score_offset: float = 0.0,
    fields: Mapping[str, tuple[int, ...]] | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    chunk: int | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool | None = None,
) -> Results: ...


def illuminate(
    score: Score | Domain | Evaluator | Problem[Any],
    emitter: Emitter | None = None,
    tessellation: CellsLike | None = None,
    *,
    x0: Any = None,
    iterations: int = 1000,
    seed: int | None = None,
    seeds: Sequence[int] | None = None,
    bounds: Any = None,
    initial_sigma: float | None = None,
    archive: Any = None,
    threshold: Threshold | None = None,
    result_archive: Tessellation | None = None,
    qd_score_offset: float = 0.0,
    fields: Mapping[str, tuple[int, ...]] | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    chunk: int | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool | None = None,
) -> Result | Results:
    """Find the best solution for every combination of measures.

    Args:
        score: one solution -> (objective, measures), written in jax.numpy; or a `dqd.Domain`. The objective is
            maximised. A function in PyTorch comes as `dqd.torch_evaluator(f)`; what else JAX cannot trace (NumPy, a
            simulator) as `dqd.evaluator(f)`, a function of a whole batch, or as any `dqd.Evaluator`. A Problem, such as
            those of `dqd.latent`, brings its own grid, start and bounds, and the judge of what counts in the end.
        emitter: what to search with, such as `dqd.cma_mega(sigma=1.0)`; by default `dqd.cma_mega()`. A sigma that was
            left out is chosen before the search by some dozens of evaluations around x0: `result.chosen`.
        tessellation: the cells of measure space, such as `dqd.Grid(lower, upper, shape)`; or a competition that needs
            none: `dqd.DNS(measures, capacity)`, `dqd.Novelty(measures, threshold)`.
        x0: where to start: an array (n,) or any pytree of arrays, then also what a `score` function is given (a Domain
            or an evaluator is given flat vectors). The named parameters of a `torch_evaluator` are their own start.
        iterations: how many in all. Another number compiles nothing anew.
        seed, seeds: one seed (default 0) gives a `Result`; several run side by side and give `Results`.
        bounds: (lower, upper) for solutions, numbers or shaped like x0; they hold in every phase, by clipping. Or a
            `dqd.Bounds`, which can reflect, or map smoothly.
        initial_sigma: standard deviation of the initial population around x0, in the units of x0, for algorithms that
            have one; default 1, or chosen where the emitter's sigma is.
        archive: elites to begin with, inserted before all else: a `Result`, an archive, the path of a run or of an
            exported file, or a dictionary of solutions (m, n), objective (m,) and measures (m, k), as pyribs'
            `archive.data()` is. Their scores are believed; their cells follow from their measures.
        threshold: what counts as progress, a `dqd.Threshold`; default that of the emitter (CMA-MAE), or MAP-Elites.
        result_archive: cells of an archive beside the one that is searched in, such as a `dqd.Grid`: everything that is
            evaluated is stored there too, the best of each cell, and it is what is reported: metrics, `result.archive`,
            files. `result.searched` is the other one. For archives without cells, and for CMA-MAE, whose own archive
            keeps out what lies below its minimum.
        qd_score_offset: an objective that is worth nothing; the QD-score sums what lies above it.
        fields: numbers of your own that are kept for every elite, by name with their shapes, such as {"energy": ()}:
            what evaluates returns them last, as a dictionary. `result.elites.fields` has them, and every file.
        where: where evaluations happen. By default on JAX's first device, or in this process for an evaluator.
            `dqd.Workers(executor, ...)`, or just an executor or the address of a Dask scheduler: on workers.
            `dqd.Workers(executor, rounds=4)`: asynchronously, so that no worker waits for the slowest of a batch.
            `dqd.Devices(8)`: on several devices of this machine.
        out: a folder for the record of the run, or a `dqd.Folder` that says how often to write. If it holds a run of
            the same settings, that run is resumed; a finished one is returned at once.
        until: called at every multiple of `chunk` iterations with a dictionary of `iteration`, `seconds` (of this
            session), `evaluations`, `qd_score`, `coverage`, `best` and `mean`; True ends the run early. Ready made:
            `dqd.seconds(60)`, `dqd.evaluations(10_000)`, `dqd.coverage(90)`, `dqd.stagnation()`, and several of them
            joined by `|`.
        chunk: how often `until` is called: by default after every 250 iterations, with an evaluator after each.
        callbacks: objects with any of `on_start(settings)`, `on_chunk(now)`, `on_checkpoint(folder)` and
            `on_end(result)`, such as those of `dqd.loggers`; what they raise never ends a run.
        progress: show it (default), or not.

    The first Ctrl-C returns what was found, with `result.stopped` set; the second one interrupts. With `out`, SIGTERM
    writes a checkpoint and ends the program with code 143.

    >>> import jax.numpy as jnp
    >>> def score(x):
    ...     return -jnp.sum(x**2), x[:2]
    >>> grid = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[10, 10])
    >>> result = dqd.illuminate(score, dqd.cma_mega(sigma=1.0), grid, x0=jnp.zeros(5), iterations=100, progress=False)
    >>> bool(result.coverage > 50)
    True
    """
    cache.enable()
    check_arguments(iterations, seed, seeds, chunk)
    kept = check_fields(fields or {})
    place = _place(where)
    rounds = place.rounds if isinstance(place, Workers) else 1
    task = _task(
        *(score, emitter, rounds, tessellation, x0, bounds, initial_sigma, threshold, result_archive),
        *(qd_score_offset, archive, kept),
    )
    numbers = [0 if seed is None else int(seed)] if seeds is None else [int(number) for number in seeds]
    folder, clock, hearing = Folder.of(out), CompileClock(), Callbacks(callbacks)
    task, chosen = task.scaled(place, folder, progress)
    with contextlib.ExitStack() as stack:
        runner = task.runner(place, seeds is not None, folder, int(iterations))
        stack.enter_context(contextlib.closing(runner))

        def asked() -> dict[str, Any]:
            named_seeds = {"seed": numbers[0]} if seeds is None else {"seeds": numbers}
            found = {"chosen": chosen} if chosen else {}
            return task.settings(place) | named_seeds | {"iterations": int(iterations)} | found

        written = functools.partial(hearing.tell, "on_checkpoint")
        checkpoints = stack.enter_context(recording(folder, asked, clock, task.search, runner.grain, written))
        seeding = jnp.asarray(numbers[0] if seeds is None else numbers)
        restored = checkpoints.restore(task.archive, task.x0)
        state, history = restored or (runner.start(task.begun(), task.x0, seeding), History())
        if callbacks:
            hearing.tell("on_start", asked())
        interrupt = stack.enter_context(Interrupt(resumable=folder is not None))
        state, stopped = advance(
            runner,
            state,
            iterations,
            runner.chunk if chunk is None else chunk,
            until,
            stack.enter_context(Progress(iterations, enabled=progress, done=history.done)),
            interrupt,
            history,
            checkpoints,
            hearing,
        )
        checkpoints.keep(state, history, stopped, last=True)
    warn(state)
    if progress is not False and (words := task.search.account(state)):
        say(f"dqd: {words}")
    if folder is not None and progress is not False:
        say(f"dqd: kept in {folder.path}; see it: dqd view {folder.path}")
    found = (stopped, *clock.read(), task.layout, named(task.problem))
    result: Result | Results
    if seeds is None:
        result = Result(task.search, state, history.arrays(), numbers[0], *found, chosen=chosen)
    else:
        result = Results(task.search, state, history.arrays(), numbers, *found, chosen=chosen)
    if task.given is not None and task.given.is_judged and stopped not in ENDED_BY_SIGNAL:
        result = result.judged_by(task.given, judging(progress))
        if folder is not None:
            result.keep_judged(folder.path)
    hearing.tell("on_end", result)
    if stopped == "terminated":
        raise Terminated(result)
    return result


@dataclass(frozen=True)
class _Task:
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
    ) -> tuple[_Task, dict[str, float]]:
        """With every sigma that was left out chosen, and what they are. A run that goes on has chosen already."""
        if not self.scales.names:
            return self, {}
        chosen = self.scales.recorded(folder)
        if chosen is None:
            k, bounds = self.archive.num_measures, numpy_sides(self.search.bounds)
            with contextlib.closing(_Look(self.problem, place, k, bounds)) as look:
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


def _task(
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
) -> _Task:
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
    emitter = usual() if emitter is None else emitter
    wanted = threshold_of(emitter, threshold)
    emitter = emitter if rounds == 1 else Staggered(emitter, rounds)
    search = Search(emitter, layout.box(given["bounds"], flat), sigma)
    scales = Scales.of(search, given["initial_sigma"])
    archive = Archive.empty(
        tessellation,
        flat.size,
        threshold=wanted,
        qd_score_offset=qd_score_offset,
        dtype=flat.dtype,
        fields=fields,
        results=result_archive,
    )
    begun = Beginning.of(beginning, archive, numpy_sides(search.bounds))
    rest = (search, archive, flat, layout, problem, begun, scales)
    if isinstance(score, Evaluator) and not isinstance(score, Domain | type):
        return _Task(score, *rest)
    domain = as_domain(score, layout)
    check_score(domain, flat, archive.num_measures, fields)
    return _Task(domain, *rest)


class _Look:
    """Evaluates what is asked for before a search: a domain in this process, an evaluator wherever it will be."""

    def __init__(self, problem: Domain | Evaluator, place: Workers | Devices | None, k: int, bounds: Any) -> None:
        evaluator = OnHost(problem, None) if isinstance(problem, Domain) else problem
        workers = place if isinstance(place, Workers) and not isinstance(problem, Domain) else Workers()
        self.evaluations = Evaluations(evaluator, workers, k, None, bounds)

    def __call__(self, ask: Ask) -> Evaluation:
        return self.evaluations.evaluate(ask.solutions, 0, "points" if ask.jacobian else "a look around")

    def close(self) -> None:
        self.evaluations.close()


def _place(where: Any) -> Workers | Devices | None:
    """A bare executor, or the address of a scheduler, is one of workers with all else as usual."""
    return where if where is None or isinstance(where, Workers | Devices) else Workers(where)


def compile_ahead(
    score: Score | Domain,
    emitter: Emitter,
    tessellation: Tessellation,
    *,
    x0: Any,
    seeds: Sequence[int],
    result_archive: Tessellation | None = None,
) -> None:
    """Compile what `illuminate` will run for several seeds, without running it.

    `illuminate` finds the programs in JAX's persistent compilation cache.
    """
    layout, flat = Layout.of(x0)
    domain, search = as_domain(score, layout), Search(emitter)
    threshold = threshold_of(emitter, None)
    kept: Any = {"threshold": threshold, "dtype": flat.dtype, "results": result_archive}
    archive = jax.eval_shape(lambda: Archive.empty(tessellation, flat.size, **kept))
    arguments = (search, archive, flat, jnp.asarray(seeds), domain)
    state = jax.eval_shape(start_seeds, *arguments)
    start_seeds.lower(*arguments).compile()
    for length in {1, grain()}:
        run_chunk.lower(search, state, domain, length, batched=True, counted=counted(length)).compile()
