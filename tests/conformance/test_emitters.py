"""Every emitter of the table has every property. All in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import EMITTERS, ITERATIONS, PROBLEMS, RESOLUTION, SPHERE, N, assert_same, found, meaning, search

import dqd
from dqd.archives import Archive
from dqd.conformance import CHECKS
from dqd.conformance.checks import check_ask_tell, check_not_compiled, permuted, round_of, tell
from dqd.conformance.searching import listening
from dqd.search.search import Search

pytestmark = pytest.mark.x64
sphere_grid = PROBLEMS[SPHERE].grid(RESOLUTION)

# One row of each kind here, all others with -m long but for what finds most: the two loops beside each other. Those
# agree to the bit as XLA compiles them by itself (`exact`, of each kind one row), most rows even if compiled quickly.
KINDS = ("cma_me", "omg_mega", "cma_mega", "targeting", "replicate_cma_mega", "combine")
# Of those loops, rows whose parts stand in other rows wait for -m long, too.
TWINS = (
    *("map_elites_line", "og_map_elites_line", "og_line_independent", "omg_mega_unnormalized", "random_direction"),
    *("objective_mega", "cma_mae", "dds", "dms", "replicate_cma_me", "replicate_targeting"),
)
# Op by op, each shape of each operation is compiled for itself.
FEW = ("cma_mega",)


def row(name, check):
    looped = EMITTERS.keys() - TWINS
    long = name not in (FEW if check is check_not_compiled else looped if check is check_ask_tell else KINDS)
    marks = [pytest.mark.long] * long + [pytest.mark.exact] * (check is check_ask_tell and name in KINDS)
    return pytest.param(EMITTERS[name], check, id=f"{name}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("make", "check"), [row(name, check) for name in EMITTERS for check in CHECKS])
def test_every_emitter_keeps(make, check):
    check(make)


# Compilation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["map_elites", "cma_mega"])
def test_no_number_of_iterations_compiles_anything(name):
    found(name)
    with listening() as compiled:
        whole = search(name, iterations=60)
        for iterations in [1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 24, 25, 26, 29, 31, 37, 41, 49, 50, 59]:
            history = search(name, iterations=iterations, chunk=iterations).history
            assert_same(history, {name: values[:iterations] for name, values in whole.history.items()})
    assert compiled == []


@pytest.mark.parametrize(("name", "chunk"), [("map_elites", 5), ("cma_mega", 20)])
def test_the_chunk_length_never_changes_a_bit(name, chunk):
    """For all others check_ask_tell: the host loop, whose chunks have length 1, equals the runner bit for bit."""
    one, other = search(name, chunk=chunk), found(name)
    assert_same(one.state, other.state)
    assert_same(one.history, other.history)


def test_a_last_chunk_that_is_shorter_never_changes_a_bit():
    history = search("map_elites", iterations=23, chunk=7).history  # 7 + 7 + 7 + 2
    assert_same({name: values[:ITERATIONS] for name, values in history.items()}, found("map_elites").history)
    assert len(history["qd_score"]) == 23


# What the emitter learns from -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cma_me", "cma_mega"])
def test_tell_does_not_ignore_whose_result_it_was(name):
    """Results in another order than the samples teach something else: check_order would notice."""
    emitter, (state, archive, drawn, result) = EMITTERS[name](), round_of(EMITTERS[name])
    _, wrong = permuted(emitter, drawn, result, np.random.default_rng(0))
    expected, got = (tell(emitter, state, archive, drawn, judged) for judged in (result, wrong))
    assert np.abs(meaning(expected).strategy["mean"] - meaning(got).strategy["mean"]).max() > 1e-3


def test_copies_of_an_emitter_search_their_own_ways():
    thetas = np.asarray(found("replicate_cma_mega").state.emitter.theta)
    assert thetas.shape == (3, N)
    assert all(np.abs(thetas[i] - thetas[j]).max() > 1e-3 for i, j in [(0, 1), (0, 2), (1, 2)])


# What comes out -------------------------------------------------------------------------------------------------------


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
