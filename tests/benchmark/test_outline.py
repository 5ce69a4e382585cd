"""A closed curve of harmonics keeps the laws of its formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from dqd.benchmark.seen_third import outline


def test_an_outline_has_the_area_of_its_ellipse():
    """x = 2 cos t, y = 0.5 sin t: area pi, twice as long as a circle of that area in one direction."""
    x = np.zeros((4, 5))
    x[0, 0], x[3, 0] = 2.0, 0.5
    _, (area, oblong) = outline(20).score(jnp.asarray(x.ravel()))
    assert float(area) == pytest.approx(np.pi, rel=1e-5)
    assert float(oblong) == pytest.approx(np.log(4), rel=1e-4)


def test_an_outline_is_best_where_it_is_the_star():
    """(1 + 0.35 cos 5t) (cos t, sin t) has harmonics 1, 4 and 6; the coefficients count by their order."""
    x = np.zeros((4, 6))
    x[[0, 3], 0] = 1.0
    x[[0, 0], [3, 5]], x[[3, 3], [3, 5]] = 0.175 * np.array([4, 6]), 0.175 * np.array([-4, 6])
    star, circle = (float(outline(24).score(jnp.asarray(each.ravel()))[0]) for each in (x, x * (np.arange(6) == 0)))
    assert 88 < star < 100
    assert circle < star - 10
