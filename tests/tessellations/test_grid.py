import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqd.archives import Grid
from dqd.domains import Arm, LinearProjection

LP, ARM = LinearProjection("sphere", 1000).grid(100), Arm(1000).grid(100)

grids = st.integers(1, 3).flatmap(
    lambda k: st.builds(
        lambda low, width, shape: Grid(low, [a + b for a, b in zip(low, width, strict=True)], shape),
        st.lists(st.floats(-1e3, 1e3), min_size=k, max_size=k),
        st.lists(st.floats(1e-1, 1e3), min_size=k, max_size=k),
        st.lists(st.integers(1, 12), min_size=k, max_size=k),
    )
)


def cell_of(grid, *measures):
    return tuple(int(i) for i in np.unravel_index(int(grid.index_of(jnp.array(measures, float))), grid.shape))


@pytest.mark.x64
@pytest.mark.parametrize(
    ("grid", "measures", "cell"),
    [
        (LP, (0.0, 0.0), (50, 50)),
        (LP, (1024.0, 1024.0), (70, 70)),  # exactly on an edge: the upper cell
        (LP, (-2560.0, -2560.0), (0, 0)),
        (ARM, (1000.0, 0.0), (99, 50)),
        (LP, (2560.0, -51.2), (99, 49)),
    ],
)
def test_known_cells_of_the_paper(grid, measures, cell):
    assert cell_of(grid, *measures) == cell


@pytest.mark.x64
def test_a_measure_just_below_an_edge_counts_as_on_it_within_1e_6():
    grid = Grid([0.0], [10.0], [10])
    assert [cell_of(grid, m)[0] for m in (3 - 2e-6, 3 - 0.5e-6, 3.0)] == [2, 3, 3]


@pytest.mark.parametrize("huge", [1e3, 1e12, 1e30, np.inf])
@pytest.mark.parametrize("x64", [False, True])
def test_measures_beyond_the_range_land_in_the_border_cell_on_their_side(huge, x64):
    grid = Grid([-1, 0], [1, 5], [20, 50])
    with jax.enable_x64(x64):
        assert cell_of(grid, huge, 2.55) == (19, 25)
        assert cell_of(grid, -huge, 2.55) == (0, 25)
        assert cell_of(grid, 0.05, huge) == (10, 49)
        assert cell_of(grid, 0.05, -huge) == (10, 0)


@pytest.mark.parametrize("reach", [1.0, 6.0, 1000.0, 2560.0, 1e6])
@pytest.mark.parametrize("count", [1, 7, 100, 500])
def test_the_upper_edge_stays_in_range_in_float32(reach, count):
    grid = Grid([-reach], [reach], [count])
    edge = np.float32(reach)
    around = jnp.array([[np.nextafter(edge, 0)], [edge], [np.nextafter(edge, np.float32(np.inf))]])
    assert grid.index_of(around).tolist() == [count - 1] * 3


def test_measure_0_is_the_slowest_index():
    grid = Grid([0, 0, 0], [2, 3, 5], [2, 3, 5])
    measures = np.array([[i + 0.5, j + 0.5, m + 0.5] for i in range(2) for j in range(3) for m in range(5)])
    assert grid.index_of(jnp.asarray(measures)).tolist() == list(range(30))
    assert cell_of(grid, 1.5, 0.5, 3.5) == (1, 0, 3)


def test_index_of_takes_any_number_of_leading_axes():
    grid = Grid([0, 0], [4, 4], [4, 4])
    measures = jnp.asarray(np.random.default_rng(0).uniform(0, 4, (3, 5, 2)))
    each = [[int(grid.index_of(row)) for row in rows] for rows in measures]
    assert grid.index_of(measures).tolist() == each


@pytest.mark.x64
@given(grids, st.integers(0, 99))
def test_every_center_falls_into_its_own_cell(grid, start):
    cells = (start + np.arange(100)) % grid.num_cells  # a fixed number, so that nothing is compiled anew
    centers = grid.centers()
    assert centers.shape == (grid.num_cells, grid.num_measures)
    assert grid.index_of(jnp.asarray(centers[cells])).tolist() == cells.tolist()


@pytest.mark.x64
@given(grids, st.randoms(use_true_random=False))
def test_index_is_that_of_the_specification_and_never_out_of_range(grid, random):
    measures = np.array([[random.gauss(0, 1e3) for _ in grid.shape] for _ in range(20)])
    low, high, shape = (np.array(side, float) for side in (grid.lower, grid.upper, grid.shape))
    inside = np.minimum(np.maximum(measures + 1e-6, low), high - 1e-6)
    expected = np.ravel_multi_index(np.trunc((inside - low) / (high - low) * shape).astype(int).T, grid.shape)
    assert grid.index_of(jnp.asarray(measures)).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9, 1e-20])
@pytest.mark.parametrize("x64", [False, True])
def test_tiny_measures_are_told_apart_as_well(scale, x64):
    grid = Grid([-scale, 0], [scale, 3 * scale], [4, 5])
    with jax.enable_x64(x64):
        assert grid.index_of(jnp.asarray(grid.centers())).tolist() == list(range(20))
    assert not grid.misplaced(np.arange(20), grid.centers()).any()
    assert grid.misplaced(np.arange(20)[::-1], grid.centers()).all()


def test_whole_number_measures_are_not_rounded_with_the_edges():
    assert Grid([-0.5], [3.5], [8]).index_of(jnp.array([[1], [3]])).tolist() == [3, 7]


def test_outside_is_told_per_row_and_the_edges_are_inside():
    grid = Grid([-1, 0], [1, 5], [20, 50])
    rows = jnp.array([[0.0, 2.0], [-1.0, 5.0], [1.5, 2.0], [0.0, -0.1], [-9.0, 9.0]])
    assert grid.outside(rows).tolist() == [False, False, True, True, True]


def test_a_grid_compiles_once_for_all_ranges():
    traces = []

    @jax.jit
    def index(grid, measures):
        traces.append(grid.shape)
        return grid.index_of(measures)

    point = jnp.array([[0.5, 0.5]])
    assert index(Grid([0, 0], [1, 1], [4, 4]), point).tolist() == [10]
    assert index(Grid([0, 0], [2, 2], [4, 4]), point).tolist() == [5]
    assert len(traces) == 1


@pytest.mark.parametrize("kind", [list, tuple, np.array, jnp.array])
def test_sides_may_be_lists_tuples_or_arrays(kind):
    grid = Grid(kind([-1.0, 0.0]), kind([1.0, 5.0]), kind([20, 50]))
    assert (grid.num_cells, grid.num_measures) == (1000, 2)
    assert jax.jit(lambda grid: grid.index_of(jnp.array([0.05, 2.55])))(grid) == 10 * 50 + 25
    assert hash(grid.shape) == hash((20, 50))


def test_one_measure_may_be_given_as_plain_numbers():
    assert Grid(0.0, 1.0, 10).centers()[3] == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1, 1], [2, 2]), r"lower must lie below upper; measure 1 has lower=1\.0, upper=1\.0"),
        (([0, 2], [1, 1], [2, 2]), "lower must lie below upper; measure 1"),
        (([0], [1, 1], [2, 2]), "one entry per measure, got lengths .*'lower': 1, 'upper': 2, 'shape': 2"),
        (([0, 0], [1, 1], [2, 2, 2]), "one entry per measure, got lengths .*'shape': 3"),
        (([0, 0], [1, 1], [2, 2.5]), r"whole numbers of cells, at least 1 each, got \(2\.0, 2\.5\)"),
        (([0, 0], [1, 1], [2, 0]), "at least 1 each"),
        (([0, 0], [1, 1], [2, -3]), "at least 1 each"),
        (([0, np.nan], [1, 1], [2, 2]), "lower must be finite"),
        (([0, 0], [1, np.inf], [2, 2]), "upper must be finite"),
        (([0, 0], [1, 1], [2**16, 2**15]), r"2,147,483,648 cells are more than the 2\*\*31 - 1"),
        (([0, 0], [1, 1], [2, np.nan]), "whole numbers of cells"),
        ((jnp.array([0.0, 2.0]), jnp.array([1.0, 1.0]), [2, 2]), "lower must lie below upper; measure 1"),
    ],
)
def test_a_wrong_grid_is_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        Grid(*arguments)


def test_the_largest_grid_is_accepted():
    assert Grid([0, 0], [1, 1], [2**31 - 1, 1]).num_cells == 2**31 - 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_and_jax_find_the_same_cells(dtype):
    """To the last bit, on edges and between them: a saved archive is read with NumPy."""
    numbers = np.random.default_rng(0)
    with jax.enable_x64(dtype == np.float64):
        for _ in range(30):
            lower = numbers.choice([0.0, 1.0], 2) * 10 ** numbers.uniform(-3, 5, 2)
            grid = Grid(lower, lower + 10 ** numbers.uniform(-1, 5, 2), [7, 50])
            on_edges = numbers.integers(0, 51, (256, 2)) / np.array(grid.shape)
            share = np.where(numbers.random((256, 2)) < 0.5, on_edges, numbers.uniform(-0.1, 1.1, (256, 2)))
            measures = (lower + share * (np.array(grid.upper) - lower)).astype(dtype)
            expected = grid.index_of(measures)
            np.testing.assert_array_equal(grid.index_of(jnp.asarray(measures)), expected)
            assert not grid.misplaced(expected, measures).any()
