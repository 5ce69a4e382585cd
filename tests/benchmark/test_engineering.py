"""Formulas of real things keep the laws of those things."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.benchmark.engineering import antenna, arm_3d, battery, boat, charges, universal_joints


@pytest.fixture(scope="module")
def arm():
    """Of five joints that turn by less than 4."""
    return jax.jit(arm_3d(10).score)


def bent(**joints):
    """Angles about x and y of some joints, the others straight."""
    angles = np.zeros((5, 2))
    for name, turn in joints.items():
        angles[["first", "second", "third", "fourth", "fifth"].index(name)] = turn
    return 4 * np.arctanh(angles / 4).ravel()


def test_a_joint_bends_the_arm_by_its_angle(arm):
    """A right angle about x at the fourth: three links up, two along -y."""
    np.testing.assert_allclose(arm(bent())[1], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(arm(bent(fourth=(np.pi / 2, 0)))[1], [0, -0.4, 0.6], atol=1e-6)
    np.testing.assert_allclose(arm(bent(fourth=(0, np.pi / 2), fifth=(np.pi / 2, 0)))[1], [0.2, -0.2, 0.6], atol=1e-6)


def test_an_arm_keeps_clear_of_balls(arm):
    """Leant by the same angle towards the ball at (0.4, 0.1, 0.5), and away from it."""
    towards, away = (float(arm(bent(first=(0, angle)))[0]) for angle in (0.7, -0.7))
    assert towards < away - 10


def test_joints_are_rotations():
    turns = np.asarray(universal_joints(jnp.array([0.3, -1.0]), jnp.array([2.0, 0.7])))
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), np.stack([np.eye(3)] * 2), atol=1e-6)
    np.testing.assert_allclose(np.linalg.det(turns), 1, atol=1e-6)


def test_currents_with_a_steady_phase_steer_the_beam():
    """Phases -pi m sin(angle) send towards that angle; equal strengths waste nothing."""
    m, sine = np.arange(50), 0.3
    taper = np.exp(-(((m - 24.5) / 15) ** 2))
    score = antenna(100).score
    currents = taper * np.exp(-1j * np.pi * m * sine)
    objective, (direction, width) = score(jnp.asarray(np.concatenate([currents.real, currents.imag])))
    assert float(direction) == pytest.approx(sine, abs=1e-3)
    assert float(width) < 0.05
    assert float(objective) == pytest.approx(100 * taper.sum() ** 2 / (50 * (taper**2).sum()), rel=1e-4)
    even = np.exp(1j * np.random.default_rng(0).uniform(0, 2 * np.pi, 50))
    assert float(score(jnp.asarray(np.concatenate([even.real, even.imag])))[0]) == pytest.approx(100, rel=1e-5)


def test_a_boat_drifts_with_the_water_and_reaches_the_speed_of_its_push():
    """Without a push dw/dt = (w - v)^2 with w = 0.5 in the middle: v = w - w / (1 + w t)."""
    score = boat(400).score
    objective, place = score(jnp.zeros(400))
    np.testing.assert_allclose(place, [2 - np.log(3), 0], atol=0.02)
    assert float(objective) == pytest.approx(97)
    across = np.zeros((200, 2))
    across[:, 1] = 1.0
    push, (_, after) = 3 * np.tanh(1 / 3), score(jnp.asarray(across.ravel()))[1]
    assert 0.6 * 4 * np.sqrt(push) < float(after) < 4 * np.sqrt(push)


def test_a_battery_keeps_between_empty_and_full():
    flows = np.array([0.4, 0.3, -0.9, -0.5, 0.2])
    np.testing.assert_allclose(charges(jnp.asarray(flows), 0.5), [0.9, 1.0, 0.1, 0.0, 0.2], atol=1e-6)


def test_a_battery_earns_by_buying_before_the_price_rises():
    """Selling at the best hours and buying at the worst is better than nothing, and nothing is worth 50."""
    function = battery(100)
    idle, (charge, work) = function.score(jnp.zeros(100))
    np.testing.assert_allclose([idle, charge, work], [50, 0.5, 0], atol=1e-5)
    day = np.sin(2 * np.pi * np.arange(100) / 24)
    assert float(function.score(jnp.asarray(-day))[0]) > 60
    assert float(function.score(jnp.asarray(day))[0]) < 40
