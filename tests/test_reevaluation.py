"""Elites of a noisy function looked at once more: the luck is gone, what is true stays."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import dqd

GRID = dqd.Grid([-2, -2], [2, 2], [6, 6])
ELITES = dqd.map_elites(0.5, batch_size=6, initial_population=12)


def true(solutions):
    return -np.sum(solutions**2, axis=1), solutions[:, :2]


def noisy(spread):
    generator = np.random.default_rng(0)

    def function(solutions):
        objective, measures = true(solutions)
        return objective + generator.normal(0, spread, len(objective)), measures

    return function


@pytest.fixture(scope="module")
def found():
    return dqd.illuminate(dqd.evaluator(noisy(1.0)), ELITES, GRID, x0=np.zeros(3), iterations=20, progress=False)


def test_luck_is_gone(found):
    truth = true(found.elites.solutions)[0].mean()
    again = dqd.reevaluate(found, dqd.evaluator(noisy(1.0)), repetitions=100)
    assert found.elites.objective.mean() > truth + 0.3
    assert again.mean == pytest.approx(truth, abs=0.1)
    assert again.provisional.qd_score == found.qd_score
    assert again.evaluations == found.evaluations + 100 * len(found.archive)
    np.testing.assert_array_equal(again.elites.found, found.elites.found)


def test_workers_and_scores_in_jax_and_estimators_do_it_as_well(found):
    with ThreadPoolExecutor(2) as pool:
        shared = dqd.reevaluate(found, dqd.evaluator(true, "es"), where=pool)
    compiled = dqd.reevaluate(found, lambda x: (-jnp.sum(x**2), x[:2]))
    for again in (shared, compiled):
        np.testing.assert_allclose(again.elites.objective, true(found.elites.solutions)[0], rtol=1e-5)
        assert again.evaluations == found.evaluations + len(found.archive)


def test_what_is_infeasible_or_not_finite_is_dropped(found):
    def strict(solutions):
        objective, measures = true(solutions)
        objective[:1] = np.nan
        return SimpleNamespace(objective=objective, measures=measures, feasible=np.arange(len(objective)) != 1)

    assert len(dqd.reevaluate(found, dqd.evaluator(strict)).archive) == len(found.archive) - 2


def test_a_judge_in_jax_may_find_elites_infeasible(found):
    again = dqd.reevaluate(found, lambda x: (-jnp.sum(x**2), x[:2], x[0] > 0))
    assert 0 < len(again.archive) == (found.elites.solutions[:, 0] > 0).sum()


def test_mistakes_are_explained(found):
    with pytest.raises(ValueError, match="reevaluate: repetitions: expected a whole number, at least 1, got 0"):
        dqd.reevaluate(found, dqd.evaluator(true), 0)
