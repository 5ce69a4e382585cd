"""Groups of runs and the numbers between them, against SciPy and against cases worked by hand."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dqd.explorer import compare
from dqd.explorer.compare import Trial


def trial(name, algorithm, value, domain="arm"):
    curve = {"iteration": [1, 100], **{metric: [0.0, value] for metric in compare.METRICS}}
    return Trial(name, domain, algorithm, dict.fromkeys(compare.METRICS, value), curve)


@pytest.mark.parametrize(("m", "n"), [(2, 2), (3, 5), (8, 20), (12, 15), (30, 9)])
@pytest.mark.parametrize("ties", [False, True])
def test_the_rank_test_equals_scipys(m, n, ties):
    random = np.random.default_rng(m * n)
    first, second = random.normal(size=m), random.normal(0.7, size=n)
    if ties:
        first, second = first.round(), second.round()
    expected = scipy_stats.mannwhitneyu(first, second, alternative="two-sided")
    assert compare.mann_whitney(first, second) == pytest.approx(expected.pvalue, rel=1e-9)


def test_equal_groups_have_p_1():
    assert compare.mann_whitney(np.ones(5), np.ones(4)) == 1.0


def test_estimates_by_hand():
    found = compare.estimate(np.array([8.0, 0.0, 2.0, 100.0]))
    assert (found.mean, found.median, found.iqm, found.trials) == (27.5, 5.0, 5.0, 4)
    assert found.low < found.mean < found.high


def test_the_middle_half_equals_a_trimmed_mean_and_takes_parts_of_values():
    values = np.random.default_rng(0).normal(size=12)
    assert compare.estimate(values).iqm == pytest.approx(scipy_stats.trim_mean(values, 0.25))
    assert compare.estimate(np.array([0.0, 1.0, 5.0])).iqm == pytest.approx(1.5)  # a quarter of the outer ones
    assert compare.estimate(np.array([3.0])).iqm == 3.0


def test_holm_by_hand():
    assert compare.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert compare.holm([0.9, 0.8]) == [1.0, 1.0]


def test_seeds_of_one_algorithm_are_one_group():
    groups = compare.group([trial("a", "x", 1), trial("b", "x", 2), trial("c", "y", 3)])
    assert {name: len(trials) for name, trials in groups.items()} == {"x": 2, "y": 1}
    groups = compare.group([trial("a", "x", 1), trial("b", "x", 2, domain="sphere")])
    assert list(groups) == ["x on arm", "x on sphere"]


def test_runs_of_one_group_alone_stand_for_themselves():
    assert list(compare.group([trial("a", "x", 1), trial("b", "x", 2)])) == ["a", "b"]


def test_tests_say_who_wins():
    groups = compare.group(
        [trial(f"{name}{i}", name, i + better) for name, better in (("x", 10), ("y", 0)) for i in range(4)]
    )
    found = [test for test in compare.tests(groups) if test.metric == "qd_score"]
    assert [(test.first, test.second, test.effect) for test in found] == [("x", "y", 1.0)]
    assert found[0].p == pytest.approx(2 / 70)


def test_curves_have_the_mean_and_an_interval_that_holds_it():
    groups = compare.group([trial("a", "x", 10), trial("b", "x", 30), trial("c", "y", 3)])
    curves = compare.curves(groups)["x"]
    assert curves["qd_score"]["mean"][-1] == 20
    assert curves["qd_score"]["low"][-1] <= 20 <= curves["qd_score"]["high"][-1]
