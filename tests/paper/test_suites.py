"""Suites: the runs of the paper with the published numbers beside them."""

from __future__ import annotations

import pytest

from dqd.paper import suites


@pytest.mark.parametrize(
    ("name", "entries", "trials"),
    [
        ("table1", 24, 480),
        ("million", 9, 180),
        ("normalization", 6, 120),
        ("operators", 18, 360),
        ("resolution", 6, 120),
        ("annealing", 20, 400),
        ("high-dimensional", 21, 270),
    ],
)
def test_a_suite_has_the_runs_of_the_paper(name, entries, trials):
    suite = suites.suite(name)
    assert len(suite.entries) == entries
    assert sum(entry.trials for entry in suite.entries) == trials
    assert len({entry.id for entry in suite.entries}) == entries  # every entry has a folder of its own


@pytest.mark.parametrize(
    ("name", "entry", "qd_score", "coverage", "best"),
    [
        ("table1", "arm.cma-me", 55.98, 56.95, 99.10),
        ("table1", "lp-rastrigin.omg-mega", 55.90, 77.00, 97.55),
        ("million", "lp-sphere.map-elites-line", 34.74, 41.31, 98.83),
        ("normalization", "arm.omg-mega-unnormalized", 0.85, 7.02, 12.58),
        ("operators", "lp-sphere.og-map-elites", 1.36, 1.50, 100.0),  # a re-run: Table 1 prints 1.52
        ("operators", "arm.og-map-elites-line-independent.released-budget", 65.73, 65.96, 100.0),
        ("resolution", "lp-rastrigin.cma-me", 4.92, 7.26, 76.15),
    ],
)
def test_published_numbers_stand_beside_the_runs(name, entry, qd_score, coverage, best):
    published = {each.id: each.published for each in suites.suite(name).entries}[entry]
    assert (published["qd_score"], published["coverage"], published["best"]) == (qd_score, coverage, best)


def test_settings_are_those_behind_the_published_digits():
    described = {entry.id: entry.describe() for entry in suites.suite("table1").entries}
    assert described["arm.cma-me"]["settings"] == {
        "sigma": 0.1,
        "batch_size": 36,
        "rank_one": "dqd2021",
        "emitters": 1,
        "selection": "filter",
        "restart": "no_improvement",
        "ranking": "improvement",
        "strategy": "cma-es",
    }
    assert suites.suite("million").entries[0].iterations == 1_000_000
    assert {entry.resolution for entry in suites.suite("resolution").entries} == {500}
    budgets = {entry.variant: entry.overrides for entry in suites.suite("operators").entries}
    assert budgets["paper-budget"] == {"batch_size": 36, "stepped": 12}
    assert budgets["released-budget"] == {"batch_size": 48, "stepped": 12}


def test_the_suite_on_annealing_has_540_evaluations_everywhere():
    entries = {entry.id: entry for entry in suites.suite("annealing").entries}
    assert {entry.n for entry in entries.values()} == {100}
    for entry in entries.values():
        assert entry.describe()["settings"]["batch_size"] == 540
    printed = entries["lp-plateau.cma-mae"].published
    assert (printed["qd_score"], printed["coverage"], printed["iterations"]) == (79.27, 79.29, 10_000)
    assert "best" not in printed
    settings = entries["arm.cma-me"].describe()["settings"]
    assert (settings["sigma"], settings["emitters"]) == (0.1, 15)
    assert (settings["selection"], settings["restart"]) == ("mu", "basic")


def test_resizing_keeps_what_is_not_given():
    suite = suites.suite("million").resized(trials=3, iterations=None)
    assert {entry.trials for entry in suite.entries} == {3}
    assert {entry.iterations for entry in suite.entries} == {1_000_000}
    assert suite.title == suites.suite("million").title


def test_the_title_of_a_shorter_suite_does_not_promise_the_papers_iterations():
    suite = suites.suite("million").resized(trials=None, iterations=2000)
    assert suite.title.endswith("after 1,000,000 iterations (here: 2,000 iterations)")
    assert {entry.trials for entry in suite.entries} == {20}


def test_an_unknown_suite_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'table1'"):
        suites.suite("tabel1")


def test_the_suite_with_many_measures_makes_as_many_evaluations_with_every_algorithm():
    entries = suites.suite("high-dimensional").entries
    for entry in entries[:15]:
        evaluations = entry.iterations * entry.describe()["settings"]["batch_size"]
        wanted = 2e6 if entry.variant == "moves" else 1e6
        assert evaluations == pytest.approx(wanted, rel=1e-3)
        assert (entry.cells, entry.n) == (10_000, 1024)
    printed = {entry.id: (entry.published or {}).get("qd_score") for entry in entries[15:]}
    assert (printed["lp-sphere-k10.dms"], printed["lp-sphere-k20.dms"]) == (64.10, 74.06)
    assert sum(value is None for value in printed.values()) == 4


def test_only_what_has_a_minimum_stores_its_results_beside():
    beside = {entry.algorithm for entry in suites.suite("annealing").entries if entry.results}
    assert beside == {"cma-mae"}
