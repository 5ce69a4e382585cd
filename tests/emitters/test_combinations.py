"""Algorithms of other papers that are two things of this library together."""

import jax
import jax.numpy as jnp
import numpy as np
from small import GRID, score

import dqd
from dqd.conformance.searching import quick_to_compile
from dqd.emitters.combine import Combined

GRADIENTS = {"sigma1": 0.3, "sigma2": 0.2, "step": 0.1, "independent": True, "batch_size": 24, "stepped": 6}


def illuminate(cells, iterations=40):
    emitter = dqd.og_map_elites_line(**GRADIENTS, initial_population=24)
    with quick_to_compile():
        return dqd.illuminate(score, emitter, cells, x0=jnp.zeros(6), iterations=iterations, progress=False)


def test_gradient_map_elites_spends_as_the_paper_of_2026_says():
    """Elites evaluated with their gradient, stepped from, and as many varied as both together."""
    emitter = dqd.og_map_elites_line(**GRADIENTS)
    assert isinstance(emitter, Combined)
    assert (emitter.num_points, emitter.batch_size) == (6, 6 + 12)
    result = illuminate(GRID)
    assert result.evaluations == 24 + 40 * 24
    assert result.gradients == 40 * 6
    assert result.nonfinite == 0


def test_dns_with_gradients_keeps_no_elite_twice():
    """Elites that are evaluated again for their gradient are not candidates."""
    result = illuminate(dqd.DNS(2, 40))
    assert len(result.archive) == 40
    rows = np.asarray(result.elites.solutions)
    assert len(np.unique(rows, axis=0)) == 40
    assert result.best > 49.9  # of 50, by the gradient


def test_an_elite_that_is_evaluated_again_changes_nothing():
    """Of a noisy function, too: luck the second time would count."""
    calls = []

    def noisy(x):
        calls.append(len(x))
        return np.full(len(x), float(len(calls))), np.clip(x[:, :2], -1, 1)

    def jacobian(x):
        return np.zeros((len(x), 3, x.shape[1]))

    emitter = dqd.omg_mega(0.3, batch_size=4, initial_population=6)
    search = dqd.AskTell(emitter, dqd.Grid([-1, -1], [1, 1], [4, 4]), x0=np.zeros(3), seed=0)
    search.tell(*noisy(search.ask()))
    before = jax.tree.map(np.array, search.archive.objective)
    points = np.asarray(search.ask_dqd())
    search.tell_dqd(*noisy(points), jacobian(points))
    search.ask()
    np.testing.assert_array_equal(search.archive.objective, before)


def test_cma_mega_es_is_cma_mega_on_estimated_jacobians():
    """As Tjanaka et al. (2022) have it: the same emitter, jacobians by an evolution strategy, every sample counted."""

    def batched(x):
        objective, measures = jax.vmap(score)(jnp.asarray(x))
        return np.asarray(objective), np.asarray(measures)

    estimate = dqd.EvolutionStrategies(samples=12, sigma=0.05)
    evaluator = dqd.evaluator(batched, jacobian=estimate)
    result = dqd.illuminate(
        evaluator, dqd.cma_mega(sigma=0.5, batch_size=9), GRID, x0=np.zeros(6), iterations=20, progress=False
    )
    assert result.evaluations == 20 * (9 + 12)
    assert result.gradients == 20
    assert result.coverage > 10
