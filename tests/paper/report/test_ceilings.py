"""The known optima, against known values and against brute force."""

import numpy as np
import pytest

from dqd.paper.report.ceilings import LIMIT, SHIFT, ceiling, convex_envelope, rastrigin, sphere


def test_sphere_at_the_papers_resolution():
    best = ceiling("lp-sphere")
    assert best.qd_score == pytest.approx(75.418, abs=5e-4)
    assert (best.coverage, best.best, best.symmetric_qd_score) == (100, 100, best.qd_score)


def test_rastrigin_at_the_papers_resolution():
    best = ceiling("lp-rastrigin")
    assert best.qd_score == pytest.approx(77.33, abs=5e-3)
    assert best.symmetric_qd_score == pytest.approx(63.296, abs=5e-4)
    assert best.coverage == 100


def test_arm_at_the_papers_resolution():
    best = ceiling("arm")
    assert best.coverage == pytest.approx(80.24, abs=1e-9)
    assert best.qd_score == pytest.approx(80.24, abs=1e-9)


def test_on_the_plateau_every_cell_that_is_reached_is_worth_100():
    best = ceiling("lp-plateau", n=100)
    assert best.qd_score == best.coverage == ceiling("lp-sphere", n=100).coverage


def test_arm_counts_by_hand_on_a_coarse_grid():
    # 4 x 4 cells of width 1, radius 2: even the corner cells, whose nearest point is (1, 1), reach in.
    assert ceiling("arm", 4).coverage == 100
    # 10 x 10, radius 5: the nearest corners (3, 4), (4, 3) touch, (4, 4) is out: 3 cells per quadrant are lost.
    assert ceiling("arm", 10).coverage == 88
    assert ceiling("arm", 10, n=7) == ceiling("arm", 10, n=1000)


def test_arm_approaches_the_disc():
    assert ceiling("arm", 2000).coverage == pytest.approx(25 * np.pi, abs=0.1)


def test_a_domain_nobody_knows_has_no_ceiling():
    assert ceiling("lsi-elon", 200, 512) is None


@pytest.mark.parametrize("resolution", [3, 10, 37])
def test_sphere_agrees_with_brute_force_over_two_coordinates(resolution):
    best = _brute_force(sphere, resolution)
    assert ceiling("lp-sphere", resolution, n=2).qd_score == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("resolution", [3, 10, 37])
def test_rastrigin_plane_agrees_with_brute_force_over_two_coordinates(resolution):
    # With one coordinate per half nothing can be mixed.
    best = _brute_force(rastrigin, resolution)
    assert ceiling("lp-rastrigin", resolution, n=2).symmetric_qd_score == pytest.approx(best, abs=0.05)


def _brute_force(cost, resolution: int) -> float:
    """Every x on a fine grid, half of it beyond the box, where the measure folds back."""
    x = np.linspace(-12, 12, 240_001)
    measure = np.where(abs(x) <= LIMIT, x, LIMIT / np.where(x == 0, 1, x))
    cell = np.clip(((measure + LIMIT) / (2 * LIMIT) * resolution).astype(int), 0, resolution - 1)
    least = np.full(resolution, np.inf)
    np.minimum.at(least, cell, cost(x))
    return float(np.mean(100 * (1 - (least[:, None] + least[None, :]) / (2 * cost(np.array(-LIMIT))))))


@pytest.mark.parametrize("cost", [sphere, rastrigin])
def test_leaving_the_box_never_pays(cost):
    x = np.concatenate([np.linspace(LIMIT + 1e-9, 30, 300_001), np.geomspace(30, 1e6, 10_001)])
    for outside in (x, -x):
        assert np.all(cost(outside) > cost(LIMIT / outside))


def test_odd_dimension_leaves_cells_that_the_smaller_half_cannot_reach():
    # n = 3: the first half is one coordinate and spans the middle 2/3 of its axis: 10 widths, reaching into 11 cells.
    best = ceiling("lp-sphere", 15, n=3)
    assert best.coverage == pytest.approx(100 * 11 / 15)
    assert 0 < best.qd_score < best.coverage


def test_envelope_is_convex_and_touches_the_curve():
    envelope = convex_envelope(rastrigin)
    x = np.linspace(-LIMIT, LIMIT, 2001)
    y = envelope(x)
    assert np.all(y <= rastrigin(x) + 1e-4)
    assert np.all(np.diff(y, 2) > -1e-4 * (x[1] - x[0]))
    assert envelope(SHIFT) == pytest.approx(0, abs=1e-6)
    assert envelope(np.array([-LIMIT])) == pytest.approx(rastrigin(np.array([-LIMIT])))


def test_envelope_bounds_mixtures_of_many_coordinates():
    rng = np.random.default_rng(0)
    envelope = convex_envelope(rastrigin)
    x = rng.uniform(-LIMIT, LIMIT, (2000, 20))
    assert np.all(rastrigin(x).mean(axis=1) >= envelope(x.mean(axis=1)) - 1e-9)


def test_envelope_is_reached_by_the_best_pair_of_values():
    near = np.linspace(-0.2, 0.2, 401)
    left, right = SHIFT - 3 + near[:, None], SHIFT - 2 + near[None, :]
    mean = SHIFT - 2.4
    share = (right - mean) / (right - left)
    mixed = share * rastrigin(left) + (1 - share) * rastrigin(right)
    assert convex_envelope(rastrigin)(mean) == pytest.approx(mixed.min(), abs=1e-3)


def test_finer_grids_have_lower_ceilings():
    for domain in ("lp-sphere", "lp-rastrigin", "arm"):
        assert ceiling(domain, 100).qd_score > ceiling(domain, 500).qd_score
