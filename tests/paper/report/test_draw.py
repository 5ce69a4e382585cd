"""The figures of a suite as files: every one shows something, and says what is missing."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from paper.report.made_up import TRIALS, write_whole_suite

from dqd.paper import suites
from dqd.paper.report import panels
from dqd.paper.report.collect import read_suite
from dqd.paper.report.draw import curves
from dqd.paper.report.draw.looks import LOOKS
from dqd.paper.report.draw.suite import FIGURES_OF, draw_figures


def check_picture(path: Path) -> None:
    picture = imread(path)[..., :3]
    assert path.stat().st_size < 400_000
    assert 700 <= picture.shape[1] <= 1500  # 3.5 to 7.5 inches
    assert (picture < 0.9).any(axis=-1).mean() > 0.005


@pytest.mark.parametrize("name", [name for name in suites.names() if name != "table1"])
def test_every_figure_is_written_and_not_blank(name, tmp_path):
    written = draw_figures(read_suite(write_whole_suite(tmp_path / "suite", name)), tmp_path / "out")
    assert len(written) == len(FIGURES_OF[name]) > 0
    for path in written:
        check_picture(path)


def test_figures_of_table_1_are_drawn_from_what_is_there(table1, tmp_path):
    written = draw_figures(read_suite(table1), tmp_path)
    names = ("curves", "archives", "near-optimum", "cumulative", "lp-examples", "arm-examples")
    assert {path.stem for path in written} == {f"table1-{name}" for name in names}
    for path in written:
        check_picture(path)


def test_an_empty_suite_has_only_the_figures_without_data(tmp_path):
    every = [(entry.id, trial) for entry in suites.suite("table1").entries for trial in range(TRIALS)]
    written = draw_figures(read_suite(write_whole_suite(tmp_path / "suite", "table1", every)), tmp_path / "out")
    assert [path.stem for path in written] == ["table1-lp-examples", "table1-arm-examples"]


def test_panels_say_what_is_missing_and_the_legend_names_all_in_order(table1):
    figure = curves.curves(read_suite(table1))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert "OMG-MEGA: 0 of 3 trials" in texts[0]
    assert "CMA-ME: 2 of 3 trials" in texts[2]
    titles = [suites.ALGORITHMS[key].title for key in suites.TABLE_1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == titles  # in the paper's order


def test_a_line_that_leaves_the_panel_is_named():
    x, zero = np.arange(3), np.zeros(3)
    line = panels.Line("cma-mega", "CMA-MEGA", x, np.array([0, -4500.0, 60]), zero, zero, 2)
    assert curves._cut(panels.Lines("arm", (line,), 80.0, ()), -5) == ["CMA-MEGA falls to \N{MINUS SIGN}4,500"]


def test_colors_differ_for_colour_blind_readers():
    """At least 20 apart in CIELAB as seen in full colour and with each kind of dichromacy (Machado et al. 2009)."""
    seen_by = {
        "all": np.eye(3),
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
        "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    }
    colors = np.array([to_rgb(LOOKS[key].color) for key in suites.TABLE_1])
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    for matrix in seen_by.values():
        points = lab(linear @ np.transpose(matrix))
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2)) > 20
    assert len({LOOKS[key].marker for key in suites.TABLE_1}) == 8


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    xyz = np.clip(linear_rgb, 0, 1) @ np.transpose(to_xyz) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def test_figures_never_import_jax():
    code = "import sys, dqd.paper.report.draw.suite; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
