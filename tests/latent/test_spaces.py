"""Spaces: what solutions mean, and how they keep the search where the generator knows its way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dqd.latent import Extended, Identity, Mapped, Sphere, Whitened
from dqd.types import pytree, replace

SLOPE = 0.2


def bent_gaussian(count: int = 4000) -> np.ndarray:
    """Latents as a mapping network makes them: a correlated Gaussian through a LeakyReLU."""
    generator = np.random.default_rng(0)
    mixing = generator.normal(size=(6, 6)) * [3, 2, 1, 1, 0.5, 0.1]
    p = generator.normal(size=(count, 6)) @ mixing + [1, 0, -1, 2, 0, 0]
    return np.where(p >= 0, p, SLOPE * p)


def straight(w):
    return np.where(w >= 0, w, w / SLOPE)


def test_whitened_zero_is_the_mean_and_its_coordinates_have_unit_covariance():
    w = bent_gaussian()
    space = Whitened.fit(w, 6)
    middle = straight(np.asarray(space.latents(jnp.zeros((1, 6)))[0]))
    assert_allclose(middle, straight(w).mean(axis=0), rtol=1e-4, atol=1e-5)
    x = np.asarray(space.solutions(jnp.asarray(w, jnp.float32)))
    assert_allclose(x.mean(axis=0), 0, atol=1e-3)
    assert_allclose(np.cov(x, rowvar=False), np.eye(6), atol=2e-3)
    assert space.explained == pytest.approx(1)
    assert space.bounds == (-2.0, 2.0)


def test_whitened_round_trips():
    w = bent_gaussian()
    space = Whitened.fit(w, 6)
    assert_allclose(space.latents(space.solutions(jnp.asarray(w, jnp.float32))), w, rtol=1e-3, atol=1e-3)
    x = jax.random.normal(jax.random.key(0), (9, 3))
    fewer = Whitened.fit(w, 3)
    assert_allclose(fewer.solutions(fewer.latents(x)), x, rtol=1e-3, atol=1e-4)


def test_whitened_keeps_the_widest_components():
    w = bent_gaussian()
    three = Whitened.fit(w, 3, bound=None)
    lengths = np.linalg.norm(three.axes, axis=1)
    assert three.n == 3
    assert three.bounds is None
    assert np.all(np.diff(lengths) < 0)
    variances = np.sort(np.linalg.eigvalsh(np.cov(straight(w), rowvar=False)))[::-1]
    assert_allclose(lengths**2, variances[:3], rtol=1e-4)
    assert three.explained == pytest.approx(variances[:3].sum() / variances.sum())


def test_whitened_needs_enough_latents():
    with pytest.raises(ValueError, match=r"5 components need latents .* got \(5, 6\)"):
        Whitened.fit(bent_gaussian(5), 5)


def test_the_sphere_has_the_radius_of_a_gaussian_and_forgets_length():
    sphere = Sphere(Identity(9))
    x = jax.random.normal(jax.random.key(0), (4, 9))
    assert_allclose(jnp.linalg.norm(sphere.latents(x), axis=1), 3, rtol=1e-5)
    assert_allclose(sphere.latents(7 * x), sphere.latents(x), rtol=1e-5)
    assert_allclose(sphere.latents(jnp.ones((1, 9))), jnp.ones((1, 9)), rtol=1e-6)
    assert np.isfinite(jax.grad(lambda x: sphere.latents(x).sum())(jnp.zeros((1, 9)))).all()


@pytree
class Doubling:
    factor: float

    def __call__(self, vectors):
        return self.factor * vectors


def test_the_others():
    x = jnp.arange(12.0).reshape(2, 6)
    assert_allclose(Identity(6).latents(x), x)
    assert_allclose(Mapped(Doubling(2.0), 6).latents(x), 2 * x)
    extended = Extended(layers=3, size=2)
    assert extended.n == 6
    assert extended.latents(x).shape == (2, 3, 2)
    assert extended.latents(x)[1, 2].tolist() == [10, 11]
    assert_allclose(jnp.linalg.norm(Sphere(Mapped(Doubling(2.0), 6)).latents(x), axis=1), 2 * np.sqrt(6), rtol=1e-5)


def test_a_radius_keeps_the_direction_of_what_lies_outside():
    space = Whitened.fit(np.random.default_rng(0).normal(size=(500, 6)), 4, slope=1.0)
    inside, outside = jnp.asarray([[1.0, 0.5, 0, 0]]), jnp.asarray([[30.0, 40.0, 0, 0]])
    guarded = replace(space, radius=5.0)
    np.testing.assert_allclose(guarded.latents(inside), space.latents(inside), atol=1e-6)
    np.testing.assert_allclose(guarded.latents(outside), space.latents(outside / 10), atol=1e-5)
    slope = jax.grad(lambda x: jnp.sum(guarded.latents(x)))
    assert np.isfinite(slope(jnp.zeros((1, 4)))).all()
    np.testing.assert_allclose(jnp.sum(slope(outside) * outside), 0, atol=1e-4)  # further out changes nothing
