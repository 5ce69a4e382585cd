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

from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.checkpoints import Checkpoints, NoCheckpoints
from dqd.checks import as_domain, check_arguments, check_score, check_search
from dqd.compiled import Compiled, run_chunk, start_seeds
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
from dqd.search import Search, SearchState, StepInfo, Tally
from dqd.solutions import Layout
from dqd.types import Score
from dqd.writer import Writer

LONG_CHUNK, SHORT_CHUNK = 4.0, 2.0  # seconds: one that takes longer than the first is cut to about the second


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
    evaluation_chunk: int = 4,
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
    chunk: int = 250,
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
        evaluation_chunk: solutions per call of the evaluator. Workers come and go without changing the result; this
            number may change its rounding.
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
        until: called after every chunk with the metrics so far; True ends the run early.
        progress: show it (default), or not.
        chunk: iterations between two looks at the progress and at signals. Never changes the result.
        checkpoint_seconds: time between two checkpoints in `out`; longer where they would take more than 1 % of it.
            0 writes one after every chunk.
        about: words of your own for config.json.

    The first Ctrl-C returns what was found, with `result.stopped` set; the second one interrupts. With `out`, SIGTERM
    writes a checkpoint and ends the program with code 143.
    """
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
            checkpoints = Checkpoints(stack.enter_context(Writer(out)), config, checkpoint_seconds, clock, found)
        beginning = (archive, flat, jnp.asarray(numbers if batched else numbers[0]))
        state, history = checkpoints.restore(search, archive, flat) or (runner.start(*beginning), History())
        interrupt = stack.enter_context(Interrupt(resumable=out is not None))
        state, stopped = _loop(
            runner.launch,
            state,
            iterations,
            _chunk_length(iterations, min(chunk, runner.longest)),
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
    launch: Callable[[SearchState, int], tuple[SearchState, StepInfo, Tally]],
    state: SearchState,
    iterations: int,
    length: int,
    until: Callable[[dict[str, float]], bool] | None,
    bar: Progress,
    interrupt: Interrupt,
    history: History,
    checkpoints: Checkpoints | NoCheckpoints,
) -> tuple[SearchState, str | None]:
    """Chunk after chunk, from where the state is. The history grows as chunks end.

    Unless `until` must decide first, one chunk is in flight while the last one is looked at. A state that is to be kept
    is not handed on before it is on disk, as its buffers are donated.
    """
    ahead = 0 if until is not None else 1
    flying: deque[tuple[int, StepInfo, Tally]] = deque()
    launched, stopped = history.done, None
    health = Health(state.tally if launched else None)
    lap = CompileClock()
    while flying or (launched < iterations and stopped is None):
        hold = bool(flying) and checkpoints.due(launched)
        if launched < iterations and stopped is None and not hold:
            size = min(length, iterations - launched)
            state, infos, tally = launch(state, size)
            launched += size
            flying.append((launched, infos, tally))
            if len(flying) <= ahead and launched < iterations:
                continue
        done, infos, tally = flying.popleft()
        infos, tally = jax.device_get((infos, tally))  # waits for the device
        history.append(infos)
        length = _brisk(length, lap.read()[0])
        health.check(done, tally)
        checkpoints.passed(done)
        bar.update(done, history.latest())
        if interrupt.requested is not None:
            stopped = interrupt.reason
        elif until is not None and until({"iteration": done, **history.latest()}):
            stopped = "until"
        elif not flying and launched < iterations and checkpoints.due(done):
            checkpoints.keep(state, history)
        lap = CompileClock()
    jax.block_until_ready(state)
    return state, stopped


def compile_ahead(
    score: Score | Domain,
    emitter: Emitter,
    tessellation: Grid,
    *,
    x0: Any,
    iterations: int,
    seeds: Sequence[int],
    chunk: int = 250,
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
    run_chunk.lower(search, state, domain, length=_chunk_length(iterations, chunk), batched=True).compile()


def _chunk_length(iterations: int, chunk: int) -> int:
    """The largest divisor of `iterations` up to `chunk`, unless only small ones exist: a remainder compiles anew."""
    divisors = [size for size in range(1, min(chunk, iterations) + 1) if iterations % size == 0]
    best = max(divisors, default=1)
    return best if best * 4 >= chunk else min(chunk, max(iterations, 1))


def _brisk(length: int, seconds: float) -> int:
    """A shorter chunk, if the last one took so long that a signal would wait."""
    return max(1, int(length * SHORT_CHUNK / seconds)) if seconds > LONG_CHUNK else length
