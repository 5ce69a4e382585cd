"""Suites that several files read."""

from pathlib import Path

import pytest
from paper.report.made_up import TRIALS, entry, write_scores, write_whole_suite

from dqd.paper.report import tables
from dqd.paper.report.collect import read_suite


@pytest.fixture(scope="session")
def table1(tmp_path_factory) -> Path:
    gone = [("arm.cma-me", 0), *(("lp-sphere.omg-mega", trial) for trial in range(TRIALS))]
    return write_whole_suite(tmp_path_factory.mktemp("suites") / "table1", "table1", gone)


@pytest.fixture
def folder(tmp_path) -> Path:
    """MAP-Elites agrees on both domains; CMA-MEGA† is far off on the arm and was not run on LP."""
    described = [
        entry("lp-sphere", "map-elites", "MAP-Elites"),
        entry("arm", "map-elites", "MAP-Elites"),
        entry("arm", "cma-mega", "CMA-MEGA†", variant="released_budget", note="Known: see D4."),
    ]
    scores = {
        "lp-sphere.map-elites": [9.8, 10.0, 10.2, 10.4],
        "arm.map-elites": [9.9, 10.0, 10.1, 10.0],
        "arm.cma-mega.released_budget": [12.0, 12.1, 12.2, 12.1],
    }
    return write_scores(tmp_path / "suite", scores, described)


@pytest.fixture
def table(folder) -> tables.Table:
    return tables.comparison_table(read_suite(folder))
