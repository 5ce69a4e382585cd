import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dqd.domains import Arm, Domain, Evaluator, FunctionDomain, LinearProjection

pytestmark = pytest.mark.x64

DOMAINS = {
    "sphere": lambda n: LinearProjection("sphere", n),
    "rastrigin": lambda n: LinearProjection("rastrigin", n),
    "arm": Arm,
}
BREAKS = 5.12  # where the clip of the linear projection jumps

evaluate = jax.jit(lambda domain, points: domain.evaluate(points))
evaluate_with_jacobian = jax.jit(lambda domain, points: domain.evaluate_with_jacobian(points))


def central_differences(domain, x, h=1e-5):
    """Rows of slopes of the raw objective and of the measures, (1 + k, n), extrapolated to h = 0."""

    def outputs(points):
        found = evaluate(domain, points)
        scale, offset = domain.transform
        return np.column_stack([(np.asarray(found.objective) - offset) / scale, found.measures])

    def slopes(h):
        steps = h * np.eye(x.size)
        return (outputs(x + steps) - outputs(x - steps)) / (2 * h)

    return ((4 * slopes(h) - slopes(2 * h)) / 3).T


def points_of(n):
    """The start of every search, points inside the box and points mostly outside, none of them next to a jump."""
    generator = np.random.default_rng(n)
    points = np.stack([np.zeros(n), generator.normal(size=n), generator.uniform(-20, 20, n), np.full(n, 2.048)])
    return np.where(np.abs(np.abs(points) - BREAKS) < 1e-3, 1.0, points)


@pytest.mark.parametrize("n", [2, 7])
@pytest.mark.parametrize("name", DOMAINS)
def test_jacobians_equal_finite_differences(name, n):
    domain, points = DOMAINS[name](n), points_of(n)
    found = evaluate_with_jacobian(domain, points)
    assert found.jacobian.shape == (4, 3, n)
    for x, jacobian in zip(points, found.jacobian, strict=True):
        assert_allclose(jacobian, central_differences(domain, x), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", DOMAINS)
def test_evaluation_is_the_same_with_and_without_a_jacobian_and_row_by_row(name):
    domain, points = DOMAINS[name](7), jnp.asarray(points_of(7))
    plain, full = evaluate(domain, points), evaluate_with_jacobian(domain, points)
    assert_allclose(plain.objective, full.objective, rtol=1e-14)
    assert_allclose(plain.measures, full.measures, rtol=1e-14, atol=1e-14)
    assert plain.jacobian is None
    scale, offset = domain.transform
    for x, objective, measures in zip(points, plain.objective, plain.measures, strict=True):
        raw, expected = domain.score(x)
        assert objective == pytest.approx(float(scale * raw + offset), rel=1e-12)
        assert_allclose(measures, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DOMAINS)
def test_equal_domains_share_one_compiled_program(name):
    traces = []

    @jax.jit
    def objective(domain, points):
        traces.append(1)
        return domain.evaluate(points).objective

    points = jnp.asarray(points_of(7))
    for _ in range(2):
        assert_allclose(objective(DOMAINS[name](7), points), evaluate(DOMAINS[name](7), points).objective, rtol=1e-12)
    assert len(traces) == 1


def test_a_plain_function_becomes_a_domain_whose_jacobian_has_the_objective_first():
    domain = FunctionDomain(lambda x: (x[0] * x[1], jnp.stack([x[2], 2 * x[0], x[1] ** 2])))
    found = domain.evaluate_with_jacobian(jnp.array([[2.0, 3.0, 5.0]]))
    assert found.objective.tolist() == [6.0]
    assert found.measures.tolist() == [[5.0, 4.0, 9.0]]
    assert found.jacobian.tolist() == [[[3.0, 2.0, 0.0], [0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 6.0, 0.0]]]


def test_the_stored_objective_is_an_affine_transform_and_the_jacobian_stays_raw():
    class Shifted(Domain):
        transform = (-2.0, 10.0)

        def score(self, x):
            return 3 * x[0], x[1:]

    found = Shifted().evaluate_with_jacobian(jnp.array([[1.0, 7.0]]))
    assert found.objective.tolist() == [4.0]
    assert found.jacobian.tolist() == [[[3.0, 0.0], [0.0, 1.0]]]


@pytest.mark.parametrize("name", DOMAINS)
def test_domains_are_evaluators(name):
    assert isinstance(DOMAINS[name](4), Evaluator)
