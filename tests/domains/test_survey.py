"""A sigma is found whatever the scale of solutions and measures."""

import numpy as np
import pytest
from explorer.voronoi import Voronoi

import dqd
from dqd.domains.survey import CELLS, LOSS, SAMPLES, Survey, cells_along, lead, within
from dqd.inputs.bounds import Box
from dqd.types import Evaluation, replace

GRID = dqd.Grid(lower=[-1, -1], upper=[1, 1], shape=[100, 100])


class Linear:
    """Measures of known slopes; counts what it is asked."""

    def __init__(self, n=20, unit=1.0, slopes=(1.0, 1.0), spoil=lambda measures: measures):
        self.rows = np.zeros((3, n))
        self.rows[0, -1] = 1 / unit
        self.rows[1, 0], self.rows[2, 1] = slopes[0] / unit, slopes[1] / unit
        self.spoil, self.evaluations, self.jacobians = spoil, 0, 0

    def __call__(self, ask):
        self.evaluations += len(ask.solutions)
        self.jacobians += ask.jacobian
        outputs = ask.solutions.astype(float) @ self.rows.T
        jacobian = np.broadcast_to(self.rows, (len(outputs), *self.rows.shape)) if ask.jacobian else None
        return Evaluation(outputs[:, 0], self.spoil(outputs[:, 1:]), jacobian)


def survey(problem, along, grid=GRID, x0=None, bounds=None):
    start = np.zeros(problem.rows.shape[1]) if x0 is None else x0
    return lead(Survey(start, grid, bounds).sigma(along), problem)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("along", ["solutions", "unit gradients"])
def test_steps_of_the_chosen_size_cross_as_many_cells_as_said(along, unit):
    """Cells are 0.02 wide, and a step of 1 in a coordinate, or along a unit gradient, changes a measure by 1 / unit."""
    assert survey(Linear(unit=unit), along) == pytest.approx(0.02 * CELLS[along] * unit, rel=0.3)


def test_raw_gradients_have_their_own_size():
    assert survey(Linear(unit=1e-2), "gradients") == pytest.approx(0.02 * CELLS["gradients"] * 1e-4, rel=0.3)


def test_every_coordinate_moves_by_a_step_along_signs():
    problem = Linear()
    problem.rows[1, :10], problem.rows[2, 10:] = 1, 1
    assert survey(problem, "signs of gradients") == pytest.approx(0.02 * CELLS["signs of gradients"] / 10, rel=0.1)


def test_of_unequal_measures_the_geometric_mean_counts():
    assert survey(Linear(slopes=(10.0, 0.1)), "solutions") == pytest.approx(0.02 * CELLS["solutions"], rel=0.4)


def test_a_measure_that_never_changes_is_left_out():
    assert survey(Linear(slopes=(1.0, 0.0)), "solutions") == pytest.approx(0.02 * CELLS["solutions"], rel=0.3)


def test_no_step_need_cross_more_than_a_quarter_of_the_cells():
    """Measures that saturate could never cross ten of four."""
    few = dqd.Grid(lower=[-1, -1], upper=[1, 1], shape=[4, 4])
    assert 0.4 < survey(Linear(spoil=np.tanh), "unit gradients", few) < 1.2


def test_steps_are_not_longer_than_measures_follow():
    """Random steps of more than 1 change these no further; a cell would be out of reach."""
    few = dqd.Grid(lower=[-40, -40], upper=[40, 40], shape=[40, 40])
    assert 0.3 < survey(Linear(spoil=lambda measures: np.clip(measures, -1, 1)), "solutions", few) < 7


@pytest.mark.parametrize("cells", [0.2, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_taken_for_steps(cells, seed):
    draw = np.random.default_rng(seed)
    noisy = lambda measures: measures + 0.02 * cells * draw.normal(size=measures.shape)  # noqa: E731
    assert survey(Linear(unit=1e3, spoil=noisy), "solutions") == pytest.approx(0.02 * CELLS["solutions"] * 1e3, rel=0.6)


def test_random_steps_do_not_cost_more_than_a_tenth_of_the_objective():
    def evaluate(ask):
        return Evaluation(5 - 2 * np.mean(ask.solutions**2, axis=1), 0.05 * ask.solutions[:, :2])

    sigma = lead(Survey(np.zeros(400), GRID, offset=1.0).sigma("solutions"), evaluate)
    assert sigma == pytest.approx((LOSS * 4 / 2) ** 0.5, rel=0.2)  # where 2 sigma^2 is a tenth of 5 - 1
    free = lead(Survey(np.zeros(400), GRID, offset=5.0).sigma("solutions"), evaluate)  # nothing to lose
    assert free == pytest.approx(0.02 * CELLS["solutions"] / 0.05, rel=0.3)


def test_some_dozens_of_evaluations_are_enough():
    problem = Linear(unit=1e4)
    survey(problem, "unit gradients")
    assert problem.evaluations - problem.jacobians <= 9 * (SAMPLES + 2)
    assert problem.jacobians <= 9


def test_what_is_not_finite_makes_steps_shorter():
    beyond = lambda measures: np.where(np.abs(measures) > 0.5, np.nan, measures)  # noqa: E731
    assert survey(Linear(unit=1e-8, spoil=beyond), "solutions") == pytest.approx(
        0.02 * CELLS["solutions"] * 1e-8, rel=0.5
    )


@pytest.mark.parametrize("by", ["clip", "reflect", "smooth"])
def test_samples_stay_inside_the_bounds(by):
    problem, seen = Linear(), []

    def watched(ask):
        seen.append(ask.solutions)
        return problem(ask)

    bounds = Box.of(np.full(20, -0.01), np.full(20, 0.03), np.zeros(20), by)
    lead(within(Survey.of(np.zeros(20), GRID, bounds).sigma("solutions"), bounds), watched)
    assert np.concatenate(seen).min() >= -0.01
    assert np.concatenate(seen).max() <= 0.03


def test_measures_that_never_change_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"sigma: none could be chosen.*give sigma a number"):
        survey(Linear(slopes=(0.0, 0.0)), "solutions")


@pytest.mark.parametrize("at_x0", [0.0, np.nan])
def test_where_no_gradient_can_be_followed_steps_are_tried_beside_x0(at_x0):
    """As at the centre of a norm, whose gradient is NaN there, or of a square."""
    linear = Linear()

    def look(ask):
        found = linear(ask)
        if found.jacobian is not None and not ask.solutions.any():
            return replace(found, jacobian=np.full_like(found.jacobian, at_x0))
        return found

    chosen = lead(Survey(np.zeros(20), GRID).sigma("unit gradients"), look)
    assert chosen == pytest.approx(survey(Linear(), "unit gradients"), rel=0.5)


def test_it_is_the_same_whenever_it_is_made():
    assert survey(Linear(), "unit gradients") == survey(Linear(), "unit gradients")


def test_cells_of_any_tessellation_have_a_width():
    sites = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    assert survey(Linear(), "solutions", Voronoi(tuple(map(tuple, sites)))) == pytest.approx(
        0.1 * CELLS["solutions"], rel=0.4
    )


@pytest.mark.parametrize("centroids", [[[0, 0], [0, 1]], [[0.3, 0.3]]])
def test_where_all_cells_lie_in_a_line_they_have_a_width_across_it_too(centroids):
    widths, _ = cells_along(dqd.CVT(centroids))
    assert np.all(widths > 0.1)
