"""Jacobians estimated from plain evaluations, against exact ones and closed forms."""

import numpy as np
import pytest

import dqd
from dqd.inputs.estimates import Estimate

N = 7


def smooth(x):
    """Objective and two measures (m, 3) of solutions (m, 7)."""
    return np.stack([np.sin(x).sum(axis=1), (x**3).mean(axis=1), x[:, 0] * x[:, 1]], axis=1)


def exact(x):
    products = np.zeros(N)
    products[0], products[1] = x[1], x[0]
    return np.stack([np.cos(x), 3 * x**2 / N, products])


def linear(x):
    return x.astype(float) @ SLOPES.T + [3.0, -1.0]


SLOPES = np.random.default_rng(1).normal(size=(2, N))
POINT = np.random.default_rng(0).normal(size=N)


def estimated(estimate, function, point=POINT, bounds=None):
    samples = estimate.around(point, bounds)
    return estimate.jacobian(point, samples, function(samples))


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-4), (np.float64, 1e-9)])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_differences_choose_their_step_by_the_precision_of_solutions_and_their_scale(dtype, error, scale):
    point = (scale * POINT).astype(dtype)
    found = estimated(dqd.FiniteDifferences(), lambda x: smooth(x / dtype(scale)), point)
    assert np.abs(scale * found - exact(point.astype(float) / scale)).max() < error
    for worse in (1e-3, 1e3):
        step = worse * np.cbrt(np.finfo(dtype).eps)
        off = estimated(dqd.FiniteDifferences(step), lambda x: smooth(x / dtype(scale)), point)
        assert not np.abs(scale * off - exact(point.astype(float) / scale)).max() < 10 * error


def test_a_step_that_rounding_shortens_is_measured_as_it_is():
    point = np.float32([1000.0, 1.0])
    found = estimated(dqd.FiniteDifferences(1e-6), lambda x: x.astype(float), point)  # 1e-3 at 1000, whose ulp is 6e-5
    np.testing.assert_allclose(found, np.eye(2), rtol=1e-12)


@pytest.mark.parametrize("estimate", [dqd.FiniteDifferences(), dqd.EvolutionStrategies(6)])
def test_samples_keep_their_bounds(estimate):
    bounds = (np.full(N, -0.6), POINT.clip(None, 0.3))
    point = POINT.clip(*bounds)
    samples = estimate.around(point, bounds)
    assert (samples >= bounds[0]).all()
    assert (samples <= bounds[1]).all()
    assert (samples == bounds[1]).any()


def test_at_a_bound_differences_are_one_sided():
    bounds = (POINT - 1, POINT)
    np.testing.assert_allclose(estimated(dqd.FiniteDifferences(), linear, bounds=bounds), SLOPES, rtol=1e-8)
    found = estimated(dqd.FiniteDifferences(), smooth, bounds=bounds)
    np.testing.assert_allclose(found, exact(POINT), atol=1e-4)  # of first order in h only


def test_an_evolution_strategy_is_the_mean_of_rises_along_its_directions():
    estimate = dqd.EvolutionStrategies(samples=6, sigma=0.3)
    samples = estimate.around(POINT, None)
    directions = (samples[:3] - POINT) / 0.3
    np.testing.assert_allclose(samples[3:], POINT - 0.3 * directions)
    rises = smooth(samples[:3]) - smooth(samples[3:])
    by_hand = np.mean(rises[:, :, None] * directions[:, None] / (2 * 0.3), axis=0)
    np.testing.assert_allclose(estimated(estimate, smooth), by_hand)


@pytest.mark.parametrize("bounds", [None, (POINT - 0.1, POINT + 0.02)], ids=["free", "bounded"])
def test_an_evolution_strategy_is_unbiased_on_linear_functions(bounds):
    """With m pairs the estimate of g has mean g and, without bounds, covariance (|g|^2 I + g g^T) / m."""
    pairs, trials = 4, 4000
    found = np.stack(
        [
            estimated(dqd.EvolutionStrategies(2 * pairs, sigma=0.1, seed=seed), linear, bounds=bounds)
            for seed in range(trials)
        ]
    )
    deviation = found.std(axis=0)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - SLOPES), 4.5 * deviation / trials**0.5)
    if bounds is None:
        expected = np.sqrt(((SLOPES**2).sum(axis=1, keepdims=True) + SLOPES**2) / pairs)
        np.testing.assert_allclose(deviation, expected, rtol=0.1)


def test_an_evolution_strategy_converges_to_the_jacobian():
    errors = [
        np.abs(estimated(dqd.EvolutionStrategies(samples, sigma=0.01), smooth) - exact(POINT)).max()
        for samples in (20, 2000, 200_000)
    ]
    assert errors[2] < 0.03
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_directions_belong_to_the_point_and_the_seed_alone():
    around = dqd.EvolutionStrategies(4).around
    np.testing.assert_array_equal(around(POINT, None), dqd.EvolutionStrategies(4).around(POINT.copy(), None))
    other = [around(POINT + 1e-9, None) - 1e-9, dqd.EvolutionStrategies(4, seed=1).around(POINT, None)]
    assert all(np.abs(samples - around(POINT, None)).max() > 1e-3 for samples in other)


def test_a_pair_that_failed_is_left_out():
    def with_holes(x):
        outputs = linear(x)
        outputs[1] = np.nan
        return outputs

    found = estimated(dqd.EvolutionStrategies(2000), with_holes)
    np.testing.assert_allclose(found, SLOPES, atol=0.5)
    differences = estimated(dqd.FiniteDifferences(), with_holes)
    assert np.isnan(differences[:, 1]).all()
    np.testing.assert_allclose(np.delete(differences, 1, axis=1), np.delete(SLOPES, 1, axis=1), rtol=1e-8)
    assert np.isnan(estimated(dqd.EvolutionStrategies(4), lambda x: np.full((len(x), 2), np.nan))).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dqd.FiniteDifferences(0.0), "step: expected a finite number above 0, got 0.0"),
        (lambda: dqd.EvolutionStrategies(7), "samples: expected an even number, at least 2, got 7"),
        (lambda: dqd.EvolutionStrategies(sigma=float("inf")), "sigma: expected a finite number above 0"),
        (lambda: dqd.EvolutionStrategies(seed=-1), "seed: expected a whole number"),
    ],
)
def test_mistakes_are_explained(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_both_are_estimates():
    assert all(isinstance(one, Estimate) for one in (dqd.FiniteDifferences(), dqd.EvolutionStrategies()))
