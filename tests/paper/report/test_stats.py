"""The statistics against numbers worked out by hand, direct sums of squares, and scipy's own tests."""

import math

import numpy as np
import pytest

from dqd.paper.report import anova, claims, stats
from dqd.paper.report.stats import Estimate, compare, estimate

scipy_stats = pytest.importorskip("scipy.stats")
pytest.importorskip("statsmodels")


# One figure against the printed one -----------------------------------------------------------------------------------


def test_estimate_by_hand():
    # Mean 4, squares 9 + 1 + 16 = 26 over 2, divided by 3 trials.
    assert estimate(np.array([1.0, 3.0, 8.0])) == Estimate(4.0, pytest.approx(math.sqrt(13 / 3)), 3)


def test_estimate_of_few_or_equal_trials():
    assert estimate(np.full(7, 75.29)) == Estimate(75.29, 0.0, 7)
    one, none = estimate(np.array([2.0])), estimate(np.zeros(0))
    assert (one.mean, math.isnan(one.se), one.trials) == (2.0, True, 1)
    assert math.isnan(none.mean)
    assert none.trials == 0


def test_difference_in_joint_standard_errors_by_hand():
    found = compare(Estimate(11.0, 0.3, 20), Estimate(10.0, 0.4, 20))
    assert found.joint_se == pytest.approx(0.5)
    assert found.in_se == pytest.approx(2.0)
    assert compare(Estimate(9.0, 0.3, 20), Estimate(10.0, 0.4, 20)).in_se == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("ours", "se", "published", "published_se", "verdict"),
    [
        (1.3, 0.06, 1.0, 0.08, "within"),  # exactly 3 joint standard errors of 0.1
        (1.31, 0.06, 1.0, 0.08, "outside"),
        (0.7, 0.06, 1.0, 0.08, "within"),
        (0.69, 0.06, 1.0, 0.08, "outside"),
        (50.5, 0.001, 50.0, 0.001, "within"),  # exactly 1 %, though hundreds of standard errors
        (50.51, 0.001, 50.0, 0.001, "outside"),
        (49.49, 0.001, 50.0, 0.001, "outside"),
        (0.115, 0.0, 0.10, 0.0, "within"),  # no errors at all: 3 times the rounding
        (0.116, 0.0, 0.10, 0.0, "outside"),
        (0.84, 0.001, 0.83, 0.0, "within"),  # a printed 0.00 may be 0.004
        (0.0, 0.0, 0.0, 0.0, "within"),
        (0.02, 0.0, 0.0, 0.0, "outside"),
    ],
)
def test_verdict_at_the_edges(ours, se, published, published_se, verdict):
    assert compare(Estimate(ours, se, 20), Estimate(published, published_se, 20)).verdict == verdict


def test_verdicts_that_are_none():
    one, printed = Estimate(10.0, math.nan, 1), Estimate(20.0, 0.1, 20)
    assert compare(one, printed).verdict == "undecided"
    assert compare(Estimate(20.1, math.nan, 1), printed).verdict == "within"
    assert compare(one, None).verdict == "unpublished"
    assert compare(Estimate(20.0, 0.1, 5), printed, same_budget=False).verdict == "other budget"
    assert compare(estimate(np.zeros(0)), printed).verdict == "missing"


# Analysis of variance -------------------------------------------------------------------------------------------------


@pytest.fixture
def samples() -> dict[str, dict[str, np.ndarray]]:
    """Three domains, four algorithms, six trials, with an interaction."""
    rng = np.random.default_rng(3)
    return {
        domain: {row: rng.normal(10 * i * (j + 1) - 7 * j, 1 + i, 6) for i, row in enumerate("abcd")}
        for j, domain in enumerate("xyz")
    }


def test_two_way_equals_direct_sums_of_squares(samples):
    y = np.array([[samples[domain][row] for domain in "xyz"] for row in "abcd"])  # (4, 3, 6)
    cell, row, column, grand = y.mean(axis=2), y.mean(axis=(1, 2)), y.mean(axis=(0, 2)), y.mean()
    mse = np.sum((y - cell[:, :, None]) ** 2) / (4 * 3 * 5)
    between = {
        "algorithm": (6 * 3 * np.sum((row - grand) ** 2), 3),
        "domain": (6 * 4 * np.sum((column - grand) ** 2), 2),
        "interaction": (6 * np.sum((cell - row[:, None] - column[None, :] + grand) ** 2), 6),
    }
    found = anova.two_way(samples)
    assert (found.mse, found.df_error, found.note) == (pytest.approx(mse), 60, "")
    for name, (squares, df) in between.items():
        effect = getattr(found, name)
        assert (effect.df, effect.df_error) == (df, 60)
        assert effect.f == pytest.approx(squares / df / mse)
        assert effect.p == pytest.approx(scipy_stats.f.sf(squares / df / mse, df, 60))


def test_degrees_of_freedom_are_the_papers():
    rng = np.random.default_rng(0)
    groups = {domain: {f"{row}": rng.normal(row, 1, 20) for row in range(8)} for domain in "xyz"}
    found = anova.two_way(groups)
    assert (found.interaction.df, found.interaction.df_error) == (14, 456)


def test_two_way_leaves_out_what_one_domain_lacks(samples):
    del samples["y"]["c"]
    samples["z"]["d"] = np.zeros(0)
    found = anova.two_way(samples)
    assert found.rows == ("a", "b")
    assert (found.interaction.df, found.df_error) == (2, 30)


def test_two_way_with_missing_trials_uses_the_rest(samples):
    samples["x"]["a"] = samples["x"]["a"][:4]
    assert anova.two_way(samples).df_error == 58


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ({"x": {"a": np.ones(3), "b": np.ones(3)}}, "2 domains"),
        ({"x": {"a": np.ones(3)}, "y": {"a": np.ones(3)}}, "2 algorithms"),
        ({}, "2 domains"),
        ({d: {"a": np.ones(1), "b": np.zeros(1)} for d in "xy"}, "one trial"),
        ({d: {"a": np.full(3, 0.1), "b": np.full(3, 0.7)} for d in "xy"}, "equal"),
    ],
)
def test_two_way_says_why_it_cannot(groups, word):
    found = anova.two_way(groups)
    assert word in found.note
    assert math.isnan(found.interaction.f)


def test_interaction_from_summary_equals_that_of_the_trials(samples):
    means = np.array([[samples[domain][row].mean() for domain in "xyz"] for row in "abcd"])
    errors = np.array([[estimate(samples[domain][row]).se for domain in "xyz"] for row in "abcd"])
    printed, full = anova.interaction_from_summary(means, errors, 6), anova.two_way(samples).interaction
    assert (printed.f, printed.df, printed.df_error) == (pytest.approx(full.f), full.df, full.df_error)


def test_error_of_the_pooled_variance_of_equal_cells():
    # Cells of equal variance: sqrt(2 / degrees of freedom).
    groups = [np.array([-1.0, 0.0, 1.0])] * 8
    assert anova._mse_error(groups) == pytest.approx(math.sqrt(2 / 16))


def test_simple_effect_without_pooling_is_scipys_one_way_analysis(samples):
    groups = samples["y"]
    groups["a"] = groups["a"][:3]
    found, reference = anova.simple_effect(groups), scipy_stats.f_oneway(*groups.values())
    assert (found.f, found.p) == (pytest.approx(reference.statistic), pytest.approx(reference.pvalue))
    assert (found.df, found.df_error) == (3, 17)


def test_simple_effect_with_the_pooled_error_by_hand():
    groups = {"a": np.array([0.0, 2.0]), "b": np.array([4.0, 6.0])}  # means 1 and 5, between 2 * 4 + 2 * 4 = 16
    found = anova.simple_effect(groups, (8.0, 30))
    assert (found.f, found.df, found.df_error) == (2.0, 1, 30)


def test_simple_effect_says_why_it_cannot():
    assert "fewer" in anova.simple_effect({"a": np.ones(3)}).note
    assert "no spread" in anova.simple_effect({"a": np.full(3, 0.1), "b": np.full(3, 0.2)}).note
    assert "no spread" in anova.simple_effect({"a": np.ones(1), "b": np.zeros(1)}).note


# Pairs ----------------------------------------------------------------------------------------------------------------


def test_pairs_of_two_are_students_and_welchs_tests():
    a, b = np.array([1.0, 2.0, 4.0, 7.0]), np.array([3.0, 3.5, 4.5])
    (pair,) = anova.pairwise({"a": a, "b": b})
    assert pair.difference == pytest.approx(3.5 - 11 / 3)
    assert pair.p == pytest.approx(scipy_stats.ttest_ind(a, b).pvalue)
    assert pair.p_welch == pytest.approx(scipy_stats.ttest_ind(a, b, equal_var=False).pvalue)


def test_bonferroni_multiplies_by_the_number_of_pairs_and_stops_at_one(samples):
    groups = samples["x"]
    pairs = anova.pairwise(groups)
    assert len(pairs) == 6
    for pair in pairs:
        alone = scipy_stats.ttest_ind(groups[pair.first], groups[pair.second], equal_var=False).pvalue
        assert pair.p_welch == pytest.approx(min(1, 6 * alone))
    near = anova.pairwise({"a": np.array([0.0, 1.0]), "b": np.array([0.1, 1.0]), "c": np.array([0.0, 1.1])})
    assert all(pair.p == 1 for pair in near)


def test_pairs_with_the_pooled_error_by_hand():
    a, b = np.array([1.0, 3.0]), np.array([5.0, 7.0])  # t = -4 / sqrt(4 (1/2 + 1/2)) = -2
    (pair,) = anova.pairwise({"a": a, "b": b}, (4.0, 456))
    assert pair.p == pytest.approx(2 * scipy_stats.t.sf(2, 456))


def test_pairs_without_spread_or_with_one_trial_are_not_testable():
    (equal,) = anova.pairwise({"a": np.full(3, 0.1), "b": np.full(3, 0.3)})
    (single,) = anova.pairwise({"a": np.ones(1), "b": np.array([2.0, 2.5])})
    assert math.isnan(equal.p)
    assert math.isnan(equal.p_welch)
    assert (equal.cliffs_delta, math.isnan(equal.hedges_g)) == (-1, True)
    assert math.isnan(single.p_welch)
    assert single.p > 0
    assert anova.pairwise({"a": np.ones(2), "b": np.zeros(0)}) == []


def test_welch_with_spread_on_one_side_only():
    a, b = Estimate(1.0, 0.0, 20), Estimate(2.0, 0.5, 20)
    assert anova.welch_p(a, b) == pytest.approx(2 * scipy_stats.t.sf(2, 19))


def test_hedges_g_by_hand():
    a, b = np.array([1.0, 3.0]), np.array([4.0, 4.0])  # pooled variance (2 + 0) / 2 = 1, correction 1 - 3/7
    assert anova.hedges_g(a, b) == pytest.approx(-2 * (4 / 7))
    assert math.isnan(anova.hedges_g(np.ones(1), np.ones(1)))


def test_cliffs_delta_by_hand():
    assert anova.cliffs_delta(np.array([1.0, 2.0, 5.0]), np.array([2.0, 4.0])) == pytest.approx((2 - 3) / 6)
    assert anova.cliffs_delta(np.array([3.0]), np.array([1.0, 2.0])) == 1


# Claims ---------------------------------------------------------------------------------------------------------------


def lp_groups(**means: float) -> dict[str, np.ndarray]:
    """Table 1's eight rows with a spread of 0.1."""
    rows = {"map-elites": 1, "map-elites-line": 12, "cma-me": 1, "og-map-elites": 1, "og-map-elites-line": 15}
    rows |= {"omg-mega": 71, "cma-mega": 75, "cma-mega-adam": 75}
    rows |= {name.replace("_", "-"): value for name, value in means.items()}
    spread = np.linspace(-0.15, 0.15, 20)
    return {row: value + spread for row, value in rows.items()}


def checked(groups: dict[str, np.ndarray], domain: str = "lp-sphere") -> dict[str, claims.Checked]:
    found = claims.check_claims({domain: anova.pairwise(groups)}, {})
    return {claim.sentence: claim for claim in found}


def test_claims_hold_on_the_papers_means():
    found = checked(lp_groups())
    assert [claim.verdict for claim in found.values()] == ["holds"] * 3
    first = found["CMA-MEGA performed significantly better than each of the baselines."]
    assert first.weakest == ("cma-mega", "og-map-elites-line")
    assert first.difference == pytest.approx(60)
    assert first.p < 1e-6
    assert math.isnan(first.p_printed)


def test_a_claim_is_judged_by_its_weakest_pair():
    sentence = "CMA-MEGA performed significantly better than each of the baselines."
    reversed_one = checked(lp_groups(cma_me=80))[sentence]
    assert (reversed_one.verdict, reversed_one.weakest) == ("contradicted", ("cma-mega", "cma-me"))
    assert checked(lp_groups(cma_me=74.999))[sentence].verdict == "same order, not significant"
    assert checked(lp_groups(cma_me=75.001))[sentence].verdict == "reversed, not significant"


def test_claims_need_all_their_algorithms():
    groups = lp_groups()
    del groups["omg-mega"]
    assert list(checked(groups)) == ["CMA-MEGA performed significantly better than each of the baselines."]
    assert checked(lp_groups(), "some-other-domain") == {}


def test_claims_on_one_trial_are_not_testable():
    groups = {row: values[:1] for row, values in lp_groups().items()}
    assert {claim.verdict for claim in checked(groups).values()} == {"not testable"}


def test_the_printed_numbers_do_not_separate_cma_mega_from_its_adam_variant_on_the_arm():
    groups = {"cma-mega": np.array([74.0, 75.0]), "cma-mega-adam": np.array([73.0, 74.5])}
    printed = {"arm": {"cma-mega": Estimate(74.18, 0.15, 20), "cma-mega-adam": Estimate(73.82, 0.20, 20)}}
    (claim,) = claims.check_claims({"arm": anova.pairwise(groups)}, printed)
    t = 0.36 / 0.25
    df = 0.25**4 / (0.15**4 / 19 + 0.20**4 / 19)
    assert claim.p_printed == pytest.approx(2 * scipy_stats.t.sf(t, df))
    assert claim.p_printed > 0.1


# Intervals and areas --------------------------------------------------------------------------------------------------


def test_bootstrap_is_repeatable_and_near_the_normal_interval():
    values = np.random.default_rng(1).normal(5, 2, 200)
    low, high = stats.bootstrap(values)
    assert (low, high) == stats.bootstrap(values)
    se = estimate(values).se
    assert low == pytest.approx(values.mean() - 1.96 * se, abs=0.1 * se)
    assert high == pytest.approx(values.mean() + 1.96 * se, abs=0.1 * se)


def test_bootstrap_of_few_or_equal_trials():
    assert stats.bootstrap(np.full(5, 3.0)) == (3.0, 3.0)
    assert all(math.isnan(end) for end in stats.bootstrap(np.ones(1)))


def test_area_by_hand_with_uneven_steps():
    steps = np.array([0, 10, 40])
    curves = np.array([[0.0, 10.0, 10.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(stats.area(steps, curves), [(50 + 300) / 40, 2])


def test_area_of_a_point_and_of_nothing():
    assert stats.area(np.array([7]), np.array([[3.0], [4.0]])).tolist() == [3, 4]
    assert np.isnan(stats.area(np.zeros(0), np.zeros((2, 0)))).tolist() == [True, True]


def test_a_missing_library_names_the_extra():
    with pytest.raises(ImportError, match=r"dqd\[report\]"):
        stats.library("no_such_statistics_library")
