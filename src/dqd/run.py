"""`illuminate`: run a search from one function.

A runner advances the search by a chunk of iterations: compiled on one device (`compiled`), or on several (`devices`),
or on the host around evaluations that happen elsewhere (`interop.hosted`). Between chunks the host shows progress,
listens for Ctrl-C and decides whether to go on.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dqd import cache
from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.archives.metrics import Metrics
from dqd.checkpoints import Checkpoints, NoCheckpoints
from dqd.checks import as_domain, check_arguments, check_score, check_search
from dqd.compiled import LONGEST, Compiled, run_chunk, start_seeds
from dqd.describe import describe
from dqd.devices import Sharded, mesh_of
from dqd.domains.domain import Domain
from dqd.emitters.emitter import Emitter
from dqd.health import Health, warn
from dqd.history import History
from dqd.interop.hosted import Elsewhere
from dqd.progress import CompileClock, Interrupt, Progress
from dqd.record import with_versions
from dqd.result import Result, Results, settings
from dqd.search import Search, SearchState, Tally
from dqd.solutions import Layout
from dqd.types import Score
from dqd.writer import Writer


class Terminated(SystemExit):
    """SIGTERM came: the run is on disk, and the program ends with code 143 unless this is caught."""

    def __init__(self, result: Any) -> None:
        super().__init__(143)
        self.result = result


def illuminate(
    score: Score | Domain | None,
    emitter: Emitter,
    tessellation: Grid,
    *,
    x0: Any,
    iterations: int = 1000,
    seed: int | None = None,
    seeds: Sequence[int] | None = None,
    evaluator: Any = None,
    executor: Any = None,
    evaluation_chunk: int | None = None,
    timeout: float | None = None,
    on_failure: str = "raise",
    insecure: bool = False,
    devices: int | Sequence[jax.Device] | None = None,
    out: str | os.PathLike[str] | None = None,
    bounds: Any = None,
    initial_sigma: float = 1.0,
    archive_learning_rate: float = 1.0,
    archive_minimum: float = -math.inf,
    qd_score_offset: float = 0.0,
    until: Callable[[dict[str, float]], bool] | None = None,
    progress: bool | None = None,
    chunk: int | None = None,
    checkpoint_seconds: float = 60.0,
    about: Mapping[str, Any] | None = None,
) -> Any:
    """Find the best solution for every combination of measures.

    Args:
        score: one solution -> (objective, measures), written in jax.numpy; or a Domain. The objective is maximised.
            None if there is an evaluator.
        emitter: what to search with, such as `dqd.cma_mega(sigma=1.0)`.
        tessellation: the cells of measure space, a `dqd.Grid`.
        x0: where to start: an array (n,) or any pytree of arrays, then also what a `score` function is given (a Domain
            is given the flat vector).
        seed, seeds: one seed (default 0) gives a `Result`; several run side by side and give `Results`.
        evaluator: instead of score, a plain function of a batch, NumPy (b, n) -> objective (b,), measures (b, k) and,
            for algorithms with gradients, jacobian (b, 1 + k, n); or a `dqd.Evaluator`.
        executor: where to evaluate: a concurrent.futures.Executor, a function that makes one (which is called again
            when its workers die), a distributed.Client, or the address of a Dask scheduler.
        evaluation_chunk: solutions per call of the evaluator: by default the whole batch in this process, 4 for a
            worker. Workers come and go without changing the result; this number may change its rounding.
        timeout: seconds until an evaluation, of a chunk or alone, counts as hanging.
        on_failure: "raise" stops at a solution that cannot be evaluated, "skip" reports it and goes on without it.
        insecure: allow unencrypted tcp:// to a scheduler on another machine.
        devices: how many devices, or which: they share the seeds, or else the emitters' copies and the evaluations.
            Their number may change how results round, also when a run in `out` goes on.
        out: a folder for the record of the run. If it holds a run of the same settings, that run goes on; a finished
            one is returned at once.
        bounds: (lower, upper) for solutions, numbers or shaped like x0; they hold in every phase.
        initial_sigma: standard deviation of the initial population around x0, for algorithms that have one.
        archive_learning_rate, archive_minimum: acceptance threshold of the archive (CMA-MAE); default MAP-Elites.
        qd_score_offset: an objective that is worth nothing; the QD-score sums what lies above it.
        until: called with the metrics at every multiple of `chunk` iterations; True ends the run early.
        progress: show it (default), or not.
        chunk: how often `until` is called: by default after every 250 iterations, with an evaluator after each.
        checkpoint_seconds: time between two checkpoints in `out`; longer where they would take more than 1 % of it.
            0 writes one at every look.
        about: words of your own for config.json.

    The first Ctrl-C returns what was found, with `result.stopped` set; the second one interrupts. With `out`, SIGTERM
    writes a checkpoint and ends the program with code 143.
    """
    cache.enable()
    check_search(emitter, tessellation, initial_sigma)
    check_arguments(iterations, seed, seeds, chunk)
    if not checkpoint_seconds >= 0:
        raise ValueError(f"checkpoint_seconds: expected seconds, at least 0, got {checkpoint_seconds!r}")
    layout, flat = Layout.of(x0)
    batched = seeds is not None
    elsewhere = Elsewhere(evaluator, executor, evaluation_chunk, timeout, on_failure, insecure, out)
    problem: Any = evaluator
    if evaluator is None:
        problem = as_domain(score, layout)
        check_score(problem, flat, tessellation)
    elif score is not None:
        raise ValueError("score and evaluator: give one of them; score is None where evaluations happen elsewhere")
    search = Search(emitter, layout.flatten_bounds(bounds), float(initial_sigma))
    numbers = [int(s) for s in seeds] if seeds is not None else [0 if seed is None else int(seed)]
    archive = Archive.empty(
        tessellation,
        flat.size,
        learning_rate=archive_learning_rate,
        minimum=archive_minimum,
        qd_score_offset=qd_score_offset,
        dtype=flat.dtype,
    )
    clock = CompileClock()

    def found(state: SearchState, history: History, stopped: str | None) -> Any:
        kind, seed = (Results, numbers) if batched else (Result, numbers[0])
        domain = elsewhere.named(problem)
        return kind(search, state, history.arrays(), seed, layout, stopped, *clock.read(), domain)  # type: ignore[arg-type]

    with contextlib.ExitStack() as stack:
        runner = _runner(search, problem, tessellation, batched, devices, elsewhere)
        stack.enter_context(contextlib.closing(runner))
        checkpoints: Checkpoints | NoCheckpoints = NoCheckpoints()
        if out is not None:
            seeding = {"seeds": numbers} if batched else {"seed": numbers[0]}
            asked = describe(about or {}) | settings(search, archive, flat, elsewhere.described(problem)) | seeding
            config = with_versions({**asked, "iterations": int(iterations)})
            checkpoints = Checkpoints(
                stack.enter_context(Writer(out)), config, checkpoint_seconds, clock, found, runner.grain
            )
        beginning = (archive, flat, jnp.asarray(numbers if batched else numbers[0]))
        state, history = checkpoints.restore(search, archive, flat) or (runner.start(*beginning), History())
        interrupt = stack.enter_context(Interrupt(resumable=out is not None))
        state, stopped = _loop(
            runner,
            state,
            iterations,
            runner.chunk if chunk is None else chunk,
            until,
            stack.enter_context(Progress(iterations, enabled=progress, done=history.done)),
            interrupt,
            history,
            checkpoints,
        )
        checkpoints.keep(state, history, stopped, last=True)
    warn(state)
    result = found(state, history, stopped)
    if stopped == "terminated":
        raise Terminated(result)
    return result


def _runner(search: Search, problem: Any, tessellation: Grid, batched: bool, devices: Any, elsewhere: Elsewhere) -> Any:
    """What advances the search: `start` it, `launch` some iterations, `close` it."""
    if not elsewhere.wanted:
        if devices is None:
            return Compiled(search, problem, batched)
        return Sharded(search, problem, batched, mesh_of(devices))
    if devices is not None:
        raise ValueError("devices: they share what is compiled; evaluations elsewhere are shared by an executor")
    if batched:
        raise ValueError("seeds: evaluations outside the compiled program serve one seed at a time; give seed")
    return elsewhere.runner(search, problem, tessellation)


def _loop(
    runner: Any,
    state: SearchState,
    iterations: int,
    chunk: int,
    until: Callable[[dict[str, float]], bool] | None,
    bar: Progress,
    interrupt: Interrupt,
    history: History,
    checkpoints: Checkpoints | NoCheckpoints,
) -> tuple[SearchState, str | None]:
    """Launch after launch, from where the state is. The history grows as they end.

    Unless `until` must decide first, one launch is in flight while the last one is looked at. A state that is to be
    kept is not handed on before it is on disk, as its buffers are donated.
    """
    ahead = 0 if until is not None else 1
    flying: deque[tuple[int, Metrics, Tally]] = deque()
    launched, stopped = history.done, None

    def enough(done: int) -> bool:
        """`until` is asked at multiples of `chunk`, wherever launches end: when a run stops is no accident."""
        return until is not None and done > 0 and done % chunk == 0 and until({"iteration": done, **history.latest()})

    if launched < iterations and enough(launched):  # a run that ended so ends so again
        stopped = "until"
    health, pace, lap = Health(state.tally if launched else None), Pace(runner.grain), CompileClock()
    while flying or (launched < iterations and stopped is None):
        hold = bool(flying) and checkpoints.due(launched)
        if launched < iterations and stopped is None and not hold:
            size = min(pace.length, iterations - launched, checkpoints.before_view(launched))
            size = min(size, chunk - launched % chunk) if until else size
            state, rows, tally = runner.launch(state, size)
            launched += size
            flying.append((launched, rows, tally))
            if len(flying) <= ahead and launched < iterations:
                continue
        done, rows, tally = flying.popleft()
        rows, tally = jax.device_get((rows, tally))  # waits for the device
        size = done - history.done
        history.append(jax.tree.map(lambda values: values[:size], rows))  # noqa: B023
        pace.took(lap.read()[0], size)
        health.check(done, tally)
        checkpoints.passed(done)
        bar.update(done, history.latest())
        if interrupt.requested is not None:
            stopped = interrupt.reason
        elif enough(done):
            stopped = "until"
        elif not flying and launched < iterations and checkpoints.due(done):
            checkpoints.keep(state, history)
        lap = CompileClock()
    jax.block_until_ready(state)
    return state, stopped


class Pace:
    """How many iterations to launch at once: what takes about a second, so that signals need not wait for long."""

    SECONDS = 1.0

    def __init__(self, grain: int) -> None:
        self.grain = self.length = grain

    def took(self, seconds: float, iterations: int) -> None:
        fitting = int(self.SECONDS * iterations / max(seconds, 1e-9))
        length = min(fitting, 2 * self.length, LONGEST)
        self.length = max(self.grain, length - length % self.grain)


def compile_ahead(
    score: Score | Domain,
    emitter: Emitter,
    tessellation: Grid,
    *,
    x0: Any,
    seeds: Sequence[int],
) -> None:
    """Compile what `illuminate` will run for several seeds, without running it.

    `illuminate` finds the programs in JAX's persistent compilation cache, which must be on (`dqd.cache.enable`).
    """
    layout, flat = Layout.of(x0)
    domain, search = as_domain(score, layout), Search(emitter)
    archive = jax.eval_shape(lambda: Archive.empty(tessellation, flat.size, dtype=flat.dtype))
    arguments = (search, archive, flat, jnp.asarray(seeds), domain)
    state = jax.eval_shape(start_seeds, *arguments)
    start_seeds.lower(*arguments).compile()
    run_chunk.lower(search, state, domain, 1, batched=True).compile()
