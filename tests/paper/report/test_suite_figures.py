"""The figures of a suite: their numbers against closed forms and hand-made cases; every file shows something."""

import dataclasses
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from dqd.paper import suites
from dqd.paper.report import panels
from dqd.paper.report.collect import read_suite
from dqd.paper.report.draw import curves
from dqd.paper.report.draw.looks import LOOKS
from dqd.paper.report.draw.suite import FIGURES_OF, draw_figures
from dqd.storage import record

N, SIDE, ITERATIONS, TRIALS = 10, 10, 100, 3


def write_suite(folder: Path, name: str, leave_out=()) -> Path:
    """A small suite of made-up trials. `leave_out` names trials that are missing, as (cell, trial)."""
    suite = suites.suite(name).resized(TRIALS, ITERATIONS)
    cells = [dataclasses.replace(cell, n=N, resolution=SIDE) for cell in suite.cells]
    about = {"suite": name, "title": suite.title, "cells": [cell.describe() for cell in cells]}
    folder.mkdir()
    (folder / "suite.json").write_text(json.dumps(about))
    for cell, trial in itertools.product(cells, range(TRIALS)):
        if (cell.id, trial) not in leave_out:
            write_trial(folder / cell.id / f"trial-{trial:03d}", cell, trial)
    return folder


def write_trial(place: Path, cell, trial: int) -> None:
    random = np.random.default_rng([trial, *cell.id.encode()])
    occupied = np.sort(random.choice(SIDE**2, 40, replace=False))
    limit = float(N) if cell.domain == "arm" else 5.12 * N / 2
    solutions = random.normal(0.3, 0.001, (40, N)).astype(cell.precision)
    arrays = {
        "cell": occupied,
        "objective": (100 * (1 - solutions.var(axis=1)) if cell.domain == "arm" else random.uniform(0, 100, 40)),
        "grid_lower": np.full(2, -limit),
        "grid_upper": np.full(2, limit),
        "grid_shape": np.array([SIDE, SIDE]),
    } | ({"solutions": solutions} if trial == 0 else {})
    steps = np.arange(10, ITERATIONS + 1, 10)
    final = {"qd_score": 40.0 + trial, "coverage": 40.0, "best": 99.0, "mean": 90.0}
    rows = [{"iteration": int(step), **final, "qd_score": final["qd_score"] * step / ITERATIONS} for step in steps]
    record.write(place, {"summary": {**final, "iterations": ITERATIONS, "seed": trial}}, rows, arrays)


@pytest.fixture(scope="module")
def table1(tmp_path_factory) -> Path:
    gone = [("arm.cma-me", 0), *(("lp-sphere.omg-mega", trial) for trial in range(TRIALS))]
    return write_suite(tmp_path_factory.mktemp("suites") / "table1", "table1", gone)


# The domains explained ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_bates_density_has_the_moments_of_a_mean_of_uniform_numbers(n):
    x = np.linspace(0, 1, 20_001)
    density = panels.bates(n, x)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(density * x, x) == pytest.approx(0.5, abs=1e-6)
    assert np.trapezoid(density * (x - 0.5) ** 2, x) == pytest.approx(1 / (12 * n), rel=1e-5)
    assert density.min() >= 0


def test_bates_density_at_known_points():
    assert panels.bates(1, np.array([0.0, 0.3, 1.0])).tolist() == [1, 1, 1]
    np.testing.assert_allclose(panels.bates(2, np.array([0, 0.25, 0.5, 0.9])), [0, 1, 2, 0.4])
    np.testing.assert_allclose(panels.bates(3, np.array([0.5, 1 / 3])), [9 / 4, 3 / 2])
    np.testing.assert_allclose(panels.bates(5, np.array(0.5)), 5 * 115 / 192)
    assert panels.bates(5, np.array([-0.1, 1.1])).tolist() == [0, 0]


def test_clip_folds_back_outside_the_box():
    x = np.array([-6.0, -5.12, 0.0, 3.0, 5.12, 6.0])
    np.testing.assert_allclose(panels.clip(x), [-0.853333, -5.12, 0, 3, 5.12, 0.853333], rtol=1e-6)
    np.testing.assert_allclose(panels.clip_slope(x), [-0.142222, 1, 1, 1, 1, -0.142222], rtol=1e-5)


def test_example_arms_reach_where_geometry_says():
    equal, other, many = panels.example_arms().values()
    turn = np.exp(0.65j)
    hand = turn * (turn**7 - 1) / (turn - 1)  # geometric series of the links
    np.testing.assert_allclose(equal.joints[0, -1], [hand.real, hand.imag])
    np.testing.assert_allclose(equal.joints[0, 1], [np.cos(0.65), np.sin(0.65)])
    assert equal.objective[0] == pytest.approx(100)
    mean, mean_square = 3.27 / 7, 8.4279 / 7
    assert other.objective[0] == pytest.approx(100 * (1 - mean_square + mean**2))
    np.testing.assert_allclose(other.joints[0, 2], [np.cos(2.65) + np.cos(3.4), np.sin(2.65) + np.sin(3.4)])
    assert many.joints.shape == (19, 8, 2)
    np.testing.assert_allclose(many.joints[9, -1], [7, 0])
    np.testing.assert_allclose(many.joints[0], many.joints[-1] * [1, -1], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(np.diff(many.joints, axis=1), axis=-1), 1)


# Means over trials ----------------------------------------------------------------------------------------------------


def test_share_of_cells_above_thresholds():
    objective = np.array([50, -3, 99.9, 10, 50], np.float32)
    shares = panels.share_above(objective, 8, np.array([0, 10, 10.5, 50, 51, 100]))
    assert shares.tolist() == [50, 50, 37.5, 37.5, 12.5, 0]


def test_interval_of_two_trials_is_their_range():
    low, high = panels.band(np.array([[1.0, 5.0], [3.0, 2.0]]))
    assert (low.tolist(), high.tolist()) == ([1, 2], [3, 5])


def test_interval_of_many_trials_is_about_two_standard_errors():
    values = np.random.default_rng(1).normal(10, 3, (400, 3))
    low, high = panels.band(values)
    error = values.std(axis=0) / 20
    np.testing.assert_allclose((high - low) / 2, 1.96 * error, rtol=0.1)
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    np.testing.assert_array_equal(panels.band(values)[0], low)


def test_one_trial_has_no_interval():
    assert np.isnan(panels.band(np.ones((1, 4)))).all()


def test_curves_are_means_with_intervals_around_them(table1):
    sphere, _, arm = panels.curves(read_suite(table1))
    assert [line.key for line in arm.lines] == list(suites.TABLE_1)
    line = arm.lines[0]
    np.testing.assert_allclose(line.mean, 41 * line.x / 100)
    np.testing.assert_allclose((line.low[-1], line.high[-1]), (40, 42))
    assert (arm.missing, arm.lines[2].trials) == (("CMA-ME: 2 of 3 trials",), 2)
    assert sphere.missing == ("OMG-MEGA: 0 of 3 trials",)
    assert "omg-mega" not in [each.key for each in sphere.lines]
    assert arm.bound == 88  # cells of a 10 x 10 grid that reach into the disc


def test_cumulative_shares_are_means_over_trials(table1):
    rastrigin = panels.cumulative(read_suite(table1))[1]
    folders = (table1 / "lp-rastrigin.cma-mega").iterdir()
    objectives = [record.read(folder).arrays["objective"] for folder in folders]
    line = rastrigin.lines[6]
    by_hand = [np.mean([(objective >= t).sum() for objective in objectives]) for t in range(101)]
    np.testing.assert_allclose(line.mean, by_hand)
    assert (line.low <= line.mean).all()
    assert (line.mean <= line.high).all()


# Archives -------------------------------------------------------------------------------------------------------------


def test_archives_have_a_row_per_algorithm_and_say_what_is_missing(table1):
    panel = panels.archives(read_suite(table1))
    assert panel.rows[0] == "MAP-Elites"
    assert panel.rows[-1] == "CMA-MEGA (Adam)"
    assert panel.columns == ("LP (sphere)", "LP (Rastrigin)", "Arm repertoire")
    assert panel.notes == {(2, 2): "trial 1", (5, 0): "no trial yet"}
    assert len(panel.maps) == 8 * 3 - 1
    first = record.read(table1 / "lp-sphere.cma-me" / "trial-000").arrays
    assert panel.maps[2, 0].matrix[first["cell"][0] % SIDE, first["cell"][0] // SIDE] == first["objective"][0]
    assert panel.turned().maps[0, 2] is panel.maps[2, 0]


def test_distance_from_the_optimum_keeps_its_digits():
    objective = np.array([100, 81, 0, -5, 100 - 2.0**-32])
    np.testing.assert_allclose(panels.distance_from_optimum(objective), [0, 10, 100, 100, 2.0**-33], rtol=1e-9)


def test_near_optimum_tells_apart_what_float32_stores_as_equal(table1):
    panel = panels.near_optimum(read_suite(table1))
    arrays = record.read(table1 / "arm.cma-mega-adam" / "trial-000").arrays
    variance = arrays["solutions"].astype(np.float64).var(axis=1)
    place = arrays["cell"] % SIDE, arrays["cell"] // SIDE
    np.testing.assert_allclose(panel.nines.matrix[place], -np.log10(50 * variance), rtol=1e-4)
    assert panel.recomputed
    assert panel.step == pytest.approx(2**-17 / 2)
    assert panel.at_optimum == 100 * np.mean(arrays["objective"] == 100)


def test_near_optimum_without_solutions_shows_what_is_stored(tmp_path):
    folder = write_suite(tmp_path / "precision", "precision", [("arm.cma-mega-adam.float64", 0)])
    panel = panels.near_optimum(read_suite(folder))
    assert not panel.recomputed
    assert (panel.precision, panel.step < 1e-14) == ("float64", True)


# Files ----------------------------------------------------------------------------------------------------------------


def check_picture(path: Path) -> None:
    picture = imread(path)[..., :3]
    assert path.stat().st_size < 400_000
    assert 700 <= picture.shape[1] <= 1500  # 3.5 to 7.5 inches
    assert (picture < 0.9).any(axis=-1).mean() > 0.005


@pytest.mark.parametrize("name", [name for name in suites.names() if name != "table1"])
def test_every_figure_is_written_and_not_blank(name, tmp_path):
    written = draw_figures(read_suite(write_suite(tmp_path / "suite", name)), tmp_path / "out")
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
    every = [(cell.id, trial) for cell in suites.suite("table1").cells for trial in range(TRIALS)]
    written = draw_figures(read_suite(write_suite(tmp_path / "suite", "table1", every)), tmp_path / "out")
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
