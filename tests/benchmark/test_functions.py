"""The functions nobody had tuned on when they were written are sound: finite, at most 100, always the same,
and their grids are reached.
"""

import jax
import numpy as np
import pytest

from dqd.benchmark.function import fields
from dqd.benchmark.seen import seen
from dqd.benchmark.seen_third import seen_third
from dqd.benchmark.unseen import unseen

N, WALKERS, STEPS = 20, 32, 40


@pytest.fixture(scope="module", params=[seen_third, unseen])
def make(request):
    return request.param


@pytest.fixture(scope="module")
def functions(make):
    return make(N)


@pytest.fixture(scope="module")
def walked(functions):
    """Of every function: solutions, objectives, measures, gradients and rows of jacobians of all steps, as arrays.

    Walkers leave the start, and random solutions, along the gradient of one measure, up or down.
    """

    @jax.jit
    def look(places):
        return {
            name: (jax.vmap(function.score)(places[name]), jax.vmap(jax.jacrev(function.score))(places[name]))
            for name, function in functions.items()
        }

    starts = np.random.default_rng(0).normal(size=(WALKERS, N)) * np.repeat([0.0, 0.5], WALKERS // 2)[:, None]
    places = {name: starts + function.x0 for name, function in functions.items()}
    found = {name: [] for name in functions}
    for _ in range(STEPS):
        for name, ((objective, measures), (gradient, rows)) in jax.device_get(look(places)).items():
            found[name].append((places[name], objective, measures, gradient, rows))
            places[name] = places[name] + step(rows)
    return {name: [np.stack(each) for each in zip(*steps, strict=True)] for name, steps in found.items()}


def step(rows):
    """Of length 0.4, each walker along its own measure."""
    walker, k = np.arange(WALKERS), rows.shape[1]
    row = rows[walker, walker // 2 % k] * np.where(walker % 2, 1, -1)[:, None]
    return 0.4 * row / (np.linalg.norm(row, axis=1, keepdims=True) + 1e-9)


def test_none_that_is_unseen_is_seen():
    assert 14 <= len(unseen(N)) <= 16
    assert not set(unseen(N)) & set(seen(N))
    assert set(seen_third(N)) < set(seen(N))


def test_those_of_one_size_fit_into_one_program(functions):
    for name, field in fields(functions).items():
        objective, measures = jax.eval_shape(field.score, jax.ShapeDtypeStruct((N,), np.float32))
        assert (objective.shape, measures.shape) == ((), (len(functions[name].lower),))
        assert objective.dtype == measures.dtype == np.float32


def test_values_and_gradients_are_finite_and_objectives_at_most_100(walked):
    for name, (_, objective, *others, rows) in walked.items():
        assert all(np.isfinite(each).all() for each in (objective, *others, rows)), name
        assert objective.max() <= 100.001, name
        assert np.abs(rows[0]).max(axis=-1).min() > 0, name  # every measure can be moved


def test_they_are_finite_and_at_most_100_at_zero_and_far_out(functions):
    places = 1e3 * np.random.default_rng(1).normal(size=(WALKERS, N)) * (np.arange(WALKERS) > 0)[:, None]

    @jax.jit
    def look(places):
        return {
            name: (jax.vmap(function.score)(places), jax.vmap(jax.jacrev(function.score))(places))
            for name, function in functions.items()
        }

    for name, ((objective, measures), slopes) in jax.device_get(look(places)).items():
        assert all(np.isfinite(each).all() for each in (objective, measures, *slopes)), name
        assert -0.001 <= objective.min() <= objective.max() <= 100.001, name
        assert np.abs(measures).max() < 1e8, name


def test_they_start_in_their_grids_and_walk_through_most_of_each_measure(functions, walked):
    for name, function in functions.items():
        measures, lower, upper = walked[name][2], np.array(function.lower), np.array(function.upper)
        assert not function.grid.outside(measures[0, 0]), name
        share = np.ptp(np.clip(measures, lower, upper), axis=(0, 1)) / (upper - lower)
        assert share.min() > 0.6, (name, share)
        assert 6_000 < function.grid.num_cells < 16_000, name  # 5 ** 6 are nearer to 10,000 than 4 ** 6


def test_they_are_the_same_when_they_are_made_again(make, functions, walked):
    made = make(N)
    again = jax.jit(lambda places: {name: jax.vmap(made[name].score)(places[name]) for name in made})
    for name, scores in again({name: found[0][3] for name, found in walked.items()}).items():
        assert (made[name].lower, made[name].upper) == (functions[name].lower, functions[name].upper)
        assert made[name].ceiling == functions[name].ceiling
        np.testing.assert_array_equal(made[name].x0, functions[name].x0)
        tolerance = 0.02 if name == "boat" else 1e-3  # its noise magnifies how sums are rounded
        for value, before in zip(scores, walked[name][1:3], strict=True):
            np.testing.assert_allclose(value, before[3], rtol=tolerance, atol=tolerance, err_msg=name)
