"""Archives without cells, and with cells that move, on every path: compiled, a loop of one's own, files, pictures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from conformance.table import quick_to_compile

import dqd
from dqd.figures import thumbnails

COMPETITIONS = {
    "dns": dqd.DNS(2, 30),
    "novelty": dqd.Novelty(2, 0.4, 40, neighbours=3, local_competition=True),
    "unbounded": dqd.UnboundedGrid([8, 8]),
    "sliding": dqd.SlidingBoundaries([8, 8], every=60, remembered=80),
}
OPTIONS = {"x0": jnp.zeros(6), "seed": 3}


@pytest.fixture(scope="module", params=COMPETITIONS)
def found(request, tmp_path_factory):
    """Both algorithms and competitions would show the same; each pair is compiled once."""
    folder = tmp_path_factory.mktemp(request.param)
    competition = COMPETITIONS[request.param]
    return competition, search(competition, folder / "run"), folder


def is_moving(competition):
    return isinstance(competition, dqd.UnboundedGrid | dqd.SlidingBoundaries)


def search(competition, out, iterations=20):
    with quick_to_compile():
        options = {"iterations": iterations, "chunk": 10, "progress": False, "out": out}
        return dqd.illuminate(small.score, small.MEGA, competition, **options, **OPTIONS)


def test_the_compiled_loop_and_ones_own_find_the_same(found):
    competition, result, _ = found
    own = dqd.AskTell(small.MEGA, competition, **OPTIONS)
    plain, with_jacobian = jax.jit(result.domain.evaluate), jax.jit(result.domain.evaluate_with_jacobian)
    while own.iteration < 20:
        told = with_jacobian(own.ask_dqd())
        own.tell_dqd(told.objective, told.measures, told.jacobian)
        told = plain(own.ask())
        own.tell(told.objective, told.measures)
    assert len(result.archive) > 10
    for name in ("solutions", "objective", "measures"):
        np.testing.assert_array_equal(getattr(own.archive, name), getattr(result.archive, name))


def test_a_run_that_goes_on_is_the_run_in_one(found, tmp_path):
    competition, result, _ = found
    for iterations in (10, 20):
        resumed = search(competition, tmp_path, iterations)
    np.testing.assert_array_equal(resumed.archive.solutions, result.archive.solutions)
    assert resumed.qd_score == result.qd_score


@pytest.mark.parametrize("kind", [".csv", ".npz", ".parquet", ".safetensors"])
def test_files_give_the_elites_back(found, kind, tmp_path):
    _, result, folder = found
    there = dqd.load(folder / "run")
    again = dqd.load(there.save(tmp_path / f"elites{kind}"))
    for saved in (there, again):
        np.testing.assert_array_equal(saved.solutions, result.elites.solutions)
        np.testing.assert_array_equal(saved.cell, result.elites.cell)
        assert saved.num_cells == result.archive.num_cells
        assert saved.qd_score == pytest.approx(result.qd_score, rel=1e-6)
        at = np.array([[0.5, -0.5], [9.0, 9.0]])
        np.testing.assert_array_equal(saved.retrieve(at).solutions, result.retrieve(at).solutions)


def test_pictures_show_every_elite(found, tmp_path):
    competition, result, folder = found
    saved = dqd.load(folder / "run")
    raster = saved.tessellation.raster()
    shown = set(np.unique(raster.cells)) - {-1}
    assert shown >= set(saved.cell.tolist()) if is_moving(competition) else shown == set(saved.cell.tolist())
    assert (thumbnails.thumbnail(saved.arrays()) < thumbnails.EMPTY).sum() >= len(saved)
    result.plot(tmp_path / "map.png")
    assert b"dqd" in result.show().content
    assert "elites" in result._repr_html_()


def test_elites_go_to_cells_and_to_other_searches(found):
    competition, result, _ = found
    grid = result.retessellate(small.GRID)
    assert 0 < len(grid) <= len(result.archive)
    assert grid.best == pytest.approx(float(np.max(result.elites.objective)))
    own = dqd.AskTell(small.MEGA, competition, archive=result, **OPTIONS)
    assert len(result.archive) / 2 < len(own.archive) <= len(result.archive)  # those that were replaced leave gaps
    if is_moving(competition):
        assert dqd.Archive.from_numpy(result.to_numpy()).qd_score == pytest.approx(result.qd_score, rel=1e-6)
        return
    with pytest.raises(ValueError, match="lie in no cells"):
        dqd.Archive.from_numpy(result.to_numpy())


def test_views_of_earlier_iterations_are_placed_by_their_measures(found):
    from dqd.explorer.library import Library

    _, result, folder = found
    library = Library(folder)
    (place,) = library.places().values()
    first, *_, last = library.views(place)
    early, late = library.view(place, first), library.view(place, last)
    assert len(early["cell"]) < len(late["cell"]) == len(result.archive)
    np.testing.assert_array_equal(late["cell"], result.elites.cell)


def test_what_needs_cells_is_refused_in_words():
    def search(emitter):
        return dqd.illuminate(small.score, emitter, dqd.DNS(2, 30), x0=jnp.zeros(6), progress=False)

    with pytest.raises(TypeError, match=r"archive: dqd.DNS has no cells that stay"):
        search(dqd.targeting())
    with pytest.raises(ValueError, match=r"threshold: dqd.DNS has no cells"):
        search(dqd.cma_mae(0.5))
    with pytest.raises(ValueError, match=r"sigma: dqd.DNS has no cells beforehand for steps"):
        search(dqd.cma_mega())
    with pytest.raises(ValueError, match=r"expected measures of shape \(3,\), as many as the archive is for"):
        dqd.illuminate(small.score, small.MEGA, dqd.DNS(3, 30), x0=jnp.zeros(6))


@pytest.mark.parametrize("kind", ["unbounded", "sliding"])
def test_every_seed_has_cells_of_its_own(kind):
    options = {"iterations": 12, "progress": False, "x0": jnp.zeros(6)}
    with quick_to_compile():
        many = dqd.illuminate(small.score, small.MEGA, COMPETITIONS[kind], **options, seeds=[3, 4])
        alone = dqd.illuminate(small.score, small.MEGA, COMPETITIONS[kind], **options, seed=4)
    one, other = (result.to_numpy().tessellation.arrays() for result in many)
    assert any(np.any(one[name] != other[name]) for name in one)
    np.testing.assert_allclose(many[1].archive.objective, alone.archive.objective, rtol=1e-5)
    assert many[1].coverage == alone.coverage
