"""`illuminate`: run a search from one function.

What the user gave is checked, a runner is chosen (`runners.runner` says what that is), and `runners.loop` turns it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives.archive import Archive
from dqd.archives.competition import CellsLike
from dqd.archives.threshold import Threshold
from dqd.compiler import cache
from dqd.console.saying import say
from dqd.domains.domain import Domain
from dqd.domains.function import as_domain
from dqd.domains.problem import Problem
from dqd.emitters.emitter import Emitter, threshold_of
from dqd.emitters.scale import scaled
from dqd.inputs.arguments import check_arguments
from dqd.inputs.evaluator import Evaluator
from dqd.inputs.fields import check_fields
from dqd.inputs.halves import check_half
from dqd.inputs.layout import Layout
from dqd.result import Result, Results
from dqd.runners.callbacks import Callbacks
from dqd.runners.checkpoints import recording
from dqd.runners.compiled import counted, grain, run_chunk, start_seeds
from dqd.runners.hosted import named
from dqd.runners.loop import advance
from dqd.runners.progress import CompileClock, Interrupt, Progress, judging
from dqd.runners.sharded import Devices
from dqd.runners.task import place_of, task_of
from dqd.runners.until import Until, joined
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.search import Search
from dqd.storage.folder import Folder
from dqd.tessellations.tessellation import Tessellation
from dqd.types import Score
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
    solutions: str | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    time_limit: float | None = None,
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
    solutions: str | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    time_limit: float | None = None,
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
    solutions: str | None = None,
    where: Where | None = None,
    out: str | os.PathLike[str] | Folder | None = None,
    until: Until | None = None,
    time_limit: float | None = None,
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
        emitter: what to search with, such as `dqd.cma_mega(sigma=1.0)`; by default `dqd.auto()`, or `dqd.cma_mega()`
            with a threshold or where cells do not know their neighbours. A sigma that was left out is chosen before the
            search by some dozens of evaluations around x0: `result.chosen`.
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
        solutions: "float16" keeps elites in half the memory, for archives that would not fit otherwise. What is
            evaluated is rounded first, by up to 1/2048 of a number, so smaller steps lead nowhere. Elites come out, and
            stand in files, in the precision of the search.
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
        time_limit: seconds of wall time for this session; the same as `until=dqd.seconds(...)`, beside another one.
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
    until = joined(until, time_limit)
    kept = check_fields(fields or {})
    place = place_of(where)
    rounds = place.rounds if isinstance(place, Workers) else 1
    task = task_of(
        *(score, emitter, rounds, tessellation, x0, bounds, initial_sigma, threshold, result_archive),
        *(qd_score_offset, archive, kept, check_half(solutions)),
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
        seeding = jax.device_put(np.asarray(numbers[0] if seeds is None else numbers, jnp.result_type(int)))
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
    domain = as_domain(score, layout)
    search = Search(scaled(emitter, lambda along: 1.0))  # what is still to be chosen is traced: any number will do
    threshold = threshold_of(emitter, None)
    kept: Any = {"threshold": threshold, "dtype": flat.dtype, "results": result_archive}
    archive = jax.eval_shape(lambda: Archive.empty(tessellation, flat.size, **kept))
    arguments = (search, archive, flat, jnp.asarray(seeds), domain)
    state = jax.eval_shape(start_seeds, *arguments)
    for length in {1, grain()}:
        cache.compile_once(run_chunk.lower(search, state, domain, length, batched=True, counted=counted(length)))
    cache.compile_once(start_seeds.lower(*arguments))  # the same for many algorithms
