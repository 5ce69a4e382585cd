import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.domains import Arm

pytestmark = pytest.mark.x64

evaluate = jax.jit(lambda domain, points: domain.evaluate(points))
evaluate_with_jacobian = jax.jit(lambda domain, points: domain.evaluate_with_jacobian(points))


def test_known_answers_of_the_specification_for_a_straight_arm():
    found = evaluate_with_jacobian(Arm(), jnp.zeros((1, 1000)))
    assert found.objective.tolist() == [100.0]
    assert found.measures.tolist() == [[1000.0, 0.0]]
    np.testing.assert_array_equal(found.jacobian[0, :2], 0)
    np.testing.assert_allclose(found.jacobian[0, 2], np.arange(1000, 0, -1), rtol=1e-14)


def test_angles_are_relative_to_the_link_before():
    found = evaluate(Arm(3), jnp.array([[np.pi / 2, -np.pi / 2, np.pi / 2]]))
    np.testing.assert_allclose(found.measures, [[1.0, 2.0]], atol=1e-15)  # up, right, up


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_values_and_gradients_equal_the_closed_forms_of_the_specification(n):
    a = np.random.default_rng(n).normal(size=n)
    directions = np.cumsum(a)
    found = evaluate_with_jacobian(Arm(n), a[None])
    assert found.objective[0] == pytest.approx(100 * (1 - np.var(a)), rel=1e-12)
    np.testing.assert_allclose(found.measures[0], [np.cos(directions).sum(), np.sin(directions).sum()], rtol=1e-10)
    from_the_end = lambda values: np.cumsum(values[::-1])[::-1]  # noqa: E731
    expected = [-2 * (a - a.mean()) / n, -from_the_end(np.sin(directions)), from_the_end(np.cos(directions))]
    np.testing.assert_allclose(found.jacobian[0], expected, rtol=1e-9, atol=1e-9)


def test_the_variance_is_that_of_the_population():
    assert evaluate(Arm(2), jnp.array([[0.0, 1.0]])).objective.tolist() == [75.0]


def test_joints_start_at_the_base_are_one_apart_and_end_at_the_measures():
    x = jnp.asarray(np.random.default_rng(0).normal(size=9))
    joints = np.asarray(Arm(9).joints(x))
    assert joints.shape == (10, 2)
    assert joints[0].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(np.linalg.norm(np.diff(joints, axis=0), axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(joints[-1], evaluate(Arm(9), x[None]).measures[0], rtol=1e-12)


def test_no_arm_reaches_beyond_its_grid():
    grid = Arm(7).grid(10)
    assert (grid.lower, grid.upper, grid.shape) == ((-7.0, -7.0), (7.0, 7.0), (10, 10))
    measures = evaluate(Arm(7), jnp.asarray(np.random.default_rng(0).normal(0, 0.3, (500, 7)))).measures
    assert not bool(jnp.any(grid.outside(measures)))
    assert np.linalg.norm(measures, axis=1).max() > 6


def test_an_arm_without_joints_is_refused():
    with pytest.raises(ValueError, match="an arm needs at least 1 joint, got 0"):
        Arm(0)
