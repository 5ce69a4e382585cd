"""Bounds of flat solutions: by clipping, by reflection, and by a smooth map with its inverse and its slope."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dqd
from dqd.inputs.bounds import EDGE, Box

pytestmark = pytest.mark.x64
INF = np.inf
LOWER = np.array([-1.0, 0.0, -INF, -INF, 2e-3])  # two walls, one below, one above, none, and a narrow box
UPPER = np.array([3.0, INF, 5.0, INF, 2.5e-3])
START = np.array([0.5, 0.5, 1.0, 9.0, 2.1e-3])


def box(by):
    return Box.of(LOWER, UPPER, START, by)


def bounced(z, low, high):
    """Light between two mirrors, bounce by bounce."""
    while not low <= z <= high:
        z = 2 * low - z if z < low else 2 * high - z
    return z


@given(st.floats(-40, 40))
def test_reflection_bounces_as_often_as_it_takes(z):
    found = box("reflect").inside(np.full(5, z))
    expected = [bounced(z, low, high) for low, high in zip(LOWER[:4], UPPER[:4], strict=True)]
    np.testing.assert_allclose(found[:4], expected, atol=1e-12)


@pytest.mark.parametrize("by", ["clip", "reflect", "smooth"])
def test_everything_ends_inside_and_numpy_agrees_with_jax(by):
    z = np.random.default_rng(0).normal(size=(500, 5)) * 10 ** np.random.default_rng(1).uniform(-3, 3, (500, 1))
    found = box(by).inside(z)
    assert isinstance(found, np.ndarray)
    assert (found >= LOWER).all()
    assert (found <= UPPER).all()
    np.testing.assert_allclose(box(by).inside(jnp.asarray(z)), found, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("by", ["clip", "reflect"])
def test_what_is_inside_is_not_changed_by_a_bit(by):
    z = np.random.default_rng(0).uniform(0.1, 2.9, size=(100, 5)).astype(np.float32)
    z[:, 4] = 2.2e-3
    np.testing.assert_array_equal(box(by).inside(z), z)
    np.testing.assert_array_equal(box(by).outward(z), z)


def test_the_smooth_map_leads_back():
    z = START + np.array([1, 1, 1, 1, 1e-4]) * np.random.default_rng(0).normal(size=(200, 5))
    np.testing.assert_allclose(box("smooth").outward(box("smooth").inside(z)), z, rtol=1e-8, atol=1e-9)
    assert box("smooth").sides is None


def test_the_slope_is_the_derivative():
    smooth, z = box("smooth"), box("smooth").outward(START)
    differences = [
        (smooth.inside(z + h * row) - smooth.inside(z - h * row))[i] / (2 * h)
        for i, (h, row) in enumerate(zip(np.array([1e-5, 1e-5, 1e-5, 1e-5, 1e-9]), np.eye(5), strict=True))
    ]
    np.testing.assert_allclose(smooth.slope(START), differences, rtol=1e-7)
    assert smooth.slope(np.array([1.0]).repeat(5))[0] == 1  # the middle of the box


def test_walls_are_not_the_end_of_the_world():
    at = Box.of([-1.0, 0.0], [1.0, INF], [0.0, 1.0], "smooth")
    z = at.outward(jnp.array([1.0, 0.0]))
    assert np.isfinite(z).all()
    assert (np.asarray(at.slope(jnp.array([1.0, 0.0]))) > 0).all()
    np.testing.assert_allclose(at.inside(z), [1.0, 0.0], atol=2 * EDGE)


def test_the_chain_rule_is_that_of_autodiff():
    both = Box.of(np.full(3, -2.0), np.full(3, 1.0), np.zeros(3), "smooth")
    z = jnp.array([0.3, -1.9, 2.0])

    def outputs(x):
        return jnp.array([jnp.sum(x**2), x[0] * x[1], jnp.sin(x[2])])

    x = both.inside(z)
    chained = both.chained(jax.jacobian(outputs)(x), x)
    np.testing.assert_allclose(chained, jax.jacobian(lambda z: outputs(both.inside(z)))(z), rtol=1e-10)


def test_a_smooth_search_begins_inside():
    with pytest.raises(ValueError, match=r'2 of the 3 numbers of x0 lie at a bound or beyond.*by="reflect"'):
        Box.of(np.full(3, -1.0), np.full(3, 1.0), np.array([1.0, 0.0, -3.0]), "smooth")


def test_a_way_that_is_not_known_is_named():
    with pytest.raises(ValueError, match='by: expected "clip", "reflect" or "smooth", got \'mirror\''):
        dqd.Bounds(-1, 1, by="mirror")
