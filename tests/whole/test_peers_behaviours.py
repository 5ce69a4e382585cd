"""What other libraries get wrong, one test for each. Most is tested in depth elsewhere; this is the list as a whole."""

import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import (
    CHUNK,
    PROBLEMS,
    RESOLUTION,
    SPHERE,
    N,
    Tensor,
    asking,
    assert_same,
    evaluate,
    found,
    problem,
    search,
    start,
)

import dqd
from dqd.archives import Archive
from dqd.paper import presets
from dqd.runners.compiled import run_chunk
from dqd.strategies.cma_es import CMAES
from dqd.types import Evaluation

pytestmark = pytest.mark.x64
GRID = PROBLEMS[SPHERE].grid(RESOLUTION)
JACOBIAN = np.random.default_rng(0).normal(size=(1, 3, N))
add = jax.jit(Archive.add)


def tell_points(asked, measures=0.0, objective=0.0):
    """Points that are all alike, if any were asked for."""
    p = len(asked.ask_dqd())
    if p:
        asked.tell_dqd(np.full(p, objective), np.full((p, 2), measures), np.repeat(JACOBIAN, p, axis=0))


def test_an_iteration_in_which_nothing_is_accepted_leaves_theta_at_an_elite_never_at_the_origin():
    asked = asking("cma_mega")
    tell_points(asked)
    asked.tell(-np.arange(1.0, 1 + len(asked.ask())), np.zeros((12, 2)))  # all in theta's cell, and worse
    assert asked.result().restart_reasons["no change in the archive"] == 1
    assert_same(asked.ask_dqd(), start()[None])  # theta was the only elite


@pytest.mark.parametrize("kind", [np.array, jnp.array, functools.partial(Tensor, attached=False)])
def test_arrays_of_any_library_are_accepted_everywhere_and_never_changed(kind):
    numbers = {"lower": [-1.0, -2.0], "upper": [1.0, 2.0], "x0": [0.25, 0.5, 0.75], "least": [0.0, 0.1, 0.2]}
    numbers |= {"objective": [1.0, 2.0], "measures": [[0.0, 0.1], [0.9, 1.9]]}
    given = {name: kind(values) for name, values in numbers.items()}
    grid = dqd.Grid(given["lower"], given["upper"], kind([4, 5]))
    assert grid == dqd.Grid([-1, -2], [1, 2], [4, 5])
    emitter = dqd.map_elites(0.1, batch_size=2, initial_population=0)
    asked = dqd.AskTell(emitter, grid, x0=given["x0"], bounds=(given["least"], 1))
    asked.ask()
    asked.tell(given["objective"], given["measures"])
    assert asked.archive.retrieve(given["measures"]).objective.tolist() == [1.0, 2.0]
    assert asked.result().solution(kind([0.9, 1.9])).shape == (3,)
    for name, values in numbers.items():
        assert np.array(given[name]).tolist() == values


def test_bounds_hold_in_every_phase():
    asked, phases, random = asking("combine", bounds=(-0.3, 0.45)), [], np.random.default_rng(0)
    while asked.iteration < 5:  # an initial population, theta, its branches, variations of elites
        phases.append(asked.ask_dqd())
        tell_points(asked, measures=asked.iteration)
        phases.append(asked.ask())
        asked.tell(random.normal(size=len(phases[-1])), 50 * random.normal(size=(len(phases[-1]), 2)))
    everything = np.concatenate(phases)
    assert everything.min() == -0.3
    assert everything.max() == 0.45


@pytest.mark.parametrize("measure", [3e9, 1e12, 1e300])
def test_a_huge_measure_lands_in_the_top_border_cell_never_in_the_lowest(measure):
    measures = jnp.array([[measure, 0.0], [-measure, measure]])
    _, result = add(Archive.empty(GRID, 1), jnp.zeros((2, 1)), Evaluation(jnp.ones(2), measures))
    assert result.cell.tolist() == [(RESOLUTION - 1) * RESOLUTION + RESOLUTION // 2, RESOLUTION - 1]
    assert result.outside.all()


def test_the_update_of_cma_es_is_invariant_to_rescaling_the_coefficients():
    points, covariances = jax.random.normal(jax.random.key(0), (12, 3)), []
    for scale in (1.0, 1e6):
        strategy = CMAES(0.5 * scale, 12)
        state = strategy.init(jnp.zeros(3))
        for _ in range(3):
            state, _ = jax.jit(CMAES.ask)(strategy, state, points)
            state = jax.jit(CMAES.tell)(strategy, state, scale * points, jnp.arange(12), 6)
        covariances.append(strategy.covariance(state))
    np.testing.assert_allclose(*covariances, rtol=1e-12)
    assert np.abs(covariances[0] - np.eye(3)).max() > 0.1


def test_the_coefficients_that_cma_es_learns_from_are_those_that_were_emitted():
    """Read back from the branches. That their order is of no consequence is a test of conformance."""
    asked, rows = asking("cma_mega"), JACOBIAN[0] / np.linalg.norm(JACOBIAN[0], axis=1, keepdims=True)
    weights = np.log(6.5) - np.log(np.arange(1, 7))
    for i in range(3):
        theta = asked.ask_dqd()
        tell_points(asked)
        coefficients = np.linalg.lstsq(rows.T, (asked.ask() - theta).T)[0].T
        objective = np.random.default_rng(i).permutation(12)
        asked.tell(objective, np.stack([np.linspace(-100, 100, 12), np.full(12, 11.0 * (i + 1))], axis=1))  # new cells
        mean = weights / weights.sum() @ coefficients[np.argsort(-objective)][:6]
        np.testing.assert_allclose(
            asked.result().state.emitter.strategy.mean, mean, rtol=0, atol=1e-7
        )  # 1e-8 in the norms


def test_all_fields_of_the_winner_of_a_cell_come_from_the_same_candidate():
    solutions, measures = jnp.arange(5.0)[:, None], jnp.arange(5.0)[:, None] / 100 + jnp.zeros(2)
    evaluation = Evaluation(jnp.array([1.0, 5.0, 3.0, 5.0, 2.0]), measures)
    elites = add(Archive.empty(GRID, 1), solutions, evaluation, 7)[0].elites
    assert elites.solutions.tolist() == [[1.0]]  # of equals the earlier
    assert (elites.objective.tolist(), elites.measures.tolist(), elites.found.tolist()) == ([5.0], [[0.01, 0.01]], [7])


def test_one_nan_costs_one_sample_and_a_failed_tell_nothing():
    asked = asking("random_sampling")
    solutions = asked.ask()
    told = evaluate(problem(SPHERE), solutions)
    objective, measures = np.array(told.objective), np.array(told.measures)
    objective[3], measures[8, 1] = math.nan, math.inf
    with pytest.raises(ValueError, match="measures"):
        asked.tell(objective, measures[:5])
    asked.tell(objective, measures)
    kept = np.delete(np.arange(12), [3, 8])
    alone = Evaluation(told.objective[kept], told.measures[kept])
    expected = add(Archive.empty(GRID, N), solutions[kept], alone, 1)[0]
    assert_same(expected, asked.archive)
    assert (asked.result().nonfinite, asked.result().evaluations) == (2, 12)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: dqd.cma_meag, "did you mean 'cma_mega'"),
        (lambda: presets.preset("arm", "cma-megaa"), "did you mean 'cma-mega'"),
        (lambda: presets.preset("arms", "cma-mega"), "did you mean 'arm'"),
        (lambda: presets.preset("arm", "cma-mega", learning_rat=1.0), "did you mean 'learning_rate'"),
        (lambda: dqd.cma_mega(sigma=0.0), "sigma: expected a number above 0"),
        (lambda: dqd.cma_mega_adam(1.0, learning_rate=-1.0), "learning_rate: expected a number above 0"),
        (lambda: dqd.map_elites(1.0, batch_size=0), "batch_size: expected a whole number"),
    ],
)
def test_a_typo_suggests_the_nearest_name_and_numbers_are_validated_at_construction(mistake, words):
    with pytest.raises((AttributeError, ValueError), match=words):
        mistake()


@pytest.mark.parametrize("name", ["cma_mega", "cma_me", "og_map_elites", "map_elites_line"])
def test_every_algorithm_starts_from_an_empty_archive_and_restarts_at_x0_while_it_is_empty(name):
    asked = asking(name)
    for _ in range(2):  # nothing is ever stored
        points = asked.ask_dqd()
        if len(points):
            assert np.abs(points - start()).max() < 3
            asked.tell_dqd(np.full(len(points), math.nan), np.zeros((len(points), 2)), np.zeros((len(points), 3, N)))
        solutions = asked.ask()
        assert np.abs(solutions - start()).max() < 3  # sigma is 0.5
        asked.tell(np.full(len(solutions), math.nan), np.zeros((len(solutions), 2)))
    assert len(asked.archive) == 0
    assert asked.result().restarts == (2 if name.startswith("cma") else 0)


def test_stats_dump_to_json_as_they_are():
    for result in (found("cma_mega"), asking("cma_mega").result()):  # the latter has found nothing yet
        assert json.loads(json.dumps(result.summary(), allow_nan=False)) == result.summary()


def test_resuming_from_a_file_equals_the_uninterrupted_run(tmp_path):
    half = search("cma_mega", iterations=CHUNK)
    leaves, tree = jax.tree.flatten(half.state)
    keys = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)]
    plain = [jax.random.key_data(leaf) if i in keys else np.asarray(leaf) for i, leaf in enumerate(leaves)]
    np.savez(tmp_path / "state.npz", *plain)
    with np.load(tmp_path / "state.npz") as saved:
        read = [jnp.asarray(saved[f"arr_{i}"]) for i in range(len(leaves))]
    state = jax.tree.unflatten(
        tree, [jax.random.wrap_key_data(leaf) if i in keys else leaf for i, leaf in enumerate(read)]
    )
    state, *_ = run_chunk(half.search, state, problem(SPHERE), length=CHUNK, batched=False)
    assert_same(found("cma_mega", iterations=2 * CHUNK).state, state)


@pytest.mark.parametrize("name", ["cma_mega", "cma_mega_adam", "cma_me"])
def test_the_finished_archive_is_true_after_many_restarts(name):
    result = search(name, iterations=400)
    again = evaluate(problem(SPHERE), result.elites.solutions)
    np.testing.assert_allclose(again.objective, result.elites.objective, rtol=1e-12)
    np.testing.assert_allclose(again.measures, result.elites.measures, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(GRID.index_of(again.measures), result.elites.cell)
    assert result.restarts > 10
