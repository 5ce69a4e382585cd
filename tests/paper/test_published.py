"""The paper's printed numbers."""

import csv as csv_format
from importlib import resources


def test_published_numbers_are_all_there():
    lines = resources.files("dqd.paper").joinpath("published.csv").read_text().splitlines()
    rows = list(csv_format.DictReader(lines))
    assert len(rows) == 109 + 16 + 2
    detailed = [row for row in rows if row["table"] == "tab:results_detailed" and row["variant"] == "base"]
    assert len(detailed) == 8 * 3 + 5
    (best,) = [row for row in detailed if (row["domain"], row["algorithm"]) == ("arm", "CMA-MEGA")]
    assert (best["qd_score"], best["qd_score_se"], best["iterations"]) == ("74.18", "0.15", "10000")
