"""Whether held-out judges agree: counted by hand on a few elites."""

import numpy as np
import pytest

import dqd
from dqd.saved.agreement import MOST, Agreement, Opinion
from dqd.saved.archive import SavedArchive

WORTH = Opinion("a rival", "digit-3", of=0, tolerance=2.0)
AGE = Opinion("net 2", "age", of=2, tolerance=5.0)


def archive(worth, age, offset=0.0):
    """Four of eight cells, objectives 10, 20, 30, 40 and ages 21, 22, 23, 24."""
    measures = np.array([[0.5, 21.0], [1.5, 22.0], [2.5, 23.0], [3.5, 24.0]])
    grid = dqd.Grid([0, 0], [4, 40], [4, 2])
    fields = {WORTH.field: np.array(worth, float), AGE.field: np.array(age, float)}
    rows = (grid.index_of(measures), np.array([10.0, 20.0, 30.0, 40.0]), measures, None, None, grid, offset)
    return SavedArchive(*rows, fields=fields)


def test_fields_have_names_that_say_what_they_are():
    assert WORTH.field == "digit_3_by_a_rival"
    assert AGE.field == "age_by_net_2"
    assert Opinion("weights/clip", '"a young face" / "an old face"', 1, 1.0).field.isidentifier()


def test_a_better_objective_is_no_disagreement_but_a_measure_may_be_off_on_either_side():
    found = archive(worth=[8.0, 17.9, 99.0, 40.0], age=[21.0, 22.0, 29.0, 19.0])
    assert Agreement(found, [WORTH]).trusted.tolist() == [True, False, True, True]
    assert Agreement(found, [AGE]).trusted.tolist() == [True, True, False, True]
    both = Agreement(found, [WORTH, AGE])
    assert both.trusted.tolist() == [True, False, False, True]
    np.testing.assert_allclose(both.disagreement, [1.0, 1.05, 1.2, 1.0])


def test_the_trusted_qd_score_is_the_sum_over_trusted_cells_divided_by_all_cells():
    found = archive(worth=[10, 0, 30, 0], age=[21, 22, 23, 24], offset=5.0)
    agreement = Agreement(found, [WORTH, AGE])
    assert agreement.qd_score == pytest.approx((5 + 25) / 8)
    assert (agreement.coverage, agreement.share) == (25.0, 50.0)
    whole = Agreement(archive([10, 20, 30, 40], [21, 22, 23, 24], 5.0), [WORTH, AGE])
    assert whole.qd_score == pytest.approx(found.qd_score)


def test_who_has_no_finite_opinion_does_not_agree():
    agreement = Agreement(archive([np.nan, -np.inf, 30, 40], [21, 22, 23, 24]), [WORTH])
    assert agreement.trusted.tolist() == [False, False, True, True]
    assert agreement.disagreement.tolist() == [MOST, MOST, 0, 0]
    (told,) = agreement.summary()["opinions"]
    assert (told["agreement"], told["mean_difference"], told["correlation"]) == (50.0, 0.0, pytest.approx(1.0))


def test_the_summary_says_how_both_judges_differ():
    told = Agreement(archive([10, 20, 30, 40], age=[24, 23, 22, 29]), [AGE]).summary()
    assert told["agreement"] == 100.0
    (one,) = told["opinions"]
    assert one["correlation"] == pytest.approx(np.corrcoef([21, 22, 23, 24], [24, 23, 22, 29])[0, 1])
    assert (one["mean_difference"], one["bias"]) == (2.5, 2.0)
    assert Agreement(archive([10, 20, 30, 40], [7] * 4), [AGE]).summary()["opinions"][0]["correlation"] is None


def test_an_empty_archive_has_nothing_to_trust():
    nothing = SavedArchive(
        *(np.zeros(0, np.int32), np.zeros(0), np.zeros((0, 2)), None, None, dqd.Grid([0, 0], [4, 40], [4, 2])),
        fields={WORTH.field: np.zeros(0)},
    )
    agreement = Agreement(nothing, [WORTH])
    assert (agreement.qd_score, agreement.share, agreement.coverage) == (0.0, 0.0, 0.0)
