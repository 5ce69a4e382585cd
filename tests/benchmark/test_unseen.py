"""The functions nobody has tuned on are sound: finite, at most 100, always the same, and their grids are reached."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.benchmark.seen import seen
from dqd.benchmark.unseen import outline, unseen

N, WALKERS, STEPS = 20, 32, 40


@pytest.fixture(scope="module")
def functions():
    return unseen(N)


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


def test_there_are_thirteen_and_none_is_seen(functions):
    assert len(functions) == 13
    assert not set(functions) & set(seen(N))


def test_values_and_gradients_are_finite_and_objectives_at_most_100(walked):
    for name, (_, objective, *others, rows) in walked.items():
        assert all(np.isfinite(each).all() for each in (objective, *others, rows)), name
        assert objective.max() <= 100.001, name
        assert np.abs(rows[0]).max(axis=-1).min() > 0, name  # every measure can be moved


def test_they_start_in_their_grids_and_walk_through_most_of_each_measure(functions, walked):
    for name, function in functions.items():
        measures, lower, upper = walked[name][2], np.array(function.lower), np.array(function.upper)
        assert not function.grid.outside(measures[0, 0]), name
        share = np.ptp(np.clip(measures, lower, upper), axis=(0, 1)) / (upper - lower)
        assert share.min() > 0.6, (name, share)
        assert 6_000 < function.grid.num_cells < 11_000, name


def test_they_are_the_same_when_they_are_made_again(functions, walked):
    made = unseen(N)
    again = jax.jit(lambda places: {name: jax.vmap(made[name].score)(places[name]) for name in made})
    for name, scores in again({name: found[0][3] for name, found in walked.items()}).items():
        assert (made[name].lower, made[name].upper) == (functions[name].lower, functions[name].upper)
        assert made[name].ceiling == functions[name].ceiling
        np.testing.assert_array_equal(made[name].x0, functions[name].x0)
        tolerance = 0.02 if name == "boat" else 1e-3  # its noise magnifies how sums are rounded
        for value, before in zip(scores, walked[name][1:3], strict=True):
            np.testing.assert_allclose(value, before[3], rtol=tolerance, atol=tolerance, err_msg=name)


def test_an_outline_has_the_area_of_its_ellipse():
    """x = 2 cos t, y = 0.5 sin t: area pi, twice as long as a circle of that area in one direction."""
    x = np.zeros((4, 5))
    x[0, 0], x[3, 0] = 2.0, 0.5
    _, (area, oblong) = outline(20).score(jnp.asarray(x.ravel()))
    assert float(area) == pytest.approx(np.pi, rel=1e-5)
    assert float(oblong) == pytest.approx(np.log(4), rel=1e-4)


def test_an_outline_is_best_where_it_is_the_star():
    """(1 + 0.35 cos 5t) (cos t, sin t) has harmonics 1, 4 and 6; the coefficients count by their order."""
    x = np.zeros((4, 6))
    x[[0, 3], 0] = 1.0
    x[[0, 0], [3, 5]], x[[3, 3], [3, 5]] = 0.175 * np.array([4, 6]), 0.175 * np.array([-4, 6])
    star, circle = (float(outline(24).score(jnp.asarray(each.ravel()))[0]) for each in (x, x * (np.arange(6) == 0)))
    assert 88 < star < 100
    assert circle < star - 10
