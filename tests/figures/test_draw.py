"""Pictures are really written and show what the panel says."""

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from dqd.figures import draw
from dqd.figures.panels import HeatMap, Poses

GRAY = matplotlib.colors.to_rgb(draw.EMPTY)


def panel(matrix: list[list[float]], num_measures: int = 2) -> HeatMap:
    return HeatMap(np.array(matrix), (0.0, 1.0, 0.0, 1.0), num_measures, "left to right", "upward", "height")


def heatmap(panel: HeatMap, **options: object) -> Axes:
    axes = draw.new_axes()
    draw.heatmap(panel, axes, **options)
    return axes


def where(image: np.ndarray, color: tuple[float, ...]) -> np.ndarray:
    return np.abs(image[..., :3] - np.array(color[:3])).max(axis=-1) < 0.02


def test_the_largest_value_lies_where_the_panel_has_it(tmp_path: Path) -> None:
    axes = heatmap(panel([[0, 0], [0, 1]]))  # upper right
    image = imread(draw.save(axes, tmp_path / "new" / "map.png"))
    yellow = where(image, matplotlib.colormaps[draw.COLORS](1.0))
    square = yellow[:, : int(0.75 * yellow.shape[1])]  # without the colour bar
    rows, columns = np.nonzero(square)
    assert rows.max() < 0.55 * image.shape[0]  # rows of an image count downward
    assert columns.min() > 0.3 * image.shape[1]
    assert rows.size > 0.05 * square.size


def test_empty_cells_are_gray(tmp_path: Path) -> None:
    full = imread(draw.save(heatmap(panel([[1, 2], [3, 4]])), tmp_path / "full.png"))
    holes = imread(draw.save(heatmap(panel([[1, 2], [np.nan, 4]])), tmp_path / "holes.png"))
    assert where(full, GRAY).mean() < 0.01  # edges of letters
    assert where(holes, GRAY).mean() > 0.1


def test_labels_and_title_are_there() -> None:
    axes = heatmap(panel([[1, 2], [3, 4]]), title="a title")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("left to right", "upward", "a title")
    assert [bar.get_ylabel() for bar in axes.child_axes] == ["height"]


def test_labels_are_anyones_words(tmp_path: Path) -> None:
    """A text prompt may be long, and hold what would be mathematics."""
    long = "A photograph of a person with a very long beard, standing in the rain in front of an old house"
    panel_of_prompts = replace(panel([[1, 2], [3, 4]]), x_label="costs $5", y_label=long, value_label=r"or $\frac$ {")
    axes = heatmap(panel_of_prompts, title=long)
    draw.save(axes, tmp_path / "map.png")
    assert axes.get_xlabel() == "costs $5"
    assert axes.get_ylabel().split() == long.split()
    assert max(len(line) for line in axes.get_title().splitlines()) <= draw.LETTERS
    assert axes.get_window_extent().width > axes.figure.bbox.width / 3  # the map is not squeezed away


def test_one_measure_is_drawn_as_steps(tmp_path: Path) -> None:
    axes = heatmap(panel([[1, np.nan, 3]], num_measures=1))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("left to right", "height")
    assert imread(draw.save(axes, tmp_path / "steps.png")).std() > 0.01


def test_a_few_bad_elites_do_not_take_all_colors() -> None:
    values = np.linspace(99, 100, 1000)
    values[0] = -1e6
    low, high = draw.limits(values)
    assert 98.9 < low <= 99.1
    assert high == 100
    assert draw.limits(np.linspace(0, 100, 1000)) == (0, 100)
    assert draw.limits(np.full((2, 2), np.nan)) == (0, 1)
    low, high = draw.limits(np.full(3, 7.0))
    assert low < 7 < high


def test_given_limits_are_used_and_the_bar_shows_what_lies_beyond() -> None:
    assert heatmap(panel([[0, 50], [75, 100]]), vmin=10, vmax=80).images[0].get_clim() == (10, 80)
    assert heatmap(panel([[0, 50], [75, 100]]), vmin=10).images[0].get_clim() == (10, 100)
    assert draw._extend(np.array([0.0, 50.0]), 10, 80) == "min"
    assert draw._extend(np.array([50.0, np.nan]), 10, 80) == "neither"


def test_poses_are_drawn_one_by_one(tmp_path: Path) -> None:
    joints = np.array([[[0, 0], [1, 0], [2, 0]], [[0, 0], [0, 1], [0, 2]], [[0, 0], [-1, 0], [-1, 1]]], float)
    figure = draw.poses(Poses(joints, np.array([1.0, 2.0, 3.5]), 2.0))
    assert [axes.get_title() for axes in figure.axes] == ["objective 1", "objective 2", "objective 3.5"]
    assert imread(draw.save(figure, tmp_path / "poses.png")).std() > 0.05


def test_an_unknown_ending_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in one of: .*\.png"):
        draw.save(heatmap(panel([[1, 2]])), tmp_path / "map.bmpp")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_replaces_a_link_and_leaves_what_it_led_to(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "ours").write_text("precious")
    (tmp_path / f"map.{suffix}").symlink_to(tmp_path / "ours")
    draw.save(heatmap(panel([[1, 2]])), tmp_path / f"map.{suffix}")
    assert (tmp_path / "ours").read_text() == "precious"
    assert (tmp_path / f"map.{suffix}").stat().st_size > 1000
    assert len(list(tmp_path.iterdir())) == 2


def test_drawing_leaves_the_users_style_alone() -> None:
    before = dict(matplotlib.rcParams)
    heatmap(panel([[1, 2]]))
    assert dict(matplotlib.rcParams) == before
