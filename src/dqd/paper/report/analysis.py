"""All statistical tests of a suite: the paper's section "Analysis", on our trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dqd.paper.report import anova, stats
from dqd.paper.report.claims import Checked, check_claims
from dqd.paper.report.collect import SuiteData
from dqd.paper.report.tables import published_estimate


@dataclass(frozen=True)
class Statistics:
    """All tests of a suite. Rows are keys of `SuiteData.rows`."""

    two_way: anova.TwoWay
    printed_interaction: anova.Effect | None  # from the published means and standard errors
    simple_effects: dict[str, anova.Effect]  # by domain
    pairs: dict[str, list[anova.Pair]]  # by domain
    claims: list[Checked]
    intervals: dict[str, tuple[float, float]]  # by entry: 95 % bootstrap interval of the mean QD-score
    areas: dict[str, stats.Estimate]  # by entry: area under the QD-score curve
    area_intervals: dict[str, tuple[float, float]]


def analyse(suite: SuiteData) -> Statistics:
    """All statistics of a suite."""
    samples = {domain: _groups(suite, domain) for domain in suite.domains}
    two_way = anova.two_way(samples)
    pooled = None if two_way.note else (two_way.mse, two_way.df_error)
    pairs = {domain: anova.pairwise(groups, pooled) for domain, groups in samples.items()}
    areas = {entry.id: stats.area(entry.steps, entry.curves["qd_score"]) for entry in suite.entries}
    return Statistics(
        two_way=two_way,
        printed_interaction=_printed_interaction(suite),
        simple_effects={domain: anova.simple_effect(groups, pooled) for domain, groups in samples.items()},
        pairs=pairs,
        claims=check_claims(pairs, {domain: _printed(suite, domain) for domain in suite.domains}),
        intervals={entry.id: stats.bootstrap(entry.final["qd_score"]) for entry in suite.entries},
        areas={name: stats.estimate(values) for name, values in areas.items()},
        area_intervals={name: stats.bootstrap(values) for name, values in areas.items()},
    )


def _groups(suite: SuiteData, domain: str) -> dict[str, np.ndarray]:
    return {entry.key: entry.final["qd_score"] for entry in suite.entries if entry.domain == domain}


def _printed(suite: SuiteData, domain: str) -> dict[str, stats.Estimate]:
    found = {entry.key: published_estimate(entry, "qd_score") for entry in suite.entries if entry.domain == domain}
    return {key: printed for key, printed in found.items() if printed is not None}


def _printed_interaction(suite: SuiteData) -> anova.Effect | None:
    """The published F again, from what the paper prints; None unless it prints every entry with its error."""
    printed = [_printed(suite, domain) for domain in suite.domains]
    whole = len(printed) > 1 and len(suite.rows) > 1 and all(set(one) == set(suite.rows) for one in printed)
    trials = {estimate.trials for one in printed for estimate in one.values()}
    if not whole or len(trials) != 1:
        return None
    means = np.array([[one[row].mean for one in printed] for row in suite.rows])
    errors = np.array([[one[row].se for one in printed] for row in suite.rows])
    return anova.interaction_from_summary(means, errors, trials.pop()) if np.isfinite(errors).all() else None
