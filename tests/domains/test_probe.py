"""A first look at a function tells its scales, whatever kind of function it is."""

import jax.numpy as jnp
import numpy as np
import pytest

import dqd

N = 20


def score(x):
    return 3.0 - jnp.sum(x**2), jnp.array([1000 * x[0], 0.01 * x[1:].mean()])


def numpy_score(x):
    return 3.0 - (x**2).sum(axis=1), np.column_stack([1000 * x[:, 0], 0.01 * x[:, 1:].mean(axis=1)])


def test_it_tells_ranges_gradients_and_sigma_and_prints_as_a_table():
    found = dqd.probe(score, jnp.zeros(N))
    assert found.objective[1] == pytest.approx(3.0)
    reach = 1000 * np.sqrt(N)  # as far along the gradient as a random solution lies away
    assert (found.lower[0], found.upper[0]) == (pytest.approx(-reach, rel=1e-3), pytest.approx(reach, rel=1e-3))
    assert found.grid.lower[0] < found.lower[0] < found.upper[0] < found.grid.upper[0]
    assert found.grid.num_cells == 10_000
    np.testing.assert_allclose(found.gradients[1:], [1000, 0.01 / np.sqrt(N - 1)], rtol=1e-4)
    assert found.condition >= 1
    assert found.noise.tolist() == [0, 0, 0]
    assert found.remarks == []
    assert set(found.sigma) == {"unit gradients", "solutions"}
    assert found.evaluations < 160
    assert found.expected_seconds > 0
    text = str(found)
    assert all(name in text for name in ("the objective", "measure 0", "measure 1", "grid", "sigma", "cost"))
    assert f"{found.sigma['solutions']:.3g} along solutions" in text


def test_its_sigma_is_the_one_that_a_search_chooses():
    grid = dqd.Grid(lower=[-4000, -0.02], upper=[4000, 0.02], shape=[50, 50])
    result = dqd.illuminate(score, dqd.map_elites(), grid, x0=jnp.zeros(N), iterations=1, progress=False)
    assert dqd.probe(score, jnp.zeros(N), grid).sigma["solutions"] == pytest.approx(
        result.chosen["solutions"], rel=0.02
    )


def test_an_evaluator_without_gradients_is_looked_at_without_them():
    noise = np.random.default_rng(0)

    def noisy(x):
        objective, measures = numpy_score(x)
        return objective + noise.normal(size=len(x)), measures

    found = dqd.probe(dqd.evaluator(noisy), np.zeros(N))
    assert (found.gradients, found.condition, found.jacobian_seconds) == (None, None, None)
    assert found.noise[0] > 0
    assert found.noise[1:].tolist() == [0, 0]
    assert set(found.sigma) == {"solutions"}
    assert str(found)


def test_rows_that_cannot_be_followed_are_named():
    def rounded(x):
        return -jnp.sum(x**2), jnp.array([jnp.round(x[0]), x[1]])

    found = dqd.probe(rounded, jnp.zeros(N))
    assert any("row 1 (measure 0) is zero" in line for line in found.remarks)
    assert found.condition == np.inf
    assert "row 1 (measure 0) is zero" in str(found)


def test_domains_problems_pytrees_and_bounds():
    arm = dqd.Arm(N)
    problem = dqd.Problem(arm, arm.grid(20), jnp.zeros(N), "arm", ("objective", "x", "y"))
    assert dqd.probe(problem).sigma == dqd.probe(arm, jnp.zeros(N), arm.grid(20)).sigma
    tree = dqd.probe(lambda x: (x["a"].sum(), x["b"][:2]), {"a": jnp.zeros(2), "b": jnp.zeros(3)}, bounds=(-2, 2))
    assert tree.n == 5
    np.testing.assert_allclose([tree.lower, tree.upper], [[-2, -2], [2, 2]])


def test_nothing_finite_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match="no evaluation around x0 was finite"):
        dqd.probe(dqd.evaluator(lambda x: (np.full(len(x), np.nan), x[:, :2])), np.zeros(N))
