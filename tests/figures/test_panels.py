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


def test_of_more_measures_two_are_shown_and_the_best_over_the_others() -> None:
    # Of 2 x 3 x 2 cells: (0, 2, 0), (0, 2, 1) and (1, 0, 1).
    arrays = archive([2, 3, 2], [4, 5, 7], [3.0, 5.0, 1.0])
    nan = np.nan
    panel = panels.heatmap(arrays, measures=(2, 1), labels=("a", "b", "c"))
    np.testing.assert_array_equal(panel.matrix, [[nan, 1], [nan, nan], [3, 5]])
    assert panel.extent == (-3, 30, -2, 20)
    assert (panel.x_label, panel.y_label) == ("c", "b")
    np.testing.assert_array_equal(panels.heatmap(arrays).matrix, [[nan, 1], [nan, nan], [5, nan]])


def test_two_measures_may_change_places() -> None:
    arrays = archive([2, 3], [1, 5], [7.0, -8.0])
    turned = panels.heatmap(arrays, measures=(1, 0))
    np.testing.assert_array_equal(turned.matrix, panels.heatmap(arrays).matrix.T)
    assert turned.extent == (-2, 20, -1, 10)


@pytest.mark.parametrize("wrong", [(0, 0), (0, 3), (-1, 1)])
def test_measures_that_are_not_there_are_refused_in_words(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="two different ones from 0 to 2"):
        panels.heatmap(archive([2, 2, 2], [0], [1.0]), measures=wrong)


@pytest.mark.parametrize("labels", ["abc", ("a", "b")])
def test_labels_are_one_for_each_measure(labels: object) -> None:
    with pytest.raises(ValueError, match="one for each of the 3 measures"):
        panels.heatmap(archive([2, 2, 2], [0], [1.0]), labels=labels)


def test_pairs_are_all_below_the_diagonal() -> None:
    arrays = archive([2, 3, 4], [3, 17], [3.0, 5.0])
    found = panels.pairs(arrays)
    assert set(found.maps) == {(1, 0), (2, 0), (2, 1)}
    for (up, across), each in found.maps.items():
        np.testing.assert_array_equal(each.matrix, panels.heatmap(arrays, measures=(across, up)).matrix)
    with pytest.raises(ValueError, match="2 to 8 measures, got 9"):
        panels.pairs(archive([1] * 9, [0], [1.0]))


def test_parallel_lines_end_with_the_best_and_lie_between_the_ends_of_the_grid() -> None:
    measures = np.array([[-1.0, 20.0], [10.0, -2.0], [4.5, 99.0]])  # the last one lies outside
    arrays = archive([2, 2], [1, 2, 3], [5.0, 9.0, 7.0], measures=measures)
    found = panels.parallel(arrays)
    np.testing.assert_allclose(found.heights, [[0, 1], [0.5, 1], [1, 0]])
    assert found.objective.tolist() == [5, 7, 9]
    assert found.ranges == ((-1, 10), (-2, 20))
    assert panels.parallel(arrays, count=2).objective.tolist() == [5, 9]


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
