"""Grids with edges of one's own: by brute force, with JAX and without, in files, in searches that aim."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import MEGA, score

import dqd
from dqd.conformance.searching import quick_to_compile
from dqd.figures import panels
from dqd.tessellations import kinds

EDGES = ([-3.0, -1.0, 0.0, 0.5, 4.0], [0.0, 10.0, 10.0, 11.0])
CELLS = dqd.UnevenGrid(EDGES)


def by_hand(measures):
    """The last cell whose lower edge is not above, border cells reaching to infinity."""
    cell = 0
    for value, edges in zip(measures, EDGES, strict=True):
        inside = [i for i in range(1, len(edges) - 1) if np.float32(value) >= np.float32(edges[i])]
        cell = cell * (len(edges) - 1) + max(inside, default=0)
    return cell


# XLA takes subnormal numbers for zero.
numbers = st.one_of(st.sampled_from([*EDGES[0], *EDGES[1]]), st.floats(-20, 20, width=32, allow_subnormal=False))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_a_cell_reaches_up_to_its_upper_edge_in_numpy_and_in_jax(rows):
    measures = np.array(rows, np.float32)
    expected = [by_hand(row) for row in measures]
    assert CELLS.index_of(measures).tolist() == expected
    assert CELLS.index_of(jnp.asarray(measures)).tolist() == expected
    assert not CELLS.misplaced(np.array(expected), measures).any()
    outside = [any(v < e[0] or v > e[-1] for v, e in zip(row, EDGES, strict=True)) for row in measures.tolist()]
    assert CELLS.outside(measures).tolist() == outside


def test_equal_edges_make_a_grid():
    grid = dqd.Grid([0, 0], [4, 3], [4, 3])
    same = dqd.UnevenGrid([np.arange(5), np.arange(4)])
    at = np.random.default_rng(0).uniform(-1, 5, (200, 2)).astype(np.float32)
    assert same.index_of(at).tolist() == grid.index_of(at).tolist()
    np.testing.assert_array_equal(same.centers(), grid.centers())
    (cells, middles), (expected, centres) = same.near(at, 9), grid.near(at, 9)
    np.testing.assert_array_equal(cells, expected)
    np.testing.assert_allclose(middles[cells >= 0], centres[cells >= 0])
    np.testing.assert_allclose(same.widths(at), np.ones((200, 2)))
    np.testing.assert_allclose(same.middles(np.arange(12)), grid.middles(np.arange(12)))


def test_files_give_the_edges_back_and_refuse_others():
    again = kinds.from_arrays(CELLS.arrays())
    assert isinstance(again, dqd.UnevenGrid)
    assert [row.tolist() for row in again.edges] == [list(map(float, row)) for row in EDGES]
    arrays = CELLS.arrays()
    for name, bad in {
        "uneven_counts": np.array([4, 4]),
        "uneven_edges": arrays["uneven_edges"][::-1],
    }.items():
        with pytest.raises(ValueError, match=r"[uU]neven"):
            kinds.from_arrays(arrays | {name: bad})
    with pytest.raises(ValueError, match=r"cannot be told apart by float32"):
        dqd.UnevenGrid([[1.0, 1.0 + 1e-9, 2.0]]).check_precision(np.float32)
    for bad in ([[0.0]], [[1.0, 0.0]], [], [[0.0, np.inf]]):
        with pytest.raises(ValueError, match="UnevenGrid"):
            dqd.UnevenGrid(bad)


def test_edges_at_the_quantiles_of_a_data_set_share_it_evenly():
    points = np.random.default_rng(0).lognormal(size=(3000, 2))
    cells = dqd.UnevenGrid.fitted(points, [10, 5])
    along = np.stack(np.unravel_index(cells.index_of(points), (10, 5)), axis=-1)
    assert np.abs(np.bincount(along[:, 0]) - 300).max() <= 1
    assert np.abs(np.bincount(along[:, 1]) - 600).max() <= 1


def test_a_search_finds_its_cells_and_targeting_aims_at_them(tmp_path):
    cells = dqd.UnevenGrid([np.sinh(np.linspace(-2, 2, 8))] * 2)
    with quick_to_compile():
        result = dqd.illuminate(score, MEGA, cells, x0=jnp.zeros(6), iterations=30, progress=False)
        aimed = dqd.illuminate(
            score, dqd.targeting(batch_size=9), cells, x0=jnp.zeros(6), iterations=30, progress=False
        )
    assert len(result.archive) > 10
    assert len(aimed.archive) > 10
    saved = dqd.load(result.save(tmp_path / "run"))
    np.testing.assert_array_equal(saved.cell, result.elites.cell)
    assert set(saved.cell.tolist()) <= set(np.unique(saved.tessellation.raster().cells).tolist())
    grid = dqd.Grid([-4, -4], [4, 4], [8, 8])
    back = saved.retessellate(grid).retessellate(cells)
    assert 0 < len(back) <= len(saved)
    panel = panels.heatmap(saved.arrays())
    assert panel.matrix.shape == (7, 7)
    assert (panel.x_marks[0], panel.x_marks[-1]) == ((0.0, "-3.63"), (7.0, "3.63"))
    result.plot(tmp_path / "map.png")


def test_every_neighbour_is_within_reach_however_wide_it_is():
    """From a narrow cell beside wide ones, the points to aim at lie at most one such cell beyond its own."""
    grid = dqd.UnevenGrid([[-1, 0, 0.01, 0.02, 1]])
    cells, points = grid.near(np.array([0.005]), 5)
    reached = dict(zip(cells.tolist(), points[:, 0].tolist(), strict=True))
    assert reached == pytest.approx({1: 0.005, 0: -0.005, 2: 0.015, 3: 0.025, -1: reached[-1]})
    cells, points = grid.near(np.array([0.5]), 3)  # in a narrow one it is the middle
    assert dict(zip(cells.tolist(), points[:, 0].tolist(), strict=True))[2] == pytest.approx(0.015)
