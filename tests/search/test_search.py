"""The pure half-steps and their composition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import (
    EMITTERS,
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    assert_same,
    evaluate,
    evaluate_with_jacobian,
    problem,
    start,
)
from hypothesis import given
from hypothesis import strategies as st

import dqd
from dqd.archives import Archive
from dqd.inputs.bounds import Box
from dqd.search.search import Search, Tally
from dqd.types import Evaluation, Points, replace

pytestmark = pytest.mark.x64
GRID = PROBLEMS[SPHERE].grid(RESOLUTION)
MEGA = dqd.cma_mega(1.0, batch_size=5)


def begin(search, x0=None, seed=0):
    x0 = jnp.asarray(start() if x0 is None else x0)
    return search.init(Archive.empty(GRID, x0.size), x0, jax.random.key(seed))


noise, plus = jax.jit(Search.noise), jax.jit(lambda tally, *counts: tally.plus(*counts).carried())


def test_a_step_is_its_four_half_steps_around_two_evaluations():
    search = Search(MEGA)
    state = begin(search)
    drawn = noise(search, state, 1)
    whole = jax.jit(Search.step)(search, state, problem(SPHERE), drawn)
    points = jax.jit(Search.ask_dqd)(search, state, drawn)
    evaluation = evaluate_with_jacobian(problem(SPHERE), points.solutions)
    state = jax.jit(Search.tell_dqd)(search, state, points, evaluation)
    state, proposal = jax.jit(Search.ask)(search, state, points, evaluation, drawn)
    state = jax.jit(Search.tell)(search, state, proposal, evaluate(problem(SPHERE), proposal.solutions))
    assert_same(whole, state)
    assert (int(state.iteration), state.tally.evaluations, state.tally.gradients) == (1, 5, 1)


def test_no_half_step_changes_what_it_is_given():
    search = Search(MEGA)
    state = begin(search)
    before = jax.tree.map(np.array, state.archive)
    jax.jit(Search.step)(search, state, problem(SPHERE), noise(search, state, 1))
    assert_same(before, state.archive)


def test_random_numbers_belong_to_seed_and_iteration_alone():
    search, other = Search(MEGA), Search(dqd.cma_mega(7.0, 0.1, batch_size=5), initial_sigma=3.0)
    states = begin(search), begin(other, x0=np.ones(N)), begin(search, seed=1)
    one, same, otherwise = (noise(search, state, 5) for state in states)
    assert_same(one, same)
    assert not np.array_equal(one["normal"], otherwise["normal"])
    assert not np.array_equal(one["normal"], noise(search, states[0], 6)["normal"])


@pytest.mark.parametrize("name", EMITTERS)
def test_random_numbers_of_different_iterations_are_independent(name):
    """A key that is used twice would correlate them; so would one that is used for two arrays of an iteration."""
    search = Search(EMITTERS[name]())
    state = begin(search)
    columns = []
    for iteration in range(1, 41):
        leaves = jax.tree.leaves(noise(search, state, iteration))
        columns.append(np.concatenate([np.ravel(leaf)[:8] for leaf in leaves]))
    table = np.array(columns)  # (iterations, numbers)
    assert len(np.unique(table)) == table.size
    correlations = np.corrcoef(table.T) - np.eye(table.shape[1])
    assert np.abs(correlations).max() < 0.75  # of 40 pairs; 5 sigma are 0.8


def test_the_initial_population_has_its_own_spread_around_x0():
    for sigma in (1.0, 0.1):
        search = Search(dqd.map_elites(5.0, initial_population=4000), initial_sigma=sigma)
        offsets = np.asarray(search.ask_initial(begin(search, x0=np.array([3.0, -7.0])))) - [3.0, -7.0]
        assert offsets.shape == (4000, 2)
        np.testing.assert_allclose(offsets.mean(axis=0), 0, atol=4 * sigma / 4000**0.5)
        np.testing.assert_allclose(offsets.std(axis=0), sigma, rtol=0.05)


def test_x0_is_moved_inside_the_bounds():
    search = Search(MEGA, Box.of(np.full(N, -0.1), np.full(N, 0.2), start()))
    state = begin(search)
    np.testing.assert_array_equal(state.x0, np.clip(start(), -0.1, 0.2))
    np.testing.assert_array_equal(search.ask_dqd(state, noise(search, state, 1)).solutions, state.x0[None])


def test_masked_points_are_neither_counted_nor_stored_nor_complained_about():
    search = Search(dqd.omg_mega(1.0, batch_size=6))
    state = begin(search)
    points = Points(jnp.ones((3, N)) * jnp.arange(1.0, 4)[:, None], jnp.array([True, False, True]))
    measures = jnp.array([[0.0, 0.0], [50.0, 50.0], [90.0, 90.0]])
    evaluation = Evaluation(jnp.array([1.0, jnp.nan, 3.0]), measures, jnp.zeros((3, 3, N)).at[2, 0, 0].set(jnp.inf))
    after = search.tell_dqd(state, points, evaluation)
    assert (after.tally.evaluations, after.tally.gradients, after.tally.nonfinite) == (2, 2, 1)
    assert after.archive.elites.objective.tolist() == [1.0, 3.0]


def test_a_point_counts_once_whatever_of_it_is_not_finite():
    search = Search(MEGA)
    state = begin(search)
    bad = Evaluation(jnp.full(1, jnp.nan), jnp.full((1, 2), jnp.inf), jnp.full((1, 3, N), jnp.nan))
    after = search.tell_dqd(state, Points(state.x0[None], jnp.ones(1, bool)), bad)
    assert (after.tally.nonfinite, after.tally.evaluations, len(after.archive)) == (1, 1, 0)


def test_a_bad_jacobian_at_theta_restarts_from_an_elite():
    """Its branches repeat an elite; CMA-ES and the optimiser begin anew; it counts once."""
    asked = dqd.AskTell(EMITTERS["cma_mega"](), GRID, x0=start())
    jacobian = np.random.default_rng(0).normal(size=(1, 3, N))
    for bad in (False, False, True):
        theta = asked.ask_dqd()
        asked.tell_dqd(np.ones(1), np.zeros((1, 2)), np.where(bad, np.nan, jacobian))
        branches, elites = asked.ask(), asked.archive.elites.solutions.tolist()
        spread = 10.0 * asked.iteration + np.arange(12)[:, None]
        asked.tell(np.ones(12), np.concatenate([spread * 5 - 90, spread * 0], axis=1))
    assert branches[0].tolist() in elites
    assert (branches == branches[0]).all()
    assert asked.result().restart_reasons["jacobian not finite"] == asked.result().restarts == 1
    assert asked.result().nonfinite == 1
    assert asked.ask_dqd()[0].tolist() in asked.archive.elites.solutions.tolist()
    assert not np.array_equal(asked.ask_dqd(), theta)
    assert float(asked.result().state.emitter.strategy.sigma) == 1.0


def test_combined_emitters_share_an_archive_and_keep_their_order():
    one, two = dqd.map_elites(0.1, batch_size=3), dqd.cma_mega(1.0, batch_size=5)
    search = Search(dqd.combine(one, two))
    state = begin(search)
    drawn = noise(search, state, 1)
    points = search.ask_dqd(state, drawn)
    assert points.solutions.shape == (1, N)
    evaluation = evaluate_with_jacobian(problem(SPHERE), points.solutions)
    _, proposal = search.ask(state, points, evaluation, drawn)
    assert proposal.solutions.shape == (7, N)
    parts = [Search(emitter) for emitter in (one, two)]
    _, alone = parts[1].ask(begin(parts[1]), points, evaluation, drawn[1])
    np.testing.assert_allclose(proposal.solutions[3:], alone.solutions, rtol=1e-14)
    np.testing.assert_allclose(proposal.solutions[:3], start() + 0.1 * np.asarray(drawn[0]["normal"]), rtol=1e-14)


def test_counts_go_on_beyond_32_bits():
    search = Search(MEGA)
    state, many = begin(search), 2**30 - 1
    state = replace(state, tally=plus(plus(state.tally, many, many, 0, many, 7), many, many, 0, many, 0))
    after = jax.jit(search.step)(state, problem(SPHERE), search.noise(state, 1)).tally
    assert (after.evaluations, after.gradients, after.finite) == (2**31 - 2 + 5, 2**31 - 1, 2**31 - 2 + 5)
    assert (after.nonfinite, after.lost_jacobians, after.outside) == (0, 0, 7)


@given(st.lists(st.integers(0, 2**30), max_size=20))
def test_a_count_is_the_sum_of_what_was_added(numbers):
    tally = Tally.zero()
    for number in numbers:
        tally = plus(tally, number, 1, 0, 0, 0)
    assert (tally.evaluations, tally.gradients) == (sum(numbers), len(numbers))


def test_counts_of_several_seeds_are_added_up():
    tallies = [Tally.zero().plus(number, 0, 0, number // 2, 1) for number in (2**30, 5, 2**20 - 1)]
    together = jax.tree.map(lambda *parts: jnp.stack(parts), *tallies)
    assert (together.evaluations, together.outside) == (2**30 + 5 + 2**20 - 1, 3)
