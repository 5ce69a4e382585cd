"""Every emitter of the table has every property. All in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import (
    CHUNK,
    EMITTERS,
    ITERATIONS,
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    asking,
    assert_same,
    copied,
    evaluate,
    evaluate_with_jacobian,
    found,
    meaning,
    played,
    problem,
    search,
    start,
)

import dqd
from dqd.archives import Archive
from dqd.emitters.combine import Combined, Replicated
from dqd.runners.compiled import run_chunk, start_seed
from dqd.search.search import Search
from dqd.search.walk import Walk
from dqd.storage import record

pytestmark = [pytest.mark.x64, pytest.mark.quick]
every_emitter = pytest.mark.parametrize("name", EMITTERS)
SEEDS = (3, 0, 5)
sphere, sphere_grid = PROBLEMS[SPHERE], PROBLEMS[SPHERE].grid(RESOLUTION)


@pytest.fixture
def compiled():
    """The programs compiled since the test began."""
    programs = []

    def listen(event, seconds, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append(about.get("fun_name", "?"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield programs
    jax.monitoring.unregister_event_duration_listener(listen)


# Precision ------------------------------------------------------------------------------------------------------------


@every_emitter
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_search_has_the_precision_of_its_start_and_of_nothing_else(name, dtype):
    """Traced only: whatever an iteration returns has the types that it was given."""
    search, archive = Search(EMITTERS[name]()), Archive.empty(sphere_grid, N, dtype=dtype)
    state = jax.eval_shape(start_seed, search, archive, jnp.zeros(N, dtype), 0, sphere)
    after, _, _ = jax.eval_shape(functools.partial(run_chunk, batched=False), search, state, sphere, 1)
    assert jax.tree.map(lambda leaf: leaf.dtype, after) == jax.tree.map(lambda leaf: leaf.dtype, state)
    assert after.archive.solutions.dtype == dtype


# Compilation ----------------------------------------------------------------------------------------------------------

# Op by op, each shape of each operation is compiled for itself: a few rows here, all others with -m long.
FEW = ("map_elites", "omg_mega", "cma_mega")


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(x, marks=pytest.mark.long) for x in EMITTERS if x not in FEW)])
def test_compiled_equals_not_compiled(name):
    expected, plain, noise = found(name).state, Search(EMITTERS[name]()), jax.jit(Search.noise)
    state = start_seed(plain, Archive.empty(sphere_grid, N), jnp.asarray(start()), jnp.asarray(0), problem(SPHERE))
    for iteration in range(1, ITERATIONS + 1):
        drawn = noise(plain, state, iteration)
        with jax.disable_jit():
            state = plain.step(state, sphere, drawn)
    assert_same(meaning(expected), meaning(state), 1e-9)


@functools.cache
def side_by_side(name):
    return search(name, domain=sphere, seeds=SEEDS)


@every_emitter
def test_seeds_side_by_side_equal_one_after_the_other(name):
    for i, seed in enumerate(SEEDS):
        one, other = found(name, seed=seed), side_by_side(name)[i]
        assert_same(meaning(one.state), meaning(other.state), 1e-9)
        assert_same(one.history, other.history, 1e-9)


@every_emitter
def test_the_same_number_of_seeds_gives_the_same_bits_and_no_second_program(name, compiled):
    results = side_by_side(name)
    compiled.clear()
    again = search(name, domain=sphere, seeds=SEEDS)
    assert_same(results.state, again.state)
    backwards = search(name, domain=sphere, seeds=SEEDS[::-1])
    assert_same(np.asarray(results.state.archive.solutions)[::-1], np.asarray(backwards.state.archive.solutions))
    assert compiled == []


@every_emitter
def test_another_seed_other_numbers_and_other_bounds_compile_nothing(name, compiled):
    found(name)
    compiled.clear()
    search(name, seed=11)
    others = search(name, scale=1.1), search(name, grid=dqd.Grid([-90, -80], [70, 60], [RESOLUTION] * 2))
    assert compiled == []
    for other in others:  # they did run with these numbers
        assert not np.array_equal(other.archive.objective, found(name).archive.objective)


@pytest.mark.parametrize("name", ["map_elites", "cma_mega"])
def test_no_number_of_iterations_compiles_anything(name, compiled):
    found(name)
    compiled.clear()
    whole = search(name, iterations=60)
    for iterations in [1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 24, 25, 26, 29, 31, 37, 41, 49, 50, 59]:
        history = search(name, iterations=iterations, chunk=iterations).history
        assert_same(history, {name: values[:iterations] for name, values in whole.history.items()})
    assert compiled == []


@every_emitter
def test_the_seed_decides_everything(name):
    assert_same(search(name, seed=0).state, found(name).state)
    assert not np.array_equal(found(name, seed=3).archive.solutions, found(name).archive.solutions)


@every_emitter
def test_a_run_that_is_stopped_and_resumed_is_the_undisturbed_one(name, tmp_path, compiled):
    def digests(folder):
        files = record.newest(folder, lambda checkpoint: checkpoint.manifest["files"])
        return {file: entry["sha256"] for file, entry in files.items() if file != record.TIMINGS}

    search(name, out=tmp_path / "whole")
    stopped = search(name, out=tmp_path / "parts", until=lambda metrics: metrics["iteration"] == CHUNK)
    compiled.clear()
    resumed = search(name, out=tmp_path / "parts")
    assert (stopped.iterations, stopped.stopped, resumed.iterations) == (CHUNK, "until", ITERATIONS)
    assert digests(tmp_path / "whole").keys() == {record.METRICS, record.ARCHIVE, record.STATE}
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    assert_same(resumed.state, found(name).state)
    assert_same(resumed.history, found(name).history)
    assert "run_chunk" not in compiled  # the very same program went on


@pytest.mark.parametrize(("name", "chunk"), [("map_elites", 5), ("cma_mega", 20)])
def test_the_chunk_length_never_changes_a_bit(name, chunk):
    """For all others: the host loop, whose chunks have length 1, equals the runner bit for bit, as tested below."""
    one, other = search(name, chunk=chunk), found(name)
    assert_same(one.state, other.state)
    assert_same(one.history, other.history)


def test_a_last_chunk_that_is_shorter_never_changes_a_bit():
    history = search("map_elites", iterations=23, chunk=7).history  # 7 + 7 + 7 + 2
    assert_same({name: values[:ITERATIONS] for name, values in history.items()}, found("map_elites").history)
    assert len(history["qd_score"]) == 23


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
@pytest.mark.parametrize("name", EMITTERS)
def test_the_host_loop_equals_the_compiled_runner_bit_for_bit(name, number):
    expected = found(name, number, seed=7, iterations=30)
    result = played(asking(name, number, seed=7), number, iterations=30).result()
    assert_same(expected.state, result.state)
    assert_same(expected.history, result.history)
    assert result.summary() | {"seconds": 0, "compile_seconds": 0} == (
        expected.summary() | {"seconds": 0, "compile_seconds": 0}
    )


# What the emitter learns from -----------------------------------------------------------------------------------------


def round_of(name):
    """A real round up to the emitter's tell: its state, the archive, what was drawn, and what became of it."""
    hosted = asking(name)
    hosted._walk, hosted._initial_left = Walk(hosted._search, copied(found(name).state)), False
    points = hosted.ask_dqd()
    if len(points):
        told = evaluate_with_jacobian(problem(SPHERE), points)
        hosted.tell_dqd(told.objective, told.measures, told.jacobian)
    solutions = hosted.ask()
    archive, result = jax.jit(Archive.add)(hosted.archive, solutions, evaluate(problem(SPHERE), solutions))
    return hosted._walk.state.emitter, archive, hosted._walk.proposal.drawn, result


@jax.jit
def tell(emitter, state, archive, drawn, result):
    return emitter.tell(state, archive, drawn, result)


def permuted(emitter, drawn, result, random):
    """(drawn, result) with the samples of every single emitter in another order, the same in both."""
    if isinstance(emitter, Combined):
        results = emitter._split([one.batch_size for one in emitter.emitters], result)
        pairs = [permuted(*part, random) for part in zip(emitter.emitters, drawn, results, strict=True)]
        return tuple(drawn for drawn, _ in pairs), jax.tree.map(join, *(result for _, result in pairs))
    if isinstance(emitter, Replicated):
        results = emitter._per_copy(result)
        copies = [jax.tree.map(lambda leaf, i=i: leaf[i], (drawn, results)) for i in range(emitter.copies)]
        pairs = [permuted(emitter.emitter, *copy, random) for copy in copies]
        drawn, result = jax.tree.map(lambda *leaves: jnp.stack(leaves), *pairs)
        return drawn, emitter._flat(result)
    order = random.permutation(emitter.batch_size)
    samples = {"coefficients", "samples"} & set(drawn)
    assert samples or not drawn
    drawn = {**drawn, **{name: drawn[name][order] for name in samples}} if samples else drawn
    return drawn, jax.tree.map(lambda leaf: leaf[order], result)


def join(*leaves):
    return jnp.concatenate(leaves)


@every_emitter
def test_tell_ignores_the_order_of_the_batch(name):
    emitter, (state, archive, drawn, result) = EMITTERS[name](), round_of(name)
    expected = tell(emitter, state, archive, drawn, result)
    for seed in range(3):
        got = tell(emitter, state, archive, *permuted(emitter, drawn, result, np.random.default_rng(seed)))
        assert_same(meaning(expected), meaning(got), 1e-12)


@pytest.mark.parametrize("name", ["cma_me", "cma_mega"])
def test_tell_does_not_ignore_whose_result_it_was(name):
    """Results in another order than the samples teach something else: the test above would notice."""
    emitter, (state, archive, drawn, result) = EMITTERS[name](), round_of(name)
    _, wrong = permuted(emitter, drawn, result, np.random.default_rng(0))
    expected, got = (tell(emitter, state, archive, drawn, judged) for judged in (result, wrong))
    assert np.abs(meaning(expected).strategy["mean"] - meaning(got).strategy["mean"]).max() > 1e-3


def test_copies_of_an_emitter_search_their_own_ways():
    thetas = np.asarray(found("replicate_cma_mega").state.emitter.theta)
    assert thetas.shape == (3, N)
    assert all(np.abs(thetas[i] - thetas[j]).max() > 1e-3 for i, j in [(0, 1), (0, 2), (1, 2)])


# What comes out -------------------------------------------------------------------------------------------------------


@every_emitter
def test_the_qd_score_never_falls_where_no_objective_is_below_its_offset(name):
    result = search(name, qd_score_offset=-1e6)  # counts what the same search with objective + 1e6 >= 0 would
    assert result.elites.objective.min() >= -1e6
    scores = result.history["qd_score"]
    assert scores.shape == (ITERATIONS,)
    assert (np.diff(scores) >= 0).all()
    assert scores[-1] > scores[0]


@every_emitter
@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_every_stored_solution_evaluates_to_what_is_stored_with_it(name, number):
    """To 1e-10 of the largest value, since a batch of another size rounds differently."""
    elites = found(name, number).elites
    again = evaluate(problem(number), elites.solutions)
    for stored, fresh in ((elites.objective, again.objective), (elites.measures, again.measures)):
        np.testing.assert_allclose(stored, fresh, rtol=0, atol=1e-10 * np.abs(stored).max())
    assert_in_cells(PROBLEMS[number].grid(RESOLUTION), np.asarray(again.measures), elites.cell)
    assert len(elites) > 5


def assert_in_cells(grid, measures, cells):
    """Each row of measures lies in its cell, or within 1e-9 of the grid's range from it."""
    low, high, shape = (np.asarray(part, float) for part in (grid.lower, grid.upper, grid.shape))
    position = np.clip((measures + 1e-6 - low) / (high - low), 0, 1)  # the 1e-6 is the archive's own
    index = np.stack(np.unravel_index(cells, grid.shape), axis=-1)
    assert (position >= index / shape - 1e-9).all()
    assert (position <= (index + 1) / shape + 1e-9).all()


@every_emitter
def test_evaluations_and_gradients_are_counted(name):
    emitter, result = EMITTERS[name](), found(name)
    assert result.evaluations == emitter.initial_population + ITERATIONS * (emitter.num_points + emitter.batch_size)
    assert result.gradients == ITERATIONS * emitter.num_points
    assert (result.iterations, result.nonfinite) == (ITERATIONS, 0)
    assert len(result.archive) == len(result.elites) == round(result.coverage / 100 * RESOLUTION**2)


@pytest.mark.parametrize(
    ("emitter", "points", "solutions", "initial"),
    [
        (dqd.random_sampling(), 0, 36, 0),
        (dqd.map_elites(0.5), 0, 36, 100),
        (dqd.map_elites_line(0.5, 0.2), 0, 36, 100),
        (dqd.cma_me(0.5), 0, 36, 0),
        (dqd.og_map_elites(0.5, 0.5), 18, 18, 100),
        (dqd.og_map_elites_line(0.5, 0.2, 0.5), 18, 18, 100),
        (dqd.og_map_elites(0.5, 0.5, independent=True), 12, 24, 100),
        (dqd.og_map_elites_line(0.5, 0.2, 0.5, independent=True), 12, 24, 100),
        (dqd.og_map_elites(0.5, 0.5, independent=True, batch_size=48, stepped=12), 12, 36, 100),
        (dqd.og_map_elites_line(0.5, 0.2, 0.5, independent=True, batch_size=48, stepped=12), 12, 36, 100),
        (dqd.omg_mega(10.0), 18, 18, 100),
        (dqd.omg_mega(0.5, normalize=False), 18, 18, 100),
        (dqd.cma_mega(10.0), 1, 35, 0),
        (dqd.cma_mega_adam(10.0), 1, 35, 0),
        (dqd.replicate(dqd.cma_mega(10.0), 3), 3, 105, 0),
        (dqd.combine(dqd.cma_mega(10.0), dqd.map_elites(0.5)), 1, 71, 100),
    ],
)
def test_the_budget_is_the_papers(emitter, points, solutions, initial):
    """Points with a jacobian, sampled solutions, and the population before iteration 1."""
    assert (emitter.num_points, emitter.batch_size, emitter.initial_population) == (points, solutions, initial)
    paper = Search(emitter)
    state = jax.eval_shape(lambda: paper.init(Archive.empty(sphere_grid, N), jnp.zeros(N), jax.random.key(0)))
    noise = jax.eval_shape(lambda state: paper.noise(state, 1), state)
    assert jax.eval_shape(paper.ask_dqd, state, noise).solutions.shape == (points, N)
    assert jax.eval_shape(paper.ask_initial, state).shape == (initial, N)
