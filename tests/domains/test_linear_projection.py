import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.domains import LinearProjection
from dqd.domains.linear_projection import clip

pytestmark = pytest.mark.x64

evaluate = jax.jit(lambda domain, points: domain.evaluate(points))
evaluate_with_jacobian = jax.jit(lambda domain, points: domain.evaluate_with_jacobian(points))

SPHERE, RASTRIGIN = LinearProjection("sphere"), LinearProjection("rastrigin")
PLATEAU = LinearProjection("plateau")


def at(domain, value):
    found = evaluate(domain, jnp.full((1, domain.n), value))
    return float(found.objective[0]), found.measures[0].tolist()


@pytest.mark.parametrize(
    ("domain", "value", "objective", "measure"),
    [
        (SPHERE, 0.0, 91.836734694, 0.0),
        (RASTRIGIN, 0.0, 91.770742708, 0.0),
        (SPHERE, 2.048, 100.0, 1024.0),
        (RASTRIGIN, 2.048, 100.0, 1024.0),
        (SPHERE, -5.12, 0.0, -2560.0),
        (RASTRIGIN, -5.12, 0.0, -2560.0),
        (PLATEAU, 0.0, 100.0, 0.0),
        (PLATEAU, -5.12, 100.0, -2560.0),
        (PLATEAU, 10.24, 100 - 5.12**2, 250.0),
        (PLATEAU, -15.12, 0.0, -500 * 5.12 / 15.12),
    ],
)
def test_known_answers_of_the_specification(domain, value, objective, measure):
    got, measures = at(domain, value)
    assert got == pytest.approx(objective, abs=6e-10)
    assert measures == pytest.approx([measure, measure], abs=1e-9)


def test_the_worst_raw_values_are_those_of_the_specification():
    assert 100 / SPHERE.transform[0] == pytest.approx(51380.224, abs=1e-9)
    assert 100 / RASTRIGIN.transform[0] == pytest.approx(56452.950584517, abs=1e-8)


def test_far_outside_the_box_the_objective_is_negative_and_not_clamped():
    assert at(SPHERE, 100.0)[0] == pytest.approx(100 * (1 - (100 - 2.048) ** 2 / 7.168**2), rel=1e-12)


@pytest.mark.parametrize(
    ("x", "value", "slope"),
    [
        (0.0, 0.0, 1.0),
        (5.12, 5.12, 1.0),
        (-5.12, -5.12, 1.0),
        (6.0, 0.853333, -0.142222),
        (-6.0, -0.853333, -0.142222),
        (10.24, 0.5, -0.048828125),
        (5.1201, 5.12 / 5.1201, -5.12 / 5.1201**2),  # jumps to 1, does not saturate
    ],
)
def test_clip_and_its_derivative(x, value, slope):
    assert clip(jnp.array(x)) == pytest.approx(value, abs=6e-7)
    assert jax.grad(clip)(jnp.array(x)) == pytest.approx(slope, abs=6e-7)


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_gradients_equal_the_closed_forms_of_the_specification(n):
    x = np.random.default_rng(n).normal(0, 5, n)
    d, half = x - 2.048, np.arange(n) < n // 2
    slope = np.where(np.abs(x) <= 5.12, 1.0, -5.12 / x**2)
    expected = {
        "sphere": -2 * d,
        "rastrigin": -(2 * d + 20 * np.pi * np.sin(2 * np.pi * d)),
    }
    for name, gradient in expected.items():
        rows = evaluate_with_jacobian(LinearProjection(name, n), x[None]).jacobian[0]
        np.testing.assert_allclose(rows[0], gradient, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(rows[1], slope * half, rtol=1e-14)
        np.testing.assert_allclose(rows[2], slope * ~half, rtol=1e-14)


def test_measures_split_an_odd_number_of_coordinates_by_integer_division():
    measures = evaluate(LinearProjection("sphere", 5), jnp.array([[1.0, 2.0, 3.0, 4.0, -0.5]])).measures
    assert measures.tolist() == [[3.0, 6.5]]


def test_measure_gradients_have_length_root_500_inside_the_box():
    rows = evaluate_with_jacobian(SPHERE, jnp.zeros((1, 1000))).jacobian[0]
    np.testing.assert_allclose(jnp.linalg.norm(rows[1:], axis=1), np.sqrt(500), rtol=1e-14)


@pytest.mark.parametrize(("domain", "printed"), [(SPHERE, 89.89), (RASTRIGIN, 73.09)])
def test_the_expected_objective_of_normal_solutions(domain, printed):
    # E R = n (1 + s^2), for Rastrigin + 10 n: the mean of its cosine is exp(-2 pi^2), nothing
    raw = 1000 * (1 + 2.048**2 + (10 if domain is RASTRIGIN else 0))
    expected = 100 - domain.transform[0] * raw
    assert expected == pytest.approx(printed, abs=0.01)
    sample = np.random.default_rng(0).normal(size=(300, 1000))
    mean = float(jnp.mean(evaluate(domain, sample).objective))
    assert mean == pytest.approx(expected, abs=0.1)  # five standard errors


def test_the_grid_reaches_as_far_as_the_measures_do():
    grid = LinearProjection("sphere", 1000).grid(50)
    assert (grid.lower, grid.upper, grid.shape) == ((-2560.0, -2560.0), (2560.0, 2560.0), (50, 50))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("spere", 10), "expected 'sphere', 'rastrigin' or 'plateau', got 'spere'"), (("sphere", 1), "n: ")],
)
def test_wrong_settings_are_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearProjection(*arguments)


def test_more_measures_are_the_sums_of_as_many_blocks():
    domain, x = LinearProjection("rastrigin", 12, 4), jnp.linspace(-4.0, 4.0, 12)
    _, measures = domain.score(x)
    np.testing.assert_allclose(measures, np.asarray(x).reshape(4, 3).sum(axis=1), rtol=1e-12)
    assert domain.grid(3).shape == (3, 3, 3, 3)
    assert domain.grid(3).upper == (5.12 * 3,) * 4
    assert domain.cells(20).num_measures == 4
    with pytest.raises(ValueError, match="n: 4 measures need at least as many coordinates, got 3"):
        LinearProjection("sphere", 3, 4)
