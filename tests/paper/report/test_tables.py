"""Ours beside the published numbers: comparisons by hand, and counts."""

import numpy as np
import pytest
from paper.report.made_up import PRINTED, entry, write_scores

from dqd.paper.report import sheets, tables
from dqd.paper.report.collect import read_suite


def test_comparison_by_hand(table):
    # 9.8 .. 10.4: mean 10.1, squares 0.2 over 3, divided by 4 trials: standard error 0.1291.
    entry = table.entries["map-elites", "lp-sphere"]
    found = entry.metrics["qd_score"]
    assert (found.ours.mean, found.ours.se) == (pytest.approx(10.1), pytest.approx(np.sqrt(0.2 / 3 / 4)))
    assert found.in_se == pytest.approx(0.1 / np.sqrt(0.1**2 + 0.2 / 12))
    assert entry.percent("qd_score", found.ours.mean) == pytest.approx(100 * 10.1 / 75.418367)


def test_tally_counts_and_names_what_is_outside(table):
    found = tables.tally(table)
    assert found.verdicts == {"within": 7, "outside": 2}
    assert (found.entries, found.entries_within) == (3, 2)
    assert [(compared.entry.id, metric) for compared, metric in found.outside] == [
        ("arm.cma-mega.released_budget", "qd_score"),
        ("arm.cma-mega.released_budget", "coverage"),
    ]


def test_tally_tells_errors_from_percent(tmp_path):
    described = [entry("arm", "map-elites", "MAP-Elites", published=PRINTED | {"qd_score_se": 0.001})]
    found = tables.tally(
        tables.comparison_table(read_suite(write_scores(tmp_path / "s", _one(10.05, 10.06), described)))
    )
    assert (found.verdicts["within"], found.within_errors) == (3, 2)


def _one(*scores: float) -> dict[str, list[float]]:
    return {"arm.map-elites": list(scores)}


def test_a_shorter_run_is_not_compared(tmp_path):
    described = [entry("arm", "map-elites", "MAP-Elites", iterations=1000)]
    table = tables.comparison_table(read_suite(write_scores(tmp_path / "s", _one(3.0, 4.0), described)))
    assert tables.tally(table).verdicts == {"other budget": 3}
    assert tables.tally(table).entries == 0
    assert sheets.sheets(table)[0].rows == (("MAP-Elites", ("3.50 ± 0.50", "10.00 ± 0.10", "-")),)


def test_published_iterations_decide_where_they_are_given(tmp_path):
    described = [entry("arm", "map-elites", "MAP-Elites", published=PRINTED | {"iterations": 1_000_000})]
    table = tables.comparison_table(read_suite(write_scores(tmp_path / "s", _one(10.0, 10.1), described)))
    assert tables.tally(table).verdicts == {"other budget": 3}


def test_unpublished_and_missing_entries(tmp_path):
    described = [entry("arm", "map-elites", "MAP-Elites", published=None), entry("arm", "random", "Random")]
    table = tables.comparison_table(read_suite(write_scores(tmp_path / "s", _one(3.0, 4.0), described)))
    assert tables.tally(table).verdicts == {"unpublished": 3, "missing": 3}
    assert sheets.sheets(table)[0].rows == (
        ("MAP-Elites", ("3.50 ± 0.50", "-", "")),
        ("Random", ("-", "10.00 ± 0.10", "-")),
    )


def test_an_error_that_was_not_printed_is_not_shown_and_ours_decides(tmp_path):
    printed = {"trials": 20, "qd_score": 10.0}
    described = [entry("arm", "map-elites", "MAP-Elites", published=printed)]
    table = tables.comparison_table(read_suite(write_scores(tmp_path / "s", _one(10.1, 10.5), described)))
    assert tables.tally(table).verdicts == {"within": 1, "unpublished": 2}
    assert sheets.sheets(table)[0].rows == (("MAP-Elites", ("10.30 ± 0.20", "10.00", "+1.5 ✓")),)
