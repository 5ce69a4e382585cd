"""Bounds by reflection and by a smooth map: on every path, in every phase, for every algorithm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from conformance.table import EMITTERS

import dqd

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
LOWER = np.array([-1.0, -2.0, -np.inf, 0.0, -np.inf, -0.5])
UPPER = np.array([2.0, 2.0, 0.5, np.inf, np.inf, 0.5])
START = np.array([0.5, 0.0, -0.5, 1.0, 0.25, 0.0])  # in the middle of the boxes, 1 away from single walls
MEGA = dqd.cma_mega(0.5, batch_size=9)


def score(x):
    return 50 - jnp.sum((x - 1) ** 2), x[:2] + x[2:4] + 0.1 * x[4:] ** 2


def composed(z):
    """The smooth map by hand, coordinate by coordinate."""
    x = [0.5 + 1.5 * jnp.tanh((z[0] - 0.5) / 1.5), 2 * jnp.tanh(z[1] / 2), 0.5 - jnp.log1p(jnp.exp(0.5 - z[2]))]
    return jnp.stack([*x, jnp.log1p(jnp.exp(z[3])), z[4], 0.5 * jnp.tanh(z[5] / 0.5)])


INVERSE = [0.5, 0.0, 0.5 - np.log(np.expm1(1)), np.log(np.expm1(1)), 0.25, 0.0]  # of START
evaluate = jax.jit(jax.vmap(score))
differentiate = jax.jit(jax.vmap(jax.jacobian(lambda x: jnp.hstack(score(x)))))


def run(emitter, by, function=score, **options):
    settings = {"x0": START, "iterations": 10, "progress": False, "bounds": dqd.Bounds(LOWER, UPPER, by)}
    return dqd.illuminate(function, emitter, GRID, **{**settings, **options})


def assert_true(elites, least=10):
    """Every elite lies within the bounds and is what it is said to be."""
    assert len(elites.solutions) >= least
    assert (elites.solutions >= LOWER.astype(elites.solutions.dtype)).all()
    assert (elites.solutions <= UPPER.astype(elites.solutions.dtype)).all()
    objective, measures = evaluate(elites.solutions)
    np.testing.assert_allclose(elites.objective, objective, rtol=1e-5)
    np.testing.assert_allclose(elites.measures, measures, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["reflect", "smooth"])
@pytest.mark.parametrize("name", small.mostly_long(EMITTERS))
def test_every_elite_of_every_algorithm_lies_inside_and_is_true(name, by):
    assert_true(run(EMITTERS[name](), by).elites, least=5)


@pytest.mark.x64
@pytest.mark.parametrize("name", small.mostly_long(EMITTERS, "omg_mega", "targeting"))
def test_a_smooth_search_is_a_free_one_of_the_composed_function(name):
    """Whose jacobians are JAX's own: the chain rule holds, and elites are seen in the coordinates of the search."""
    free = run(EMITTERS[name](), "smooth", lambda z: score(composed(z)), x0=np.array(INVERSE), bounds=None)
    found = run(EMITTERS[name](), "smooth")
    np.testing.assert_array_equal(found.elites.cell, free.elites.cell)
    np.testing.assert_allclose(found.elites.objective, free.elites.objective, rtol=1e-6)
    np.testing.assert_allclose(found.elites.solutions, jax.vmap(composed)(free.elites.solutions), rtol=1e-5, atol=1e-7)


def asked(by, iterations=10, **options):
    search = dqd.AskTell(MEGA, GRID, x0=START, bounds=dqd.Bounds(LOWER, UPPER, by), **options)
    while search.iteration < iterations:
        points = search.ask_dqd()
        search.tell_dqd(*evaluate(points), differentiate(points))
        solutions = search.ask()
        search.tell(*evaluate(solutions))
    return search


@pytest.mark.x64
@pytest.mark.parametrize("by", ["reflect", "smooth"])
def test_ones_own_loop_finds_what_the_compiled_run_does_and_goes_on_from_disk(by, tmp_path):
    whole = run(MEGA, by, iterations=20).elites
    with asked(by, 10, out=tmp_path):
        pass
    with asked(by, 20, out=tmp_path) as search:
        resumed = search.archive.elites
    stored = dqd.load(tmp_path).elites
    assert_true(resumed)
    for elites in (resumed, stored):
        np.testing.assert_array_equal(elites.solutions, whole.solutions)
        np.testing.assert_array_equal(elites.objective, whole.objective)


@pytest.mark.parametrize("by", small.mostly_long(["reflect", "smooth"], "smooth"))
def test_a_sigma_is_chosen_and_jacobians_estimated_inside(by):
    seen = []

    def simulate(solutions):
        seen.append(solutions.copy())
        return tuple(np.asarray(part) for part in evaluate(solutions))

    found = run(dqd.cma_mega(batch_size=9), by, dqd.evaluator(simulate, jacobian="fd"), iterations=5)
    everything = np.concatenate(seen)
    assert (everything >= LOWER.astype(np.float32)).all()
    assert (everything <= UPPER.astype(np.float32)).all()
    assert found.chosen["unit gradients"] > 0
    assert_true(found.elites)
