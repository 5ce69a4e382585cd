"""The cells around a point."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.tessellations.lattice import lattice
from dqd.tessellations.tessellation import neighbourhood


@pytest.mark.parametrize("shape", [(7,), (9, 9), (9, 3), (5, 5, 5), (4, 1, 6)])
def test_the_shortest_vectors_of_all(shape):
    every = list(itertools.product(*(range(1 - size, size) for size in shape)))
    lengths = sorted(sum(step * step for step in vector) for vector in every)
    for count in (1, 1 + 2 * len(shape), 20, 10**6):
        found = lattice(shape, count)
        assert len({tuple(row) for row in found.tolist()}) == len(found) == min(count, len(every))
        assert (found**2).sum(axis=1).tolist() == lengths[:count]


def test_many_measures_take_no_time():
    assert lattice((10,) * 32, 500).shape == (500, 32)


@pytest.mark.parametrize("xp", [np, jnp])
def test_near_cells_are_named_as_index_of_names_them(xp):
    grid = dqd.Grid([-1, 0, 2], [1, 5, 3], [4, 5, 3])
    rows = xp.asarray(np.random.default_rng(0).uniform([-1, 0, 2], [1, 5, 3], (40, 3)))
    cells, middles = grid.near(rows, 50)
    inside = np.asarray(cells) >= 0
    assert np.array_equal(np.asarray(grid.index_of(middles))[inside], np.asarray(cells)[inside])
    assert np.asarray(grid.outside(middles))[~inside].all()
    assert np.array_equal(np.asarray(cells[:, 0]), np.asarray(grid.index_of(rows)))
    np.testing.assert_allclose(np.asarray(middles)[inside], grid.centers()[np.asarray(cells)[inside]], rtol=1e-6)


def test_the_cell_of_a_point_outside_is_that_at_the_border():
    cells, _ = dqd.Grid([0, 0], [1, 1], [3, 3]).near(np.array([7.0, 0.5]), 5)
    assert cells.tolist() == [7, 4, 6, 8, -1]


def test_widths():
    assert dqd.Grid([-1, 0], [1, 5], [4, 5]).widths(np.zeros(2)).tolist() == [0.5, 1.0]


def test_a_tessellation_without_a_neighbourhood_is_refused_in_words():
    class Blind:
        num_cells = 3

    with pytest.raises(TypeError, match="Blind has no methods near and widths"):
        neighbourhood(Blind())
