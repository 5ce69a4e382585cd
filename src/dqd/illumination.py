"""`illuminate`: run a search from one function.

What the user gave is checked, a runner is chosen (`runners.runner` says what that is), and `runners.loop` turns it.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dqd.archives.archive import Archive
from dqd.compiler import cache
from dqd.domains.domain import Domain
from dqd.domains.function import as_domain, check_score
from dqd.emitters.emitter import Emitter, check_emitter
from dqd.inputs.arguments import check_arguments, check_initial_sigma
from dqd.inputs.layout import Layout
from dqd.result import Result, Results
from dqd.runners.checkpoints import Checkpoints, NoCheckpoints
from dqd.runners.compiled import Compiled, run_chunk, start_seeds
from dqd.runners.hosted import Elsewhere
from dqd.runners.loop import advance
from dqd.runners.progress import CompileClock, Interrupt, Progress
from dqd.runners.runner import Runner
from dqd.runners.sharded import Sharded, mesh_of
from dqd.runners.snapshot import settings
from dqd.search.health import warn
from dqd.search.history import History
from dqd.search.search import Search
from dqd.storage.record import with_versions
from dqd.storage.settings import with_about
from dqd.storage.writer import Writer
from dqd.tessellations.tessellation import Tessellation, check_tessellation
from dqd.types import Score


class Terminated(SystemExit):
    """SIGTERM came: the run is on disk, and the program ends with code 143 unless this is caught."""

    def __init__(self, result: Any) -> None:
        super().__init__(143)
        self.result = result


def illuminate(
    score: Score | Domain | None,
    emitter: Emitter,
    tessellation: Tessellation,
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
    check_emitter("emitter", emitter)
    check_tessellation(tessellation)
    check_initial_sigma(initial_sigma)
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

    with contextlib.ExitStack() as stack:
        runner = _runner(search, problem, tessellation, batched, devices, elsewhere)
        stack.enter_context(contextlib.closing(runner))
        checkpoints: Checkpoints | NoCheckpoints = NoCheckpoints()
        if out is not None:
            seeding = {"seeds": numbers} if batched else {"seed": numbers[0]}
            asked = settings(search, archive, flat, elsewhere.described(problem)) | seeding
            config = with_versions(with_about(about, {**asked, "iterations": int(iterations)}))
            writer = stack.enter_context(Writer(out, int(iterations)))
            checkpoints = Checkpoints(writer, config, checkpoint_seconds, clock, search, runner.grain)
        beginning = (archive, flat, jnp.asarray(numbers if batched else numbers[0]))
        state, history = checkpoints.restore(archive, flat) or (runner.start(*beginning), History())
        interrupt = stack.enter_context(Interrupt(resumable=out is not None))
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
        )
        checkpoints.keep(state, history, stopped, last=True)
    warn(state)
    found = (stopped, *clock.read(), layout, elsewhere.named(problem))
    result: Result | Results
    if batched:
        result = Results(search, state, history.arrays(), numbers, *found)
    else:
        result = Result(search, state, history.arrays(), numbers[0], *found)
    if stopped == "terminated":
        raise Terminated(result)
    return result


def _runner(
    search: Search, problem: Any, tessellation: Tessellation, batched: bool, devices: Any, elsewhere: Elsewhere
) -> Runner:
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


def compile_ahead(
    score: Score | Domain,
    emitter: Emitter,
    tessellation: Tessellation,
    *,
    x0: Any,
    seeds: Sequence[int],
) -> None:
    """Compile what `illuminate` will run for several seeds, without running it.

    `illuminate` finds the programs in JAX's persistent compilation cache.
    """
    layout, flat = Layout.of(x0)
    domain, search = as_domain(score, layout), Search(emitter)
    archive = jax.eval_shape(lambda: Archive.empty(tessellation, flat.size, dtype=flat.dtype))
    arguments = (search, archive, flat, jnp.asarray(seeds), domain)
    state = jax.eval_shape(start_seeds, *arguments)
    start_seeds.lower(*arguments).compile()
    run_chunk.lower(search, state, domain, 1, batched=True).compile()
