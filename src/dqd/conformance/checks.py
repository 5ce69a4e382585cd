"""The properties, one function each."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives import Archive
from dqd.conformance.problems import (
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    evaluate,
    evaluate_with_jacobian,
    problem,
    start,
)
from dqd.conformance.same import assert_same, copied, expect, meaning
from dqd.conformance.searching import (
    CHUNK,
    ITERATIONS,
    Make,
    asking,
    found,
    listening,
    played,
    quick_to_compile,
    search,
)
from dqd.emitters.bandit import Bandit
from dqd.emitters.combine import Combined, Replicated
from dqd.emitters.emitter import check_emitter as check_methods
from dqd.emitters.rewards import Rewarded
from dqd.runners.compiled import run_chunk, start_seed
from dqd.search.search import Search
from dqd.search.walk import Walk
from dqd.storage import record
from dqd.tessellations import Grid
from dqd.types import replace

SEEDS = (3, 0, 5)
sphere, sphere_grid = PROBLEMS[SPHERE], PROBLEMS[SPHERE].grid(RESOLUTION)


def _check(property_of: Callable[[Make], None]) -> Callable[[Make], None]:
    """In float64, and quick to compile."""

    @functools.wraps(property_of)
    def check(make: Make) -> None:
        with jax.enable_x64(True), quick_to_compile():
            property_of(make)

    return check


# Precision ------------------------------------------------------------------------------------------------------------


@_check
def check_precision(make: Make) -> None:
    """A search has the precision of its start and of nothing else: whatever an iteration returns has its types."""
    for dtype in (jnp.float32, jnp.float64):  # traced only
        search, archive = Search(make()), Archive.empty(sphere_grid, N, dtype=dtype)
        state = jax.eval_shape(start_seed, search, archive, jnp.zeros(N, dtype), 0, sphere)
        after, _, _ = jax.eval_shape(functools.partial(run_chunk, batched=False), search, state, sphere, 1)
        for (path, before), then in zip(
            jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after), strict=True
        ):
            where = jax.tree_util.keystr(path)
            expect(before.dtype == then.dtype, f"{where} was {before.dtype} and became {then.dtype} by an iteration")
        held = jax.tree.leaves((after.emitter, after.archive.solutions))
        reals = {leaf.dtype for leaf in held if jnp.issubdtype(leaf.dtype, jnp.floating)}
        expect(reals == {np.dtype(dtype)}, f"a search in {dtype.__name__} holds numbers of {reals}")


# Compilation ----------------------------------------------------------------------------------------------------------


@_check
def check_not_compiled(make: Make) -> None:
    """Compiled and op by op, a search finds the same."""
    expected, plain, noise = found(make).state, Search(make()), jax.jit(Search.noise)
    state = start_seed(plain, Archive.empty(sphere_grid, N), jnp.asarray(start()), jnp.asarray(0), problem(SPHERE))
    for iteration in range(1, ITERATIONS + 1):
        drawn = noise(plain, state, jnp.asarray(iteration))
        with jax.disable_jit():
            state = plain.step(state, sphere, drawn)
    assert_same(meaning(expected), meaning(state), 1e-9)


@functools.cache
def side_by_side(make: Make) -> Any:
    return search(make, domain=sphere, seeds=SEEDS)


@_check
def check_seeds(make: Make) -> None:
    """Seeds side by side find what they find one after the other."""
    for i, seed in enumerate(SEEDS):
        one, other = found(make, seed=seed), side_by_side(make)[i]
        assert_same(meaning(one.state), meaning(other.state), 1e-9)
        assert_same(one.history, other.history, 1e-9)


@_check
def check_seeds_again(make: Make) -> None:
    """The same number of seeds gives the same bits, whatever their order, and needs no second program."""
    results = side_by_side(make)
    with listening() as compiled:
        again = search(make, domain=sphere, seeds=SEEDS)
        assert_same(results.state, again.state)
        backwards = search(make, domain=sphere, seeds=SEEDS[::-1])
    assert_same(np.asarray(results.state.archive.solutions)[::-1], np.asarray(backwards.state.archive.solutions))
    _expect_none(compiled)


@_check
def check_numbers(make: Make) -> None:
    """Another seed, other numbers of the emitter and other bounds of the grid compile nothing, and they matter."""
    expected = found(make)
    with listening() as compiled:
        search(make, seed=11)
        scaled = search(make, scale=1.1)
        moved = search(make, grid=Grid((-90, -80), (70, 60), (RESOLUTION, RESOLUTION)))
    _expect_none(compiled)
    for what, other in {"numbers 1.1 times as large": scaled, "another grid": moved}.items():
        same = np.array_equal(other.archive.objective, expected.archive.objective)
        expect(not same, f"with {what} the very same was found; does make(scale) use its argument?")


def _expect_none(compiled: list[str]) -> None:
    expect(
        compiled == [],
        f"compiled anew: {', '.join(compiled)}; a number that is marked static(), or of another type, does that",
    )


@_check
def check_seed(make: Make) -> None:
    """The seed decides everything: the same one gives the same bits, another one another archive."""
    assert_same(search(make, seed=0).state, found(make).state)
    same = np.array_equal(found(make, seed=3).archive.solutions, found(make).archive.solutions)
    expect(not same, "two seeds found the very same; random numbers must come from the key that `noise` is given")


# Interruptions, and loops of one's own --------------------------------------------------------------------------------


@_check
def check_resumed(make: Make) -> None:
    """A run that is stopped and resumed is the undisturbed one, byte by byte, by the very same program."""
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = Path(folder, "whole"), Path(folder, "parts")
        search(make, out=whole)
        stopped = search(make, out=parts, until=lambda metrics: metrics["iteration"] == CHUNK)
        with listening() as compiled:
            resumed = search(make, out=parts)
        there, here = _digests(parts), _digests(whole)
    iterations = (stopped.iterations, stopped.stopped, resumed.iterations)
    expect(iterations == (CHUNK, "until", ITERATIONS), f"iterations of both parts: {iterations}")
    expect(here.keys() == {record.METRICS, record.ARCHIVE, record.STATE}, f"files of a run: {sorted(here)}")
    expect(there == here, "a run in two parts left other files than the run in one")
    assert_same(resumed.state, found(make).state)
    assert_same(resumed.history, found(make).history)
    expect("jit(iterate)" not in compiled, "the second part was compiled anew; does `init` give the types of `tell`?")


def _digests(folder: Path) -> dict[str, str]:
    files = record.newest(folder, lambda checkpoint: checkpoint.manifest["files"])
    return {file: entry["sha256"] for file, entry in files.items() if file != record.TIMINGS}


@_check
def check_ask_tell(make: Make) -> None:
    """The loop of `AskTell` finds what the compiled runner finds, bit for bit."""
    for number in range(len(PROBLEMS)):
        expected = found(make, number, seed=7, iterations=30)
        result = played(asking(make, number, seed=7), number, iterations=30).result()
        assert_same(expected.state, result.state)
        assert_same(expected.history, result.history)
        ours, theirs = (each.summary() | {"seconds": 0, "compile_seconds": 0} for each in (result, expected))
        expect(ours == theirs, f"two summaries: {ours} and {theirs}")


# What the emitter learns from -----------------------------------------------------------------------------------------


def round_of(make: Make) -> tuple[Any, Archive, Any, Any]:
    """A real round up to the emitter's tell: its state, the archive, what was drawn, and what became of it."""
    walk = Walk(Search(make()), copied(found(make).state))
    points = walk.ask_dqd().solutions
    solutions = walk.tell_dqd(evaluate_with_jacobian(problem(SPHERE), points) if len(points) else walk.nothing)
    state, proposal = walk.state, walk.proposal
    assert proposal is not None
    evaluation = evaluate(problem(SPHERE), solutions)
    archive, result = jax.jit(Archive.add)(state.archive, solutions, evaluation)
    told = replace(result, objective=evaluation.objective, measures=evaluation.measures)
    return state.emitter, archive, *jax.tree.map(np.asarray, (proposal.drawn.unpacked(), told))


@jax.jit
def tell(emitter: Any, state: Any, archive: Archive, drawn: Any, result: Any) -> Any:
    return emitter.tell(state, archive, drawn, result)


def permuted(emitter: Any, drawn: Any, result: Any, random: np.random.Generator) -> tuple[Any, Any]:
    """(drawn, result) with the samples of every single emitter in another order, the same in both.

    Of what was drawn, arrays with as many rows as the batch belong to the samples.
    """
    if isinstance(emitter, Combined):
        results = emitter._split([one.batch_size for one in emitter.emitters], result)
        pairs = [permuted(*part, random) for part in zip(emitter.emitters, drawn, results, strict=True)]
        return tuple(drawn for drawn, _ in pairs), jax.tree.map(_join, *(result for _, result in pairs))
    if isinstance(emitter, Replicated):
        results = emitter._per_copy(result)
        copies = [jax.tree.map(lambda leaf, i=i: leaf[i], (drawn, results)) for i in range(emitter.copies)]
        pairs = [permuted(emitter.emitter, own, told, random) for own, told in copies]
        drawn, result = jax.tree.map(lambda *leaves: np.stack(leaves), *pairs)
        return drawn, emitter._flat(result)
    if isinstance(emitter, Bandit):
        one = emitter.pool.emitters[0]
        pairs = [permuted(one, own, emitter._of_place(i, result), random) for i, own in enumerate(drawn)]
        return tuple(drawn for drawn, _ in pairs), jax.tree.map(_join, *(result for _, result in pairs))
    if isinstance(emitter, Rewarded):
        told = result, drawn["candidates"]
        own, (result, candidates) = permuted(emitter.emitter, drawn["emitter"], told, random)
        return {**drawn, "emitter": own, "candidates": candidates}, result
    order = random.permutation(emitter.batch_size)
    return jax.tree.map(lambda leaf: leaf[order] if leaf.shape[:1] == order.shape else leaf, (drawn, result))


def _join(*leaves: Any) -> Any:
    return np.concatenate(leaves)


@_check
def check_order(make: Make) -> None:
    """What `tell` learns does not depend on the order of the batch."""
    emitter, (state, archive, drawn, result) = make(), round_of(make)
    expected = tell(emitter, state, archive, drawn, result)
    for seed in range(3):
        got = tell(emitter, state, archive, *permuted(emitter, drawn, result, np.random.default_rng(seed)))
        assert_same(meaning(expected), meaning(got), 1e-12)


# What comes out -------------------------------------------------------------------------------------------------------


@_check
def check_qd_score(make: Make) -> None:
    """The QD-score never falls where no objective is below its offset, and it rises."""
    result = search(make, qd_score_offset=-1e6)  # counts what the same search with objective + 1e6 >= 0 would
    scores = result.history["qd_score"]
    expect(result.elites.objective.min() >= -1e6, "an elite is worse than any sensible one")
    expect(scores.shape == (ITERATIONS,), f"{ITERATIONS} iterations left {scores.shape} scores")
    expect((np.diff(scores) >= 0).all(), f"the QD-score fell: {scores}")
    expect(scores[-1] > scores[0], f"{ITERATIONS} iterations found nothing new: the QD-score stayed at {scores[0]}")


@_check
def check_elites(make: Make) -> None:
    """Every stored solution evaluates to what is stored with it, and lies in its cell."""
    for number in range(len(PROBLEMS)):
        elites = found(make, number).elites
        again = evaluate(problem(number), elites.solutions)
        for stored, fresh in ((elites.objective, again.objective), (elites.measures, again.measures)):
            # To 1e-10 of the largest value, since a batch of another size rounds differently.
            np.testing.assert_allclose(stored, fresh, rtol=0, atol=1e-10 * np.abs(stored).max())
        _expect_in_cells(PROBLEMS[number].grid(RESOLUTION), np.asarray(again.measures), elites.cell)
        expect(len(elites) > 5, f"{ITERATIONS} iterations found {len(elites)} elites; expected more than 5")


def _expect_in_cells(grid: Grid, measures: np.ndarray, cells: np.ndarray) -> None:
    """Each row of measures lies in its cell, or within 1e-9 of the grid's range from it."""
    low, high, shape = (np.asarray(part, float) for part in (grid.lower, grid.upper, grid.shape))
    position = np.clip((measures + 1e-6 - low) / (high - low), 0, 1)  # the 1e-6 is the archive's own
    index = np.stack(np.unravel_index(cells, grid.shape), axis=-1)
    inside = (position >= index / shape - 1e-9) & (position <= (index + 1) / shape + 1e-9)
    expect(inside.all(), f"elites outside their cells: {cells[~inside.all(axis=-1)]}")


@_check
def check_counts(make: Make) -> None:
    """Evaluations and gradients are those that the emitter says it makes, and all its numbers are finite."""
    emitter, result = make(), found(make)
    evaluations = emitter.initial_population + ITERATIONS * (emitter.num_points + emitter.batch_size)
    counted, said = (result.evaluations, result.gradients), (evaluations, ITERATIONS * emitter.num_points)
    expect(counted == said, f"evaluations and gradients: {said} by the emitter's sizes, {counted} counted")
    expect(result.iterations == ITERATIONS, f"{ITERATIONS} iterations were asked for, {result.iterations} made")
    expect(result.nonfinite == 0, f"{result.nonfinite} evaluations or jacobians were NaN or infinite")
    cells = round(result.coverage / 100 * RESOLUTION**2)
    expect(len(result.archive) == len(result.elites) == cells, f"{len(result.elites)} elites in {cells} cells")


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_precision,
    check_not_compiled,
    check_seeds,
    check_seeds_again,
    check_numbers,
    check_seed,
    check_resumed,
    check_ask_tell,
    check_order,
    check_qd_score,
    check_elites,
    check_counts,
)


def check_emitter(make: Make) -> None:
    """All of CHECKS, one after the other; `make(scale=1.0)` is the emitter, its numbers multiplied by `scale`.

    >>> def test_mine():
    ...     conformance.check_emitter(lambda scale=1.0: dqd.map_elites(0.5 * scale, batch_size=12))
    """
    check_methods("make()", make())
    for check in CHECKS:
        check(make)
