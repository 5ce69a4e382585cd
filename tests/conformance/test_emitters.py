"""Every emitter of the table has every property. All in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import (
    EMITTERS,
    ITERATIONS,
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    assert_same,
    evaluate,
    evaluate_with_jacobian,
    found,
    meaning,
    problem,
    search,
    start,
)

import dqd
from dqd.archives import Archive
from dqd.emitters.combine import Combined, Replicated
from dqd.run import start_seed
from dqd.search import Search, no_evaluation
from dqd.types import AddResult

pytestmark = pytest.mark.x64
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


# Compilation ----------------------------------------------------------------------------------------------------------

# One row of every class; op by op, each shape of each operation is compiled for itself, which takes long.
PLAIN = ("map_elites", "cma_me", "omg_mega", "cma_mega", "combine")


@pytest.mark.parametrize(
    "name", [name if name in PLAIN else pytest.param(name, marks=pytest.mark.long) for name in EMITTERS]
)
def test_compiled_equals_not_compiled(name):
    plain = Search(EMITTERS[name]())
    state = start_seed(plain, Archive.empty(sphere_grid, N), jnp.asarray(start()), jnp.asarray(0), problem(SPHERE))
    noise = jax.jit(Search.noise)
    for iteration in range(1, ITERATIONS + 1):
        drawn = noise(plain, state, iteration)
        with jax.disable_jit():
            state, _ = plain.step(state, sphere, drawn)
    assert_same(meaning(state), meaning(found(name).state), 1e-9)


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
    others = [
        search(name, seed=0, scale=1.1),
        search(name, seed=0, grid=dqd.Grid([-90, -80], [70, 60], [RESOLUTION] * 2)),
    ]
    assert compiled == []
    for other in others:  # they did run with these numbers
        assert not np.array_equal(other.archive.objective, found(name).archive.objective)


@every_emitter
def test_the_seed_decides_everything(name):
    assert_same(search(name, seed=0).state, found(name).state)
    assert not np.array_equal(found(name, seed=3).archive.solutions, found(name).archive.solutions)


@pytest.mark.parametrize(("name", "iterations", "chunk"), [
    ("map_elites", 20, 5), ("omg_mega", 20, 4), ("cma_me", 20, 5), ("cma_mega", 23, 7), ("cma_mega_adam", 20, 100),
])  # fmt: skip
def test_the_chunk_length_never_changes_a_bit(name, iterations, chunk):
    """23 iterations in chunks of 7 leave a remainder. AskTell, compared in tests/test_ask_tell.py, has chunks of one."""
    one = search(name, iterations=iterations, chunk=chunk)
    other = found(name, iterations=iterations)
    assert_same(one.state, other.state)
    assert_same(one.history, other.history)


# What the emitter learns from -----------------------------------------------------------------------------------------

half_step_noise = jax.jit(Search.noise)
half_step_ask_dqd = jax.jit(Search.ask_dqd)
half_step_tell_dqd = jax.jit(Search.tell_dqd)
half_step_ask = jax.jit(Search.ask)


def told(name):
    """A real round up to the emitter's tell: its state, the archive, what was drawn, and what became of it."""
    result = found(name)
    searching, state = result.search, result.state
    noise = half_step_noise(searching, state, state.iteration + 1)
    points = half_step_ask_dqd(searching, state, noise)
    evaluation = no_evaluation(sphere_grid, state.x0)
    if searching.emitter.num_points:
        evaluation = evaluate_with_jacobian(problem(SPHERE), points.solutions)
    state = half_step_tell_dqd(searching, state, points, evaluation)
    state, proposal = half_step_ask(searching, state, points, evaluation, noise)
    archive, judged = jax.jit(Archive.add)(
        state.archive, proposal.solutions, evaluate(problem(SPHERE), proposal.solutions)
    )
    return state.emitter, archive, proposal.drawn, judged


def permuted(emitter, drawn, result, random):
    """(drawn, result) with the samples of every emitter in another order, the same in both."""
    if isinstance(emitter, Combined):
        parts = zip(
            emitter.emitters, drawn, emitter._split([e.batch_size for e in emitter.emitters], result), strict=True
        )
        pairs = [permuted(*part, random) for part in parts]
        joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *(part for _, part in pairs))
        return tuple(part for part, _ in pairs), joined
    if isinstance(emitter, Replicated):
        copies = [
            permuted(
                emitter.emitter, *jax.tree.map(lambda leaf, i=i: leaf[i], (drawn, emitter._per_copy(result))), random
            )
            for i in range(emitter.copies)
        ]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *copies)
        return stacked[0], emitter._flat(stacked[1])
    order = random.permutation(emitter.batch_size)
    samples = {"coefficients", "samples"} & set(drawn)
    assert samples or not drawn
    drawn = {**drawn, **{name: drawn[name][order] for name in samples}} if samples else drawn
    return drawn, AddResult(result.status[order], result.value[order], result.cell[order])


@every_emitter
def test_tell_ignores_the_order_of_the_batch(name):
    emitter = EMITTERS[name]()
    state, archive, drawn, result = told(name)
    tell = jax.jit(type(emitter).tell)
    expected = tell(emitter, state, archive, drawn, result)
    for seed in range(3):
        got = tell(emitter, state, archive, *permuted(emitter, drawn, result, np.random.default_rng(seed)))
        assert_same(meaning(expected), meaning(got), 1e-12)


@pytest.mark.parametrize("name", ["cma_me", "cma_mega", "replicate_cma_mega"])
def test_tell_does_not_ignore_whose_result_it_was(name):
    """Results in another order than the samples teach something else: the test above would notice."""
    emitter = EMITTERS[name]()
    state, archive, drawn, result = told(name)
    expected = emitter.tell(state, archive, drawn, result)
    _, other = permuted(emitter, drawn, result, np.random.default_rng(0))
    got = emitter.tell(state, archive, drawn, other)
    with pytest.raises(AssertionError):
        assert_same(meaning(expected), meaning(got), 1e-12)


def test_copies_of_an_emitter_search_their_own_ways():
    thetas = np.asarray(found("replicate_cma_mega").state.emitter.theta)
    assert thetas.shape == (3, N)
    assert all(np.abs(thetas[i] - thetas[j]).max() > 1e-3 for i, j in [(0, 1), (0, 2), (1, 2)])


# What comes out -------------------------------------------------------------------------------------------------------


@every_emitter
def test_the_qd_score_never_falls_where_no_objective_is_below_its_offset(name):
    result = search(name, qd_score_offset=-1e6)  # the same as an objective that is never negative
    assert result.elites.objective.min() >= -1e6
    scores = result.history["qd_score"]
    assert scores.shape == (ITERATIONS,)
    assert (np.diff(scores) >= 0).all()
    assert scores[-1] > scores[0]


@every_emitter
@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_every_stored_solution_evaluates_to_what_is_stored_with_it(name, number):
    """To 1e-10, relative to the largest value: a batch of another size rounds differently. Cells equal, edges apart."""
    elites = found(name, number).elites
    again = evaluate(problem(number), elites.solutions)
    for stored, fresh in ((elites.objective, again.objective), (elites.measures, again.measures)):
        np.testing.assert_allclose(stored, fresh, rtol=0, atol=1e-10 * np.abs(stored).max())
    grid = PROBLEMS[number].grid(RESOLUTION)
    assert_cells(grid, elites.cell, np.asarray(again.measures), doubt=1e-9)
    assert len(elites) > 5


def assert_cells(grid, cells, measures, doubt):
    """Each row of measures lies in its cell, or within `doubt` of it, relative to the grid's range."""
    low, high, shape = (np.asarray(part, float) for part in (grid.lower, grid.upper, grid.shape))
    position = np.clip((measures + 1e-6 - low) / (high - low), 0, 1)
    index = np.stack(np.unravel_index(cells, grid.shape), axis=-1)
    assert (position >= index / shape - doubt).all()
    assert (position <= (index + 1) / shape + doubt).all()


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
    """SPEC B.0: points with a jacobian, sampled solutions, and the population before iteration 1."""
    assert (emitter.num_points, emitter.batch_size, emitter.initial_population) == (points, solutions, initial)
    state = jax.eval_shape(lambda: Search(emitter).init(Archive.empty(sphere_grid, N), jnp.zeros(N), jax.random.key(0)))
    noise = jax.eval_shape(lambda state: Search(emitter).noise(state, 1), state)
    assert jax.eval_shape(Search(emitter).ask_dqd, state, noise).solutions.shape == (points, N)
    assert jax.eval_shape(Search(emitter).ask_initial, state).shape == (initial, N)
