"""Cells around centroids: the nearest one, found quickly, saved, drawn and searched."""

import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import MEGA, score

import dqd
from dqd.tessellations import products
from dqd.tessellations.buckets import Buckets
from dqd.tessellations.k_means import k_means
from dqd.tessellations.nearest import squares


def brute_force(centroids, rows):
    return np.argmin(squares(rows, np.asarray(centroids, rows.dtype)), axis=-1)


def around(random, centroids, count=400):
    """Points within, beside and far outside the centroids."""
    k = centroids.shape[1]
    low, high = centroids.min(axis=0), centroids.max(axis=0)
    width = np.maximum(high - low, 1)
    scales = random.choice([0.6, 3.0, 100.0], (count, 1))
    return (low + high) / 2 + scales * width * random.uniform(-1, 1, (count, k))


def made(kind, k, count, random):
    if kind == "uniform":
        return random.uniform(-3, 5, (count, k))
    if kind == "a heap and a few":
        return np.concatenate([1e-3 * random.normal(size=(count, k)), random.uniform(-3, 5, (7, k))])
    return random.normal(size=(count, k)) * ([1.0, 30.0, 0.01] * k)[:k]  # narrow and wide


@settings(max_examples=40)
@given(
    st.sampled_from(["uniform", "a heap and a few", "narrow"]),
    st.integers(1, 4),
    st.integers(1, 300),
    st.integers(0, 9),
)
def test_the_cell_is_that_of_the_nearest_centroid_inside_and_outside(kind, k, count, seed):
    random = np.random.default_rng(seed)
    centroids = made(kind, k, count, random)
    rows = around(random, centroids)
    assert dqd.CVT(centroids).index_of(rows).tolist() == brute_force(centroids, rows).tolist()


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 9))
def test_of_equally_near_centroids_the_first_counts(k, side, seed):
    random = np.random.default_rng(seed)
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * k), axis=-1).reshape(-1, k).astype(float)
    centroids = random.permutation(lattice)
    rows = random.integers(-2, 2 * side + 2, (300, k)) / 2  # on corners and edges of cells
    assert dqd.CVT(centroids).index_of(rows).tolist() == brute_force(centroids, rows).tolist()


def test_with_many_measures_one_matrix_product_finds_what_comparing_all_finds(monkeypatch):
    random = np.random.default_rng(0)
    centroids = np.concatenate([random.normal(size=(5000, 10)), random.integers(0, 2, (1500, 10))])
    rows = np.concatenate([random.normal(size=(60, 10)), random.integers(0, 3, (60, 10)) / 2])  # half of them: ties
    cells = dqd.CVT(centroids)
    assert isinstance(cells.finder, products.Products)
    assert cells.index_of(rows).tolist() == brute_force(centroids, rows).tolist()
    monkeypatch.setattr(products, "BLOCK", 2048)
    cells = dqd.CVT(centroids, [-9] * 10, [9] * 10)
    assert len(cells.finder.tables) == 4
    assert cells.index_of(rows).tolist() == brute_force(centroids, rows).tolist()


@pytest.mark.parametrize(("k", "count"), [(1, 40), (2, 500), (3, 300), (10, 5000)])
def test_numpy_and_jax_agree(k, count):
    random = np.random.default_rng(k)
    cells = dqd.CVT(random.uniform(-1, 1, (count, k)))
    rows = np.concatenate([around(random, cells.centroids, 200), np.full((1, k), 1e30)]).astype(np.float32)
    found = jax.jit(lambda cells, rows: cells.index_of(rows))(cells, jnp.asarray(rows))
    assert found.dtype == cells.index_of(rows).dtype == np.int32
    assert found.tolist() == cells.index_of(rows).tolist()
    assert cells.index_of(cells.centers()).tolist() == list(range(count))


def test_cells_of_a_uniform_cvt_are_of_about_equal_size():
    cells = dqd.CVT.uniform([-1, 0], [1, 3], 50, seed=3)
    random = np.random.default_rng(0)
    members = np.bincount(cells.index_of(random.uniform([-1, 0], [1, 3], (50_000, 2))), minlength=50)
    assert members.std() < 0.25 * members.mean()
    assert np.all((cells.centroids > [-1, 0]) & (cells.centroids < [1, 3]))
    np.testing.assert_array_equal(cells.centroids, dqd.CVT.uniform([-1, 0], [1, 3], 50, seed=3).centroids)
    assert (cells.lower, cells.upper) == ((-1, 0), (1, 3))


def test_a_fitted_cvt_lies_where_the_points_are():
    random = np.random.default_rng(0)
    angle = random.uniform(0, 2 * np.pi, 3000)
    cells = dqd.CVT.fitted(np.stack([np.cos(angle), np.sin(angle)], axis=1), 40)
    radius = np.linalg.norm(cells.centroids, axis=1)
    assert np.all((radius > 0.97) & (radius <= 1))


def test_means_do_not_move_once_they_lie_in_the_middle():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    assert sorted(k_means(points, 2, seed=0).ravel().tolist()) == [0.5, 10.5]


def test_where_centroids_crowd_there_are_no_buckets():
    random = np.random.default_rng(0)
    heap = np.concatenate([1e-6 * random.normal(size=(3000, 2)), [[1.0, 1.0]]])
    assert Buckets.of(heap, heap.min(axis=0), heap.max(axis=0)) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0, 2.0],), r"finite numbers \(cells, k\)"),
        (([[np.nan, 1.0]],), "finite numbers"),
        (([[0.0, 1.0]], (0.0,)), "for each of 2 measures"),
        (([[0.0, 1.0]], (1.0, 1.0), (0.0, 2.0)), "measure 0 has lower=1.0, upper=0.0"),
    ],
)
def test_wrong_cells_are_explained(arguments, words):
    with pytest.raises(ValueError, match=words):
        dqd.CVT(*arguments)


def test_what_cannot_be_fitted_is_explained():
    with pytest.raises(ValueError, match="5 cells need as many different points, got 2"):
        dqd.CVT.fitted([[0.0], [1.0], [1.0]], 5)
    with pytest.raises(ValueError, match="cells: expected a whole number"):
        dqd.CVT.uniform([0], [1], 0)
    with pytest.raises(ValueError, match="lower below upper"):
        dqd.CVT.uniform([0, 0], [1, 0], 5)


def test_centroids_that_float32_cannot_tell_apart_are_refused():
    with pytest.raises(ValueError, match="of 2 centroids 1 are different in float32"):
        dqd.CVT([[1.0], [1.0 + 1e-12]]).check_precision(np.float32)


# In a search ----------------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore:.*of the measures lay outside")
CELLS = dqd.CVT.uniform([-3, -3], [3, 3], 120)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "cvt"
    options = {"x0": jnp.zeros(6), "iterations": 60, "progress": False, "out": out}
    return dqd.illuminate(score, MEGA, CELLS, **options), out


def test_a_run_is_found_again_on_disk_and_drawn(result, tmp_path):
    found, out = result
    saved = dqd.load(out)
    assert saved.coverage == found.archive.to_numpy().coverage > 50
    np.testing.assert_array_equal(saved.solutions, found.archive.to_numpy().solutions)
    np.testing.assert_array_equal(saved.retrieve(saved.measures).cell, saved.cell)
    axes = saved.plot(tmp_path / "map.png")
    picture = axes.images[0].get_array()
    assert np.ma.count(picture) / picture.size == pytest.approx(saved.coverage / 100, abs=0.1)


def test_a_finished_run_of_the_same_cells_is_returned(result):
    found, out = result
    options = {"x0": jnp.zeros(6), "iterations": 60, "progress": False, "out": out}
    assert dqd.illuminate(score, MEGA, CELLS, **options).qd_score == found.qd_score
    other = dqd.CVT.uniform([-3, -3], [3, 3], 120, seed=1)
    with pytest.raises(ValueError, match="centroids"):
        dqd.illuminate(score, MEGA, other, **options)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".parquet", ".csv"])
def test_exported_files_are_read_back_without_jax(result, tmp_path, suffix):
    path = result[0].archive.save(tmp_path / f"elites{suffix}")
    program = f"import dqd, sys; a = dqd.load({str(path)!r}); print(len(a), a.qd_score, 'jax' in sys.modules)"
    words = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    saved = result[0].archive.to_numpy()
    assert words == [str(len(saved)), str(saved.qd_score), "False"]


def test_a_table_of_too_many_cells_is_refused(tmp_path):
    cells = dqd.CVT(np.random.default_rng(0).uniform(size=(30_000, 2)))
    none = np.zeros(0, np.float32)
    archive = dqd.SavedArchive(none.astype(np.int32), none, none.reshape(0, 2), none.reshape(0, 3), None, cells)
    with pytest.raises(ValueError, match=r"30,000 cells are too many .* choose .npz"):
        archive.save(tmp_path / "elites.csv")
    assert dqd.load(archive.save(tmp_path / "elites.npz")).num_cells == 30_000


def test_a_damaged_file_is_refused(result, tmp_path):
    saved = result[0].archive.to_numpy()
    moved = np.roll(saved.measures, 1, axis=0)
    with pytest.raises(ValueError, match="does not lie in its cell"):
        dqd.SavedArchive(saved.cell, saved.objective, moved, saved.solutions, None, saved.tessellation)


def test_a_loop_of_ones_own_finds_the_same_as_the_compiled_one(result):
    differentiate = jax.jit(jax.vmap(jax.jacobian(lambda x: jnp.hstack(score(x)))))
    search, evaluate = dqd.AskTell(MEGA, CELLS, x0=jnp.zeros(6)), jax.jit(jax.vmap(score))
    while search.iteration < 60:
        points = search.ask_dqd()
        search.tell_dqd(*evaluate(points), differentiate(points))
        search.tell(*evaluate(search.ask()))
    np.testing.assert_array_equal(search.result().elites.cell, result[0].elites.cell)


def test_seeds_side_by_side_find_what_they_find_alone(result):
    both = dqd.illuminate(score, MEGA, CELLS, x0=jnp.zeros(6), iterations=60, seeds=[1, 0], progress=False)
    np.testing.assert_array_equal(both[1].elites.cell, result[0].elites.cell)
    assert both[0].elites.cell.tolist() != both[1].elites.cell.tolist()


# Other cells for the same elites --------------------------------------------------------------------------------------


def test_retessellate_keeps_the_best_of_every_new_cell(result):
    saved = result[0].archive.to_numpy()
    grid = dqd.Grid([-3, -3], [3, 3], [4, 4])
    for archive in (saved, result[0].archive, result[0]):
        other = archive.retessellate(grid)
        cell = grid.index_of(saved.measures)
        assert other.cell.tolist() == sorted(set(cell.tolist()))
        assert other.objective.tolist() == [saved.objective[cell == each].max() for each in other.cell]
    again = saved.retessellate(saved.tessellation)
    np.testing.assert_array_equal(again.solutions, saved.solutions)
    np.testing.assert_array_equal(again.found, saved.found)


def test_retessellate_inserts_by_the_rule_of_the_archive(result):
    saved, grid = result[0].archive.to_numpy(), dqd.Grid([-3, -3], [3, 3], [4, 4])
    live = dqd.illuminate(score, MEGA, grid, x0=jnp.zeros(6), archive=saved, iterations=0, progress=False).archive
    np.testing.assert_array_equal(live.to_numpy().solutions, saved.retessellate(grid).solutions)


def test_retessellate_takes_the_cells_of_another_archive_and_keeps_what_is_known_of_elites(result):
    saved = result[0].to_numpy()
    known = {"mass": np.arange(len(saved), dtype=np.float32)}
    config = {"domain": {"type": "Own", "measures": ["height", "speed"]}, "summary": {"coverage": 1.0}}
    rich = dataclasses.replace(saved, fields=known, config=config)
    grid = dqd.Grid([-3, -3], [3, 3], [4, 4])
    other = rich.retessellate(saved.retessellate(grid))
    assert other.tessellation == grid
    assert (other.labels, "summary" in other.config) == (("height", "speed"), False)
    for row, solution in enumerate(other.solutions):
        assert other.fields["mass"][row] == np.flatnonzero((saved.solutions == solution).all(axis=1))[0]


def test_retessellate_says_which_archives_have_no_cells(result):
    with pytest.raises(TypeError, match=r"dqd.SlidingBoundaries has no cells before a search; give a result"):
        result[0].retessellate(dqd.SlidingBoundaries([4, 4]))
    free = dqd.Archive.empty(dqd.DNS(2, 5), 6)
    with pytest.raises(ValueError, match=r"the elites of that archive lie in no cells"):
        result[0].retessellate(free)


def test_retessellate_wants_cells_of_as_many_measures(result):
    with pytest.raises(ValueError, match="the archive has 2 measures, the cells are for 1"):
        result[0].retessellate(dqd.Grid([0], [1], [3]))


@pytest.mark.parametrize(("cells", "k"), [(7, 1), (300, 2), (200, 12)])
def test_near_are_the_nearest_centroids_its_own_first_for_numpy_and_jax(cells, k):
    random = np.random.default_rng(k)
    cvt, rows = dqd.CVT(random.normal(size=(cells, k))), random.normal(size=(5, k)).astype(np.float32)
    expected = np.argsort(squares(rows, cvt.centroids.astype(np.float32)), axis=1)[:, :20]
    for measures in (rows, jnp.asarray(rows)):
        found, middles = cvt.near(measures, 20)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(found[:, 0], cvt.index_of(rows))
        np.testing.assert_allclose(middles, cvt.centroids[expected], rtol=1e-6)
        np.testing.assert_allclose(
            cvt.widths(measures), np.subtract(cvt.upper, cvt.lower) / cells ** (1 / k), rtol=1e-6
        )


def test_algorithms_that_aim_at_cells_take_centroids():
    cells = dqd.CVT.uniform([-3, -3, -3], [3, 3, 3], 60)
    result = dqd.illuminate(
        lambda x: (5 - jnp.sum(x**2), 3 * jnp.tanh(x[:3])), dqd.targeting(), cells, x0=jnp.zeros(6), iterations=60,
        progress=False,
    )  # fmt: skip
    assert result.coverage > 80
