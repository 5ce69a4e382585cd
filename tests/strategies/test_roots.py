"""Square roots by products beside those by eigenvectors, and both beside closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.strategies.decomposition import Decomposition
from dqd.strategies.roots import _steps, by_eigenvectors, by_products

products, eigenvectors = jax.jit(by_products), jax.jit(by_eigenvectors)


def known(d, condition, seed=0, scale=1.0):
    """A covariance with its roots, from its eigenvalues."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    eigenvalues = scale * np.geomspace(1, condition, d)
    covariance, root, inverse = ((basis * eigenvalues**power) @ basis.T for power in (1.0, 0.5, -0.5))
    return (covariance + covariance.T) / 2, root, inverse


def off(found, expected):
    """Relative to the largest eigenvalue."""
    return np.linalg.norm(np.asarray(found, float) - expected, 2) / np.linalg.norm(expected, 2)


@pytest.mark.x64
@pytest.mark.parametrize(("condition", "tolerance"), [(1.0, 1e-14), (1e4, 1e-11), (1e8, 1e-7)])
@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_in_float64_both_ways_find_the_roots(condition, tolerance, scale):
    covariance, root, inverse = known(30, condition, scale=scale)
    for find in (products, eigenvectors):
        roots = find(jnp.asarray(covariance))
        assert off(roots.root, root) < tolerance
        assert off(roots.inverse, inverse) < tolerance
        assert roots.smallest <= scale * 1.0001
        assert roots.largest >= scale * condition * 0.9999


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e3, 1e5])
def test_in_float32_products_are_as_good_as_the_covariance_that_they_are_given(condition):
    """Rounding the covariance alone moves the inverse root by eps times the condition number; so does eigh."""
    covariance, root, inverse = known(100, condition)
    roots, given = products(jnp.asarray(covariance, jnp.float32)), np.finfo(np.float32).eps * condition
    assert off(roots.root, root) < 3e-5
    assert off(roots.inverse, inverse) < 5e-6 + 20 * given
    np.testing.assert_array_equal(roots.root, roots.root.T)
    assert 0 < roots.smallest <= 1.0001
    assert roots.largest >= condition * 0.9999


def test_a_condition_beyond_the_precision_is_told_and_nothing_grows_without_bound():
    covariance, root, _ = known(100, 1e12)
    roots = products(jnp.asarray(covariance, jnp.float32))
    assert roots.smallest == 0  # so the condition number fires
    assert np.isfinite(roots.inverse).all()
    assert off(roots.root, root) < 1e-3


def test_a_covariance_that_is_not_finite_is_not_called_resolved():
    assert products(jnp.full((30, 30), jnp.nan)).smallest == 0


@pytest.mark.parametrize("condition", [1.0, 1.01, 10.0, 1e3])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_bound_of_the_eigenvalues_spares_steps_and_no_digits(condition, share):
    covariance, root, inverse = known(100, condition)
    roots = products(jnp.asarray(covariance, jnp.float32), share)
    given = np.finfo(np.float32).eps * condition
    assert off(roots.root, root) < 3e-5
    assert off(roots.inverse, inverse) < 5e-6 + 20 * given
    assert share <= roots.smallest <= 1.0001


def test_a_bound_that_is_wrong_does_not_pass_for_resolved():
    covariance, *_ = known(100, 1e6)
    assert products(jnp.asarray(covariance / 1e6, jnp.float32), 0.9).smallest == 0


@pytest.mark.parametrize("decay", [0.3, 0.99])
def test_after_a_merge_no_eigenvalue_lies_below_what_decay_left(decay):
    covariance, *_ = known(30, 50.0)
    old = Decomposition(
        jnp.asarray(covariance, jnp.float32), products(jnp.asarray(covariance, jnp.float32)), jnp.array(False)
    )
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(7, 30)), jnp.float32)
    merged = old.merged(jnp.asarray(decay), rows, jnp.full(7, 0.1))
    assert np.linalg.eigvalsh(np.asarray(merged, float))[0] >= decay * old.roots.smallest


def test_it_takes_13_steps_in_float32_and_25_in_float64():
    assert [_steps(float(np.finfo(dtype).eps)) for dtype in (np.float32, np.float64)] == [13, 25]
