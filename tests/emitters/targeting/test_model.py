"""Steps that arrive, and steps that move no measure."""

import jax
import numpy as np
import pytest
from small import Jitted

from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.room import Room
from dqd.emitters.targeting.solve import solve

pytestmark = pytest.mark.x64
random, of = np.random.default_rng(3), jax.jit(LocalModel.of)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_systems_are_solved(k):
    factors = random.normal(size=(4, k, k + 2))
    matrix, right = factors @ factors.transpose(0, 2, 1), random.normal(size=(4, k))
    np.testing.assert_allclose(
        jax.jit(solve)(matrix, right), np.linalg.solve(matrix, right[..., None])[..., 0], rtol=1e-9
    )


def model(k=3, n=20, room=None):
    gradient, rows = random.normal(size=n), random.normal(size=(k, n))
    return Jitted(of(gradient, rows, room)), gradient, rows


def test_the_shortest_step_is_that_of_the_pseudo_inverse():
    local, gradient, rows = model()
    z = random.normal(size=(7, 3))
    steps = np.asarray(local.shortest(z, np.ones((7, 20), bool)))
    np.testing.assert_allclose(steps, z @ np.linalg.pinv(rows).T, atol=1e-5)
    np.testing.assert_allclose(local.squared_length(z), np.sum(np.square(steps), axis=1), rtol=1e-4)
    np.testing.assert_allclose(steps @ gradient, z @ np.asarray(local.slope), atol=1e-4)


def test_some_coordinates_alone_arrive_too():
    local, _, rows = model()
    z, some = random.normal(size=(7, 3)), random.random((7, 20)) < 0.4
    steps = np.asarray(local.shortest(z, some))
    np.testing.assert_allclose(steps @ rows.T, z, atol=1e-3)
    assert not steps[~some].any()


def test_what_is_left_of_the_gradient_moves_no_measure_and_climbs():
    local, gradient, rows = model()
    np.testing.assert_allclose(rows @ local.free, 0, atol=1e-9)
    assert gradient @ local.free > 0


def test_nearly_collinear_measures_leave_nothing_but_rounding():
    direction, gradient = random.normal(size=(2, 30))
    rows = np.stack([direction, direction + 1e-2 * gradient])
    assert not np.any(of(gradient @ rows.T @ rows, rows, None).free)


def test_without_a_jacobian_steps_are_none():
    local = Jitted(of(np.zeros(5), np.zeros((2, 5)), None))
    assert not np.any(local.shortest(np.ones((3, 2)), np.ones((3, 5), bool)))
    assert np.isfinite(local.squared_length(np.ones((3, 2)))).all()


def test_at_a_wall_the_other_coordinates_take_over():
    room = Room(np.where(np.arange(20) == 3, 0, -0.3), np.where(np.arange(20) % 5 == 0, 0, 0.4))
    local, _, rows = model(room=room)
    aims = random.uniform(room.down, room.up, (50, 20)) @ rows.T  # all of them can be reached
    steps = np.asarray(local.shortest(aims, np.ones((50, 20), bool)))
    assert (steps >= room.down).all()
    assert (steps <= room.up).all()
    missed = np.linalg.norm(steps @ rows.T - aims, axis=1)
    clipped = np.linalg.norm(np.clip(aims @ np.linalg.pinv(rows).T, room.down, room.up) @ rows.T - aims, axis=1)
    assert (clipped > 1e-2).mean() > 0.5  # the walls do matter
    assert np.median(missed) < 1e-4
    assert missed.mean() < clipped.mean() / 4


def test_the_climb_leaves_walls_alone():
    room = Room(np.full(20, -1.0), np.zeros(20))
    local, _, rows = model(room=room)
    np.testing.assert_allclose(rows @ local.free, 0, atol=1e-9)
    free, plain = np.asarray(local.free), np.asarray(model()[0].free)
    assert np.maximum(free, 0).sum() < np.maximum(plain, 0).sum()
