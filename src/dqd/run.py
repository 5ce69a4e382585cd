"""`illuminate`: run a search from one function.

A runner advances the search by a chunk of iterations: compiled on one device (`compiled`), or on several (`devices`),
or on the host around evaluations that happen elsewhere (`interop.hosted`). Between chunks the host shows progress,
listens for Ctrl-C and decides whether to go on.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.grid import Grid
from dqd.checkpoints import Checkpoints, NoCheckpoints
from dqd.compiled import Compiled, run_chunk, start_seeds
from dqd.describe import describe
from dqd.devices import Sharded, mesh_of
from dqd.domains.domain import Domain, FunctionDomain
from dqd.emitters.emitter import Emitter, check_emitter
from dqd.history import History
from dqd.interop.hosted import Elsewhere
from dqd.progress import CompileClock, Interrupt, Progress
from dqd.record import with_versions
from dqd.result import Result, Results, settings
from dqd.search import Search, SearchState, StepInfo, Tally
from dqd.solutions import Layout, OnFlat
from dqd.types import Score
from dqd.writer import Writer

LONG_CHUNK, SHORT_CHUNK = 4.0, 2.0  # seconds: one that takes longer than the first is cut to about the second
JAX_ONLY = (
    "score is compiled, so it must use jax.numpy and decide with jnp.where instead of `if`; "
    "for a function of NumPy or PyTorch give evaluator= instead"
)
CLAMPED_SHARE = 0.25  # warn when more of the measures than this lie outside the grid


class NonFiniteError(RuntimeError):
    """Most evaluations were not finite."""


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
    _check_arguments(iterations, seed, seeds, chunk)
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
    _warn(state)
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
    health = _Health(state.tally if launched else None)
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


class _Health:
    """Stops a run of which most evaluations are not finite, or none of the jacobians."""

    WINDOW = 1000  # evaluations

    def __init__(self, tally: Tally | None) -> None:
        """What was before is not looked at. Of a new run, nothing was: the initial population counts."""
        self.marks = deque([_figures(tally) if tally else (0, 0, 0, 0)])

    def check(self, done: int, tally: Tally) -> None:
        self.marks.append(_figures(tally))
        while len(self.marks) > 2 and self.marks[-1][0] - self.marks[1][0] >= self.WINDOW:
            self.marks.popleft()
        lately = tuple(now - then for then, now in zip(self.marks[0], self.marks[-1], strict=True))
        words = _complaint(*lately)
        if words and lately[0] >= self.WINDOW:
            raise NonFiniteError(f"iteration {done:,}: {words}")


def _complaint(evaluations: int, nonfinite: int, jacobians: int, lost: int) -> str:
    """What is wrong with these numbers of evaluations: nothing is an empty string."""
    if nonfinite > evaluations / 2:
        return (
            f"{nonfinite:,} of the last {evaluations:,} evaluations were NaN or infinite. "
            "Check score(x0) and, with dqd.check_jacobian, its gradient; a smaller sigma keeps samples nearer to x0"
        )
    if 0 < jacobians == lost:
        return (
            f"none of the last {jacobians:,} jacobians was finite, although the scores were: no gradient can be "
            "followed. dqd.check_jacobian(score, x0) says which row is wrong; a square root or a norm at 0 is a "
            "frequent cause, guard it or start elsewhere"
        )
    return ""


def _figures(tally: Tally) -> tuple[int, int, int, int]:
    return int(tally.evaluations), tally.nonfinite, int(tally.gradients), int(tally.lost_jacobians)


def _chunk_length(iterations: int, chunk: int) -> int:
    """The largest divisor of `iterations` up to `chunk`, unless only small ones exist: a remainder compiles anew."""
    divisors = [size for size in range(1, min(chunk, iterations) + 1) if iterations % size == 0]
    best = max(divisors, default=1)
    return best if best * 4 >= chunk else min(chunk, max(iterations, 1))


def _brisk(length: int, seconds: float) -> int:
    """A shorter chunk, if the last one took so long that a signal would wait."""
    return max(1, int(length * SHORT_CHUNK / seconds)) if seconds > LONG_CHUNK else length


def as_domain(score: Score | Domain | None, layout: Layout) -> Domain:
    """A domain of flat vectors from whatever the user gave."""
    if isinstance(score, Domain):
        _check_fields(score)
        return score
    if isinstance(score, type) and issubclass(score, Domain):
        raise TypeError(f"score: got the class {score.__name__}; make one first, {score.__name__}(...)")
    if hasattr(score, "evaluate"):
        raise TypeError(
            "score: expected a function of jax.numpy or a dqd.Domain, which illuminate compiles; "
            "for an evaluator with arrays of its own, give evaluator= or use dqd.AskTell"
        )
    if not callable(score):
        raise TypeError(f"score: expected a function x -> (objective, measures), got {type(score).__name__}")
    function: Score = score  # type: ignore[assignment]
    return FunctionDomain(function if layout.is_flat else OnFlat(function, layout))


def _check_fields(domain: Domain) -> None:
    """All that a domain holds is data, or marked as static."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(domain)[0]:
        if leaf is domain:
            raise TypeError(f"score: the class {type(domain).__name__} needs the decorator @dqd.types.pytree")
        if not isinstance(leaf, bool | int | float | np.generic | np.ndarray | Array):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise TypeError(
                f"score: {type(domain).__name__}.{name} is no array but {type(leaf).__name__}; "
                "mark such a field as part of the program: `name: type = dqd.types.static()`"
            )


def check_score(domain: Domain, x0: Array, tessellation: Grid) -> None:
    """Trace the score once and say in words what does not fit."""
    try:
        outputs = jax.eval_shape(domain.score, x0)
    except NotImplementedError:
        raise TypeError(f"score: the class {type(domain).__name__} must define score(self, x)") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        words, *_ = str(error).splitlines() or [type(error).__name__]
        traced = isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError) or "Tracer" in words
        hint = f". {JAX_ONLY}" if traced else ""
        kind = next(kind for kind in (TypeError, ValueError, AttributeError, IndexError) if isinstance(error, kind))
        raise kind(f"score: failed on a solution of shape {x0.shape}: {words.rstrip('.')}{hint}") from error
    if not isinstance(outputs, tuple) or [hasattr(part, "shape") for part in outputs] != [True, True]:
        raise TypeError("score: expected two arrays, a plain `return objective, measures` with measures of shape (k,)")
    objective, measures = outputs
    k = tessellation.num_measures
    if objective.shape != ():
        raise ValueError(
            f"score: the objective must be one number per solution, shape (), got {objective.shape}; "
            "score is given a single solution, batches are made by dqd"
        )
    if measures.shape != (k,):
        raise ValueError(
            f"score: expected measures of shape ({k},), as many as the grid has axes, got {measures.shape}"
        )
    for name, output in (("objective", objective), ("measures", measures)):
        if not jnp.issubdtype(output.dtype, jnp.floating):
            raise TypeError(
                f"score: {name} must be real numbers that can be differentiated, got {output.dtype}; "
                "if the algorithm needs no gradients, .astype(float) is enough"
            )


def _check_arguments(iterations: int, seed: Any, seeds: Any, chunk: int) -> None:
    for name, number, least in (("iterations", iterations, 0), ("chunk", chunk, 1)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number < 2**31:
            raise ValueError(f"{name}: expected a whole number from {least} to 2**31 - 1, got {number!r}")
    if seed is not None and seeds is not None:
        raise ValueError("seed and seeds: give one of them")
    if seeds is not None and not hasattr(seeds, "__len__"):
        raise TypeError(f"seeds: expected a list of whole numbers such as range(20), got {type(seeds).__name__}")
    for number in [0 if seed is None else seed] if seeds is None else seeds:
        check_seed(number)
    if seeds is not None and len(seeds) == 0:
        raise ValueError("seeds: expected at least one seed")
    if seeds is not None and len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds: equal seeds give equal runs; expected distinct ones, got {list(seeds)}")


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
        raise ValueError(f"seed: expected a whole number from 0 to 2**31 - 1, got {seed!r}")


def check_search(emitter: Any, tessellation: Any, initial_sigma: Any) -> None:
    """The emitter, the grid and the initial spread are what they should be."""
    check_emitter("emitter", emitter)
    if not isinstance(tessellation, Grid):
        raise TypeError(f"tessellation: expected a dqd.Grid, got {type(tessellation).__name__}")
    if not isinstance(initial_sigma, Real) or not 0 <= float(initial_sigma) < math.inf:
        raise ValueError(f"initial_sigma: expected a finite number, at least 0, got {initial_sigma!r}")


def _warn(state: SearchState) -> None:
    """What a finished run should not be silent about. A run too short to be stopped may have bad numbers."""
    words = _complaint(*_figures(state.tally))
    if words:
        warnings.warn(words, stacklevel=3)
    share = int(state.archive.clamped) / max(int(state.archive.judged), 1)
    if share > CLAMPED_SHARE:
        warnings.warn(
            f"{share:.0%} of the measures lay outside the grid and were moved to its border cells; "
            "widen lower and upper unless that is meant",
            stacklevel=3,
        )
