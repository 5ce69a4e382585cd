"""Ours beside the published numbers, entry by entry, as data; `sheets` makes text of it.

A suite's table has the entries of one of the paper's: `tab:results_detailed`, `tab:unnorm_comparison`,
`tab:ogmeline_independent` or `tab:cmame_extra`; or of the paper on annealing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dqd.paper.published import ITERATIONS, PRINTED
from dqd.paper.report.ceilings import Ceiling, ceiling
from dqd.paper.report.collect import EntryData, SuiteData
from dqd.paper.report.stats import Comparison, Estimate, compare, estimate

DOMAIN_TITLES = {
    "lp-sphere": "LP (sphere)",
    "lp-rastrigin": "LP (Rastrigin)",
    "lp-plateau": "LP (plateau)",
    "arm": "Arm repertoire",
    "lsi-elon": "LSI (Elon Musk)",
    "lsi-beyonce": "LSI (Beyoncé)",
    "lsi-lopez": "LSI (Jennifer Lopez)",
}


@dataclass(frozen=True)
class Compared:
    """An entry of the table: three metrics beside what was published, and the best anybody could reach."""

    entry: EntryData
    metrics: Mapping[str, Comparison]
    ceiling: Ceiling | None

    def percent(self, metric: str, value: float) -> float:
        """A value in percent of the known optimum; NaN where none is known."""
        return 100 * value / getattr(self.ceiling, metric) if self.ceiling else math.nan


@dataclass(frozen=True)
class Table:
    """All entries of a suite."""

    suite: str
    rows: Mapping[str, str]  # key -> name
    domains: tuple[str, ...]
    entries: Mapping[tuple[str, str], Compared]  # (row, domain)


@dataclass(frozen=True)
class Tally:
    """How many comparisons ended how. A comparison is one metric of one entry."""

    verdicts: Mapping[str, int]
    within_errors: int  # of those within, at most 3 joint standard errors away
    entries: int  # with a published number and the same budget
    entries_within: int  # in all three metrics
    outside: tuple[tuple[Compared, str], ...]  # entry and metric


def comparison_table(suite: SuiteData) -> Table:
    """Every entry of a suite against what was published."""
    entries = {(entry.key, entry.domain): _compared(entry) for entry in suite.entries}
    return Table(suite.name, suite.rows, suite.domains, entries)


def published_estimate(entry: EntryData, metric: str) -> Estimate | None:
    """The printed mean and standard error; None where the paper prints none, NaN for an error that it leaves out."""
    printed = entry.published or {}
    if printed.get(metric) is None:
        return None
    error = float(printed.get(f"{metric}_se", math.nan))
    return Estimate(float(printed[metric]), error, int(printed.get("trials") or 0))


def tally(table: Table) -> Tally:
    """Count the verdicts."""
    pairs = [(compared, metric) for compared in table.entries.values() for metric in PRINTED]
    comparisons = [compared.metrics[metric] for compared, metric in pairs]
    every = [{c.verdict for c in one.metrics.values()} - {"unpublished"} for one in table.entries.values()]
    return Tally(
        verdicts=Counter(c.verdict for c in comparisons),
        within_errors=sum(c.verdict == "within" and abs(c.in_se) <= 3 + 1e-9 for c in comparisons),
        entries=sum(bool(verdicts) and verdicts <= {"within", "outside", "undecided"} for verdicts in every),
        entries_within=sum(verdicts == {"within"} for verdicts in every),
        outside=tuple((compared, f) for compared, f in pairs if compared.metrics[f].verdict == "outside"),
    )


def _compared(entry: EntryData) -> Compared:
    metrics = {
        metric: compare(estimate(entry.final[metric]), published_estimate(entry, metric), same_budget(entry))
        for metric in PRINTED
    }
    return Compared(entry, metrics, ceiling(entry.domain, entry.resolution, entry.n))


def same_budget(entry: EntryData) -> bool:
    """Whether the published run had as many iterations; where it does not say, whether ours is no shorter than most."""
    printed = (entry.published or {}).get("iterations")
    return entry.iterations == int(printed) if printed else entry.iterations >= ITERATIONS


def domain_title(domain: str) -> str:
    """A domain as the paper names it."""
    return DOMAIN_TITLES.get(domain, domain)
