"""Figure data, by numbers."""

import subprocess
import sys

import numpy as np
import pytest

from dqd.domains import Arm
from dqd.figures import panels


def archive(shape: list[int], cells: list[int], objective: list[float], **arrays: np.ndarray) -> dict[str, np.ndarray]:
    k = len(shape)
    return {
        "cell": np.array(cells, np.int32),
        "objective": np.array(objective),
        "grid_lower": -np.arange(1.0, k + 1),  # -1, -2, ...: every axis is different
        "grid_upper": 10 * np.arange(1.0, k + 1),
        "grid_shape": np.array(shape),
        **arrays,
    }


def test_measure_0_runs_to_the_right_and_measure_1_upward() -> None:
    # Of 2 x 3 cells, cell 1 is (0, 1) and cell 5 is (1, 2).
    panel = panels.heatmap(archive([2, 3], [1, 5], [7.0, -8.0]))
    nan = np.nan
    np.testing.assert_array_equal(panel.matrix, [[nan, nan], [7, nan], [nan, -8]])
    assert panel.extent == (-1, 10, -2, 20)
    assert (panel.x_label, panel.y_label, panel.value_label) == ("measure 0", "measure 1", "objective")


def test_one_measure_gives_one_row() -> None:
    panel = panels.heatmap(archive([4], [2], [5.0]))
    np.testing.assert_array_equal(panel.matrix, [[np.nan, np.nan, 5, np.nan]])
    assert panel.extent[:2] == (-1, 10)
    assert panel.num_measures == 1


def test_an_empty_archive_is_all_nan() -> None:
    assert np.isnan(panels.heatmap(archive([2, 2], [], [])).matrix).all()


def test_three_measures_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="1 or 2 measures, got 3"):
        panels.heatmap(archive([2, 2, 2], [0], [1.0]))


def test_poses_are_those_of_the_arm_domain() -> None:
    angles = np.random.default_rng(1).normal(size=(30, 5))
    arrays = archive([9, 9], list(range(30)), list(range(30)), solutions=angles, measures=angles[:, :2])
    poses = panels.arm_poses(arrays, 4)
    assert poses.joints.shape == (4, 6, 2)
    assert poses.reach == 5
    for joints, row in zip(poses.joints, poses.objective.astype(int), strict=True):  # the objective tells which arm
        np.testing.assert_allclose(joints, Arm(5).joints(angles[row]), atol=1e-5)


def test_poses_leave_out_the_worst_and_never_repeat() -> None:
    angles = np.random.default_rng(2).normal(size=(20, 3))
    arrays = archive([9, 9], list(range(20)), list(range(20)), solutions=angles, measures=angles[:, :2])
    poses = panels.arm_poses(arrays, 30)
    assert sorted(poses.objective) == list(range(2, 20))  # the worst tenth are 0 and 1
    with pytest.raises(ValueError, match="empty"):
        panels.arm_poses(archive([2, 2], [], [], solutions=np.zeros((0, 3)), measures=np.zeros((0, 2))))


def test_spread_takes_the_middle_then_the_farthest() -> None:
    points = np.array([[0.0, 0], [10, 0], [5, 0], [9, 0], [4.9, 0.1]])
    assert panels.spread(points, 3).tolist() == [2, 0, 1]


def test_reports_and_records_never_import_jax() -> None:
    code = "import sys, dqd.storage.record, dqd.figures.panels, dqd.figures.draw; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
