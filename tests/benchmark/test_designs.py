"""Formulas of designs keep the laws of what they stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dqd.benchmark.designs import efficiency, elbows, fin, low_pass, pendulum, portfolio
from dqd.benchmark.discs import SIDE, discs, painted, pixels, spiral
from dqd.benchmark.lens import BLUE, RED, THICKNESS, lens, traced


def test_a_lens_of_weak_spheres_has_the_power_of_the_lensmaker():
    """1 / f = (n - 1) (1 / R1 - 1 / R2), and seen from the back surface, by T (n - 1) / (n R1) more of that."""
    start, curved = jnp.array([0.005, 0.01]), (0.2, -0.1)  # 1 / R
    height, slope = traced(start, lambda y: curved[0] * y, lambda y: curved[1] * y)
    for i, glass in enumerate((RED, BLUE)):
        first, second = (glass - 1) * curved[0], (1 - glass) * curved[1]
        shortened = 1 - THICKNESS * first / glass
        power = (first + second - THICKNESS * first * second / glass) / shortened
        np.testing.assert_allclose(-slope[i] / height[i], power, rtol=1e-3)


def test_flat_glass_does_nothing():
    objective, measures = lens(20).score(jnp.zeros(20))
    assert float(objective) == pytest.approx(100)
    np.testing.assert_allclose(measures, 0, atol=1e-6)


def test_a_fin_of_even_thickness_has_the_efficiency_of_the_book():
    for squared in (1.0, 4.0, 9.0):
        m = np.sqrt(squared)
        assert float(efficiency(jnp.ones(400), squared)) == pytest.approx(np.tanh(m) / m, rel=0.01)


def test_material_is_worth_more_near_the_base():
    score, slope = fin(100).score, jnp.linspace(1, -1, 100)
    (taper, (mass, towards)), (club, (same, away)) = score(slope), score(-slope)
    assert taper > club + 5
    assert float(mass) == pytest.approx(float(same), rel=1e-4)
    assert float(towards) == pytest.approx(-float(away), rel=1e-4)
    assert towards < 0


def test_a_windowed_sinc_is_a_low_pass_and_its_place_its_delay():
    """A cut-off of 0.3 around tap 60 of 100."""
    time = np.arange(100) - 60.0
    taps = np.sinc(0.3 * time) * np.exp(-((time / 25) ** 2))
    score = low_pass(100).score
    objective, (cutoff, delay) = score(jnp.asarray(taps))
    assert objective > 97
    assert float(cutoff) == pytest.approx(0.3, abs=0.02)
    assert float(delay) == pytest.approx(60 / 99, abs=0.01)
    single = jnp.zeros(100).at[10].set(1.0)
    np.testing.assert_allclose(score(single)[1], [1, 10 / 99], rtol=1e-4)
    np.testing.assert_allclose(score(5 * single)[0], score(single)[0], rtol=1e-5)


def test_even_shares_are_spread_out_and_one_asset_is_not():
    score = portfolio(50).score
    even, (risk, middle) = score(jnp.zeros(50))
    alone = [score(100 * jax.nn.one_hot(i, 50)) for i in range(3)]
    assert float(even) == pytest.approx(100, rel=1e-5)
    for objective, (own, _) in alone:
        assert float(objective) == pytest.approx(2, rel=1e-4)
        assert own > risk
    half = score(100 * (jax.nn.one_hot(0, 50) + jax.nn.one_hot(1, 50)))
    assert float(half[0]) == pytest.approx(4, rel=1e-4)
    assert float(half[1][1]) == pytest.approx(float(alone[0][1][1] + alone[1][1][1]) / 2, rel=1e-4)
    assert float(half[1][0]) <= float(alone[0][1][0] + alone[1][1][0]) / 2
    assert -0.1 < middle < 0.25


def test_a_pendulum_left_alone_swings_as_a_damped_oscillator():
    """From 0.1: x'' + 0.05 x' + x = 0 where the angle is small."""
    objective, (height, speed) = pendulum(100).score(jnp.zeros(100))
    w = np.sqrt(1 - 0.025**2)
    angle = 0.1 * np.exp(-0.2) * (np.cos(8 * w) + 0.025 / w * np.sin(8 * w))
    assert float(objective) == pytest.approx(100)
    assert float(height) == pytest.approx(-np.cos(angle), abs=1e-3)
    assert float(speed) == pytest.approx(-0.1 * np.exp(-0.2) * np.sin(8 * w) / w, abs=0.01)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_pendulum_turned_with_all_force_moves_as_a_solver_of_its_equation_says(sign):
    """Hidden units that are always on: x'' = 0.7 - sin x - 0.05 x', or -0.7."""
    weights = np.zeros((5, 20))
    weights[3], weights[4] = 10.0, sign * 10.0
    objective, (height, speed) = pendulum(100).score(jnp.asarray(weights.ravel()))
    solved = solve_ivp(lambda t, at: [at[1], sign * 0.7 - np.sin(at[0]) - 0.05 * at[1]], (0, 8), [0.1, 0.0], rtol=1e-8)
    assert float(objective) < 1
    assert float(height) == pytest.approx(-np.cos(solved.y[0, -1]), abs=0.1)
    assert float(speed) == pytest.approx(solved.y[1, -1], abs=0.1)


def test_elbows_are_straight_where_their_angles_are_zero():
    """A joint turns from -left to right: sigmoid(x) = left / (left + right) stretches the arm."""
    random = np.random.default_rng(3400)
    random.lognormal(0, 0.5, 20)
    left, right = random.uniform(0.1, 1.0, (2, 20))
    objective, hand = elbows(20).score(jnp.asarray(np.log(left / right)))
    assert float(objective) == pytest.approx(100, rel=1e-4)
    np.testing.assert_allclose(hand, [1, 0], atol=1e-5)


def test_later_discs_cover_earlier_ones():
    across, up = pixels()
    large, opaque = 9.0, 20.0
    black, white = (np.array([0.0, 0.0, large, grey, opaque]) for grey in (-9.0, 9.0))
    middle, corner = np.hypot(across, up) < 0.3, np.hypot(across, up) > 1.2
    image = np.asarray(painted(jnp.asarray(np.stack([black, white]))))
    np.testing.assert_allclose(image[middle], 1, atol=1e-3)
    np.testing.assert_allclose(image[corner], 0.5, atol=1e-3)
    image = np.asarray(painted(jnp.asarray(np.stack([white, black]))))
    np.testing.assert_allclose(image[middle], 0, atol=1e-3)
    assert image.shape == (SIDE, SIDE)


def test_a_white_disc_where_the_spiral_is_white_makes_the_picture_brighter_and_more_alike():
    """Grey alone is as far from the spiral as its variance: 50. At (-0.5, 0) the spiral is white, at (0.5, 0) black."""
    place, score = np.arctanh(0.5 / 1.2), discs(20).score

    def looks(across, grey):
        discs_there = np.tile([across, 0.0, -9.0, grey, -30.0], (4, 1))
        discs_there[0, 4] = 20.0
        return score(jnp.asarray(discs_there.ravel()))

    nothing, (even, smooth) = score(jnp.asarray(np.tile([0.0, 0.0, 0.0, 0.0, -30.0], 4)))
    np.testing.assert_allclose([nothing, even, smooth], [50, 0.5, 0.001], rtol=1e-3)
    (good, (bright, rough)), (bad, _) = looks(-place, 9.0), looks(place, 9.0)
    assert bad < 49 < 51 < good
    assert bright > 0.5
    assert rough > 0.05
    assert float(looks(place, -9.0)[0]) > 51
    assert 0 <= spiral().min() <= spiral().max() <= 1
