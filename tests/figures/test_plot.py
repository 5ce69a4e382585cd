"""dqd.plot: what is given is drawn, into whatever axes, and numbers stay numbers."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from explorer.samples import archive, config, metrics
from explorer.voronoi import Voronoi, voronoi_archive
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dqd
from dqd.figures import draw
from dqd.saved.archive import SavedArchive
from dqd.tessellations import kinds

PNG = b"\x89PNG"


def with_metrics(rows, timings=(), **options):
    saved = archive(**options)
    fields = ("cell", "objective", "measures", "solutions", "found", "tessellation")
    return SavedArchive(*(getattr(saved, name) for name in fields), config=config(), metrics=rows, timings=timings)


@pytest.mark.parametrize("shape", [(9,), (5, 4), (4, 3, 2), (3, 2, 2, 3), (2,) * 7])
def test_an_archive_of_any_number_of_measures_is_drawn(shape, tmp_path):
    axes = archive(shape).plot(tmp_path / "map.png", title="a title")
    assert isinstance(axes, Axes)
    assert axes.get_title() == "a title"
    assert (tmp_path / "map.png").read_bytes().startswith(PNG)


def test_results_live_archives_and_saved_ones_give_the_same_map(results):
    result = results[0]
    drawn = [dqd.plot.heatmap(each).images[0].get_array() for each in (result, result.archive, result.to_numpy())]
    expected = np.full(30, np.nan)
    expected[result.elites.cell] = result.elites.objective
    for each in drawn:
        np.testing.assert_array_equal(each.filled(np.nan), expected.reshape(6, 5).T)


@pytest.mark.parametrize("name", ["heatmap", "pairs", "parallel", "maps", "curves", "ccdf", "path", "collage"])
def test_axes_that_are_given_are_drawn_into_and_returned(name):
    saved, given = with_metrics(metrics(), shape=(5, 4)), Figure().add_subplot()
    arguments = {"path": [[[0.1, 0.2], [0.5, 1.5]]], "collage": [lambda x: np.zeros((len(x), 4, 4, 3), np.uint8)]}
    source = [saved] if name == "maps" else saved
    axes = getattr(dqd.plot, name)(source, *arguments.get(name, []), ax=given, title="a title")
    assert axes is given
    assert axes.get_title() == "a title"
    assert axes.has_data() or axes.child_axes


def test_colours_and_labels_are_those_asked_for():
    axes = dqd.plot.heatmap(archive((5, 4)), labels=("a", "b"), objective="c", cmap="magma", vmin=1, vmax=2)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.child_axes[0].get_ylabel()) == ("a", "b", "c")
    assert axes.images[0].get_clim() == (1, 2)
    assert axes.images[0].get_cmap().name == "magma"
    for kind in (dqd.plot.pairs, dqd.plot.parallel):
        drawn = kind(archive((4, 3, 2)), labels=("a", "b", "c"), cmap="magma", vmin=1, vmax=2)
        mappables = [*drawn.collections[:1], *(image for each in drawn.child_axes for image in each.images)]
        assert {(*each.get_clim(), each.get_cmap().name) for each in mappables} == {(1, 2, "magma")}


def test_a_run_knows_the_names_of_its_measures():
    axes = archive((5, 4), config=config()).plot()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hand, x", "hand, y")


def test_small_maps_share_their_colours():
    axes = dqd.plot.maps({"low": archive((4, 3)), "high": archive((4, 3), seed=1)})
    small = [each for each in axes.child_axes if each.images]
    assert [each.get_title() for each in small] == ["low", "high"]
    assert len({each.images[0].get_clim() for each in small}) == 1


def test_seeds_are_named_and_drawn_side_by_side(results, tmp_path):
    axes = results.plot(tmp_path / "maps.png")
    assert [each.get_title() for each in axes.child_axes if each.images] == ["seed 3", "seed 5"]
    assert (tmp_path / "maps.png").read_bytes().startswith(PNG)


def test_a_curve_is_the_mean_over_trials_and_its_interval(results):
    axes = dqd.plot.curves({"ours": results, "one": results[0]})
    ours, one = axes.lines
    np.testing.assert_allclose(ours.get_ydata(), results.history["qd_score"].mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(one.get_ydata(), results.history["qd_score"][:, 0], rtol=1e-6)
    assert ours.get_xdata().tolist() == [1, 2, 3, 4]
    (band,) = axes.collections  # of the one that has several trials
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(results.history["qd_score"][-1].max(), rel=1e-6)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours (2 trials)", "one"]


def test_trials_of_other_steps_meet_where_all_have_values():
    steps = (range(1, 101), range(1, 41, 3))
    trials = [with_metrics([{"iteration": i, "qd_score": 2.0 * i} for i in each]) for each in steps]
    (line,) = dqd.plot.curves(trials).lines
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (1, 40)
    np.testing.assert_allclose(line.get_ydata(), 2 * line.get_xdata())


def test_curves_go_against_evaluations_and_seconds(results):
    result = results[0]
    (line,) = dqd.plot.curves(result, against="evaluations").lines
    assert line.get_xdata().tolist() == [4, 8, 12, 16]  # four of each iteration
    (line,) = dqd.plot.curves(result, against="seconds").lines
    np.testing.assert_allclose(line.get_xdata(), result.seconds * np.arange(1, 5) / 4)
    known = [{"iteration": i, "seconds": float(i**2), "evaluations": 100 + 36 * i} for i in (10, 20, 40)]
    rows = [{"iteration": i, "qd_score": 1.0 * i} for i in (5, 15, 40)]
    (line,) = dqd.plot.curves(with_metrics(rows, known), against="evaluations").lines
    assert line.get_xdata().tolist() == [280, 640, 1540]
    (line,) = dqd.plot.curves(with_metrics(rows, known), against="seconds").lines
    assert line.get_xdata().tolist() == [0, 250, 1600]
    with pytest.raises(ValueError, match="not known how many seconds"):
        dqd.plot.curves(with_metrics(rows), against="seconds")
    with pytest.raises(ValueError, match="unknown axis 'steps'"):
        dqd.plot.curves(result, against="steps")


def test_the_ccdf_counts_all_cells():
    saved = archive((5, 4), filled=0.5)
    (line,) = dqd.plot.ccdf(saved).lines
    x, y = line.get_xdata(), line.get_ydata()
    assert y[0] == 50
    assert y[-1] == pytest.approx(100 / 20)
    for i in (20, 100, 180):
        assert y[i] == pytest.approx(100 * np.sum(saved.objective >= x[i]) / 20)


def test_a_path_goes_through_its_points():
    points = np.array([[0.1, 0.5], [0.2, 1.0], [0.9, 1.5]])
    axes = dqd.plot.path(archive((5, 4)), points, measures=(1, 0))
    assert any(np.array_equal(line.get_xydata(), points[:, ::-1]) for line in axes.lines)
    with pytest.raises(ValueError, match=r"points: expected measures \(steps, 2\)"):
        dqd.plot.path(archive((5, 4)), [0.1, 0.2])


def test_a_collage_has_the_images_of_its_elites():
    saved = archive((2, 2), filled=1.0)
    axes = dqd.plot.collage(saved, lambda x: np.full((len(x), 4, 4, 3), 7, np.uint8), pixels=16)
    assert (np.asarray(axes.images[0].get_array()) == 7).all()
    with pytest.raises(ValueError, match="solutions were not saved"):
        dqd.plot.collage(_without_solutions(saved), lambda x: x)


def _without_solutions(saved):
    return SavedArchive(saved.cell, saved.objective, saved.measures, None, None, saved.tessellation)


def test_cells_of_another_kind_are_drawn_by_their_pixels(monkeypatch):
    monkeypatch.setitem(kinds.KINDS, Voronoi.kind, Voronoi)
    saved = voronoi_archive()
    drawn = dqd.plot.heatmap(saved).images[0].get_array().filled(np.nan)
    values = np.full(saved.num_cells, np.nan)
    values[saved.cell] = saved.objective
    np.testing.assert_array_equal(drawn, values[saved.tessellation.raster().cells])


def test_an_empty_archive_is_drawn():
    empty = dqd.Archive.empty(dqd.Grid([0, 0], [1, 1], [3, 3]), 2)
    assert empty.plot()._repr_png_().startswith(PNG)
    assert dqd.plot.ccdf(empty).lines[0].get_ydata().max() == 0
    for kind in (dqd.plot.pairs, dqd.plot.parallel):
        kind(dqd.Archive.empty(dqd.Grid([0] * 3, [1] * 3, [2] * 3), 2))


def test_a_notebook_displays_what_is_returned():
    for axes in (archive((5, 4)).plot(), dqd.plot.curves(with_metrics(metrics()))):
        assert axes._repr_png_().startswith(PNG)
        assert axes.figure._repr_png_().startswith(PNG)


def test_what_is_no_run_is_refused_in_words():
    with pytest.raises(TypeError, match="runs: expected results or archives"):
        dqd.plot.curves({"a": [1, 2]})
    with pytest.raises(ValueError, match="unknown metric 'qd'"):
        dqd.plot.curves(archive(), "qd")
    with pytest.raises(ValueError, match="runs with metrics"):
        dqd.plot.curves(archive())


def test_plots_load_neither_jax_nor_pyplot_and_leave_the_style_alone():
    code = "import sys, dqd; dqd.plot.heatmap; sys.exit(bool({'jax', 'matplotlib.pyplot'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    before = dict(matplotlib.rcParams)
    archive((4, 3, 2)).plot()
    assert dict(matplotlib.rcParams) == before


def test_the_colours_of_lines_can_be_told_apart():
    assert len(set(draw.LINES)) == len(draw.LINES)
