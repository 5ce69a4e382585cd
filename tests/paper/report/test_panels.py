"""What the figures of a suite show: numbers against closed forms and hand-made cases."""

import numpy as np
import pytest
from paper.report.made_up import SIDE, write_whole_suite

from dqd.paper import suites
from dqd.paper.report import panels
from dqd.paper.report.collect import read_suite
from dqd.storage import record

# The domains explained ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_bates_density_has_the_moments_of_a_mean_of_uniform_numbers(n):
    x = np.linspace(0, 1, 20_001)
    density = panels.bates(n, x)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(density * x, x) == pytest.approx(0.5, abs=1e-6)
    assert np.trapezoid(density * (x - 0.5) ** 2, x) == pytest.approx(1 / (12 * n), rel=1e-5)
    assert density.min() >= 0


def test_bates_density_at_known_points():
    assert panels.bates(1, np.array([0.0, 0.3, 1.0])).tolist() == [1, 1, 1]
    np.testing.assert_allclose(panels.bates(2, np.array([0, 0.25, 0.5, 0.9])), [0, 1, 2, 0.4])
    np.testing.assert_allclose(panels.bates(3, np.array([0.5, 1 / 3])), [9 / 4, 3 / 2])
    np.testing.assert_allclose(panels.bates(5, np.array(0.5)), 5 * 115 / 192)
    assert panels.bates(5, np.array([-0.1, 1.1])).tolist() == [0, 0]


def test_clip_folds_back_outside_the_box():
    x = np.array([-6.0, -5.12, 0.0, 3.0, 5.12, 6.0])
    np.testing.assert_allclose(panels.clip(x), [-0.853333, -5.12, 0, 3, 5.12, 0.853333], rtol=1e-6)
    np.testing.assert_allclose(panels.clip_slope(x), [-0.142222, 1, 1, 1, 1, -0.142222], rtol=1e-5)


def test_example_arms_reach_where_geometry_says():
    equal, other, many = panels.example_arms().values()
    turn = np.exp(0.65j)
    hand = turn * (turn**7 - 1) / (turn - 1)  # geometric series of the links
    np.testing.assert_allclose(equal.joints[0, -1], [hand.real, hand.imag])
    np.testing.assert_allclose(equal.joints[0, 1], [np.cos(0.65), np.sin(0.65)])
    assert equal.objective[0] == pytest.approx(100)
    mean, mean_square = 3.27 / 7, 8.4279 / 7
    assert other.objective[0] == pytest.approx(100 * (1 - mean_square + mean**2))
    np.testing.assert_allclose(other.joints[0, 2], [np.cos(2.65) + np.cos(3.4), np.sin(2.65) + np.sin(3.4)])
    assert many.joints.shape == (19, 8, 2)
    np.testing.assert_allclose(many.joints[9, -1], [7, 0])
    np.testing.assert_allclose(many.joints[0], many.joints[-1] * [1, -1], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(np.diff(many.joints, axis=1), axis=-1), 1)


# Means over trials ----------------------------------------------------------------------------------------------------


def test_share_of_cells_above_thresholds():
    objective = np.array([50, -3, 99.9, 10, 50], np.float32)
    shares = panels.share_above(objective, 8, np.array([0, 10, 10.5, 50, 51, 100]))
    assert shares.tolist() == [50, 50, 37.5, 37.5, 12.5, 0]


def test_interval_of_two_trials_is_their_range():
    low, high = panels.band(np.array([[1.0, 5.0], [3.0, 2.0]]))
    assert (low.tolist(), high.tolist()) == ([1, 2], [3, 5])


def test_interval_of_many_trials_is_about_two_standard_errors():
    values = np.random.default_rng(1).normal(10, 3, (400, 3))
    low, high = panels.band(values)
    error = values.std(axis=0) / 20
    np.testing.assert_allclose((high - low) / 2, 1.96 * error, rtol=0.1)
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    np.testing.assert_array_equal(panels.band(values)[0], low)


def test_one_trial_has_no_interval():
    assert np.isnan(panels.band(np.ones((1, 4)))).all()


def test_curves_are_means_with_intervals_around_them(table1):
    sphere, _, arm = panels.curves(read_suite(table1))
    assert [line.key for line in arm.lines] == list(suites.TABLE_1)
    line = arm.lines[0]
    np.testing.assert_allclose(line.mean, 41 * line.x / 100)
    np.testing.assert_allclose((line.low[-1], line.high[-1]), (40, 42))
    assert (arm.missing, arm.lines[2].trials) == (("CMA-ME: 2 of 3 trials",), 2)
    assert sphere.missing == ("OMG-MEGA: 0 of 3 trials",)
    assert "omg-mega" not in [each.key for each in sphere.lines]
    assert arm.bound == 88  # cells of a 10 x 10 grid that reach into the disc


def test_cumulative_shares_are_means_over_trials(table1):
    rastrigin = panels.cumulative(read_suite(table1))[1]
    folders = (table1 / "lp-rastrigin.cma-mega").iterdir()
    objectives = [record.read(folder).arrays["objective"] for folder in folders]
    line = rastrigin.lines[6]
    by_hand = [np.mean([(objective >= t).sum() for objective in objectives]) for t in range(101)]
    np.testing.assert_allclose(line.mean, by_hand)
    assert (line.low <= line.mean).all()
    assert (line.mean <= line.high).all()


# Archives -------------------------------------------------------------------------------------------------------------


def test_archives_have_a_row_per_algorithm_and_say_what_is_missing(table1):
    panel = panels.archives(read_suite(table1))
    assert panel.rows[0] == "MAP-Elites"
    assert panel.rows[-1] == "CMA-MEGA (Adam)"
    assert panel.columns == ("LP (sphere)", "LP (Rastrigin)", "Arm repertoire")
    assert panel.notes == {(2, 2): "trial 1", (5, 0): "no trial yet"}
    assert len(panel.maps) == 8 * 3 - 1
    first = record.read(table1 / "lp-sphere.cma-me" / "trial-000").arrays
    assert panel.maps[2, 0].matrix[first["cell"][0] % SIDE, first["cell"][0] // SIDE] == first["objective"][0]
    assert panel.turned().maps[0, 2] is panel.maps[2, 0]


def test_distance_from_the_optimum_keeps_its_digits():
    objective = np.array([100, 81, 0, -5, 100 - 2.0**-32])
    np.testing.assert_allclose(panels.distance_from_optimum(objective), [0, 10, 100, 100, 2.0**-33], rtol=1e-9)


def test_near_optimum_tells_apart_what_float32_stores_as_equal(table1):
    panel = panels.near_optimum(read_suite(table1))
    arrays = record.read(table1 / "arm.cma-mega-adam" / "trial-000").arrays
    variance = arrays["solutions"].astype(np.float64).var(axis=1)
    place = arrays["cell"] % SIDE, arrays["cell"] // SIDE
    np.testing.assert_allclose(panel.nines.matrix[place], -np.log10(50 * variance), rtol=1e-4)
    assert panel.recomputed
    assert panel.step == pytest.approx(2**-17 / 2)
    assert panel.at_optimum == 100 * np.mean(arrays["objective"] == 100)


def test_near_optimum_without_solutions_shows_what_is_stored(tmp_path):
    folder = write_whole_suite(tmp_path / "precision", "precision", [("arm.cma-mega-adam.float64", 0)])
    panel = panels.near_optimum(read_suite(folder))
    assert not panel.recomputed
    assert (panel.precision, panel.step < 1e-14) == ("float64", True)
