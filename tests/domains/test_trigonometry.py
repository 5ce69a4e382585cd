"""The quick forms against the plain formulas in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.domains import trigonometry
from dqd.domains.trigonometry import cos_turns, cosine, running_sum, sin_turns, sine, total

TURN = 2 * np.pi
PLAIN = {  # each with its derivative
    cosine: (np.cos, lambda x: -np.sin(x)),
    sine: (np.sin, np.cos),
    cos_turns: (lambda x: np.cos(TURN * x), lambda x: -TURN * np.sin(TURN * x)),
    sin_turns: (lambda x: np.sin(TURN * x), lambda x: TURN * np.cos(TURN * x)),
}


@pytest.mark.parametrize("function", PLAIN)
@pytest.mark.parametrize("scale", [0.1, 3, 1000])
def test_values_and_derivatives_are_those_of_the_plain_formulas(function, scale):
    x = np.random.default_rng(1).normal(0, scale, 10_000).astype(np.float32)
    x[:5] = 0, 0.5, -0.5, 0.25, 1
    value, slope = (plain(x.astype(np.float64)) for plain in PLAIN[function])
    np.testing.assert_allclose(function(jnp.array(x)), value, atol=1e-6)
    got = jax.vmap(jax.grad(function))(jnp.array(x))
    np.testing.assert_allclose(got, slope, atol=1e-6 * np.abs(slope).max())


def test_what_is_not_finite_stays_so():
    for function in PLAIN:
        assert not np.isfinite(function(jnp.array([np.nan, np.inf, -np.inf]))).any()


@pytest.mark.parametrize("n", [1, 7, 32, 33, 1000])
def test_sums_are_those_of_the_plain_formulas(n):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    np.testing.assert_allclose(running_sum(jnp.array(x)), np.cumsum(x, dtype=np.float64), atol=2e-5)
    np.testing.assert_allclose(total(jnp.array(x)), np.sum(x, dtype=np.float64), atol=2e-5)
    weights = np.arange(1.0, n + 1)
    slope = jax.grad(lambda x: running_sum(x) @ weights.astype(np.float32))(jnp.array(x))
    np.testing.assert_allclose(slope, np.cumsum(weights[::-1])[::-1], rtol=1e-6)


@pytest.mark.parametrize(
    "domain", [dqd.LinearProjection("rastrigin", 200), dqd.LinearProjection("sphere", 200), dqd.Arm(200)]
)
def test_domains_are_those_of_the_plain_formulas(domain, monkeypatch):
    x = jnp.array(np.random.default_rng(2).normal(0, 3, (5, 200)), jnp.float32)
    quick = domain.evaluate_with_jacobian(x)
    monkeypatch.setattr(trigonometry, "quick", lambda x: False)
    with jax.enable_x64(True):
        plain = domain.evaluate_with_jacobian(jnp.array(x, jnp.float64))
    for got, want in zip(jax.tree.leaves(quick), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * float(np.abs(want).max()))
