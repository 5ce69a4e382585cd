"""Elites in half the memory: what is kept is what was evaluated, on every path and in every file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.inputs.halves import HALVES, inward, rounded

N, GRID = 12, dqd.Grid([-2, -2], [2, 2], [8, 8])
ITERATIONS = 20


def score(x):
    return -jnp.sum((x - 0.3) ** 2), x[:2]


def evaluate(x):
    return -np.sum((np.asarray(x) - np.float32(0.3)) ** 2, axis=1), np.asarray(x)[:, :2]


def searched(emitter=None, **options):
    settings = {"x0": jnp.full(N, 0.1), "iterations": ITERATIONS, "progress": False, "bounds": (-0.7, 1.1)}
    return dqd.illuminate(score, emitter or dqd.cma_mega(0.3, batch_size=12), GRID, **settings | options)


@pytest.mark.parametrize("kept", HALVES)
def test_elites_are_what_was_evaluated_and_lie_within_the_bounds(kept):
    result = searched(solutions=kept)
    elites = result.elites
    assert result.archive.solutions.dtype == jnp.dtype(kept)
    assert elites.solutions.dtype == np.float32
    np.testing.assert_array_equal(elites.solutions, elites.solutions.astype(jnp.dtype(kept)).astype(np.float32))
    objective, measures = jax.vmap(score)(elites.solutions)
    np.testing.assert_allclose(elites.objective, objective, rtol=1e-6)
    np.testing.assert_array_equal(elites.measures, measures)
    assert elites.solutions.min() >= -0.7
    assert elites.solutions.max() <= 1.1
    assert len(elites) > 5


@pytest.mark.parametrize("kept", HALVES)
@pytest.mark.parametrize("beside", [None, GRID])
def test_a_search_resumes_bit_for_bit(tmp_path, kept, beside):
    settings = {"solutions": kept, "result_archive": beside}
    whole = searched(**settings)
    searched(**settings, out=tmp_path, iterations=7)
    again = searched(**settings, out=tmp_path)
    for one, other in zip(jax.tree.leaves(whole.state.archive), jax.tree.leaves(again.state.archive), strict=True):
        np.testing.assert_array_equal(one, other)
    assert dqd.load(tmp_path).solutions.dtype == np.float32
    np.testing.assert_array_equal(dqd.load(tmp_path).solutions, whole.elites.solutions)


def test_another_type_is_another_search(tmp_path):
    searched(out=tmp_path, iterations=2, bounds=None)
    with pytest.raises(ValueError, match="solutions"):
        searched(out=tmp_path, iterations=4, bounds=None, solutions="float16")


def test_a_loop_of_ones_own_hands_out_what_it_keeps():
    search = dqd.AskTell(dqd.map_elites(0.3, batch_size=8), GRID, x0=np.full(N, 0.1), solutions="float16")
    handed = []
    while search.iteration < 5:
        handed.append(search.ask())
        search.tell(*evaluate(handed[-1]))
    elites = {row.tobytes() for row in search.archive.elites.solutions}
    assert elites <= {row.tobytes() for row in np.concatenate(handed)}
    assert elites


def test_elites_to_begin_with_are_rounded_and_can_be_gone_on_from():
    first = searched()
    again = searched(dqd.map_elites(0.1, batch_size=8, initial_population=0), archive=first, solutions="float16")
    assert again.coverage >= first.coverage


def test_an_unknown_type_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"unknown type of solutions 'bfloat16'.*float16"):
        searched(solutions="bfloat16")


@pytest.mark.parametrize("kept", HALVES)
def test_rounding_is_that_of_the_type_in_a_program_too(kept):
    numbers = jnp.asarray(np.random.default_rng(0).normal(size=1000), jnp.float32)
    expected = np.asarray(numbers).astype(jnp.dtype(kept)).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(lambda x: rounded(x, kept))(numbers), expected)


@pytest.mark.parametrize("kept", HALVES)
def test_bounds_move_inward_to_numbers_of_the_type(kept):
    lower, upper = np.array([-0.1, -np.inf, -1.0, -1e6], np.float32), np.array([0.1, np.inf, 1.0, 1e6], np.float32)
    low, high = inward(lower, upper, jnp.dtype(kept))
    assert np.all(low >= lower)
    assert np.all(high <= upper)
    for side in (low, high):
        np.testing.assert_array_equal(side, side.astype(jnp.dtype(kept)).astype(np.float32))
    assert np.all(np.abs(low[[0, 2]] - lower[[0, 2]]) <= 0.001)


def test_bounds_without_room_are_refused():
    with pytest.raises(ValueError, match="too near to each other"):
        searched(solutions="float16", bounds=(1.0001, 1.0002), x0=jnp.full(N, 1.00015))
