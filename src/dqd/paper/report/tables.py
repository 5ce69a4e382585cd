"""Ours beside the published numbers, entry by entry, as data; `sheets` makes text of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dqd.paper.report.ceilings import Ceiling, ceiling
from dqd.paper.report.collect import CellData, SuiteData
from dqd.paper.report.stats import FIGURES, Comparison, Estimate, compare, estimate

PUBLISHED_ITERATIONS = 10_000  # of a published number that does not say
DOMAIN_TITLES = {
    "lp-sphere": "LP (sphere)",
    "lp-rastrigin": "LP (Rastrigin)",
    "arm": "Arm repertoire",
    "lsi-elon": "LSI (Elon Musk)",
    "lsi-beyonce": "LSI (Beyoncé)",
    "lsi-lopez": "LSI (Jennifer Lopez)",
}


@dataclass(frozen=True)
class Entry:
    """One cell of the table: three figures compared, and the best anybody could reach."""

    cell: CellData
    figures: Mapping[str, Comparison]
    ceiling: Ceiling | None

    def percent(self, figure: str, value: float) -> float:
        """A value in percent of the known optimum; NaN where none is known."""
        return 100 * value / getattr(self.ceiling, figure) if self.ceiling else math.nan


@dataclass(frozen=True)
class Table:
    """All cells of a suite."""

    suite: str
    rows: Mapping[str, str]  # key -> name
    domains: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]  # (row, domain)


@dataclass(frozen=True)
class Tally:
    """How many comparisons ended how. A comparison is one figure of one cell."""

    verdicts: Mapping[str, int]
    within_errors: int  # of those within, at most 3 joint standard errors away
    cells: int  # with a published number and the same budget
    cells_within: int  # in all three figures
    outside: tuple[tuple[Entry, str], ...]  # cell and figure


def comparison_table(suite: SuiteData) -> Table:
    """Every cell of a suite against what was published."""
    entries = {(cell.key, cell.domain): _entry(cell) for cell in suite.cells}
    return Table(suite.name, suite.rows, suite.domains, entries)


def published_estimate(cell: CellData, figure: str) -> Estimate | None:
    """The printed mean and standard error; None where the paper prints none."""
    printed = cell.published or {}
    if printed.get(figure) is None:
        return None
    return Estimate(float(printed[figure]), float(printed.get(f"{figure}_se") or 0.0), int(printed.get("trials") or 0))


def tally(table: Table) -> Tally:
    """Count the verdicts."""
    entries = table.entries.values()
    pairs = [(entry, figure) for entry in entries for figure in FIGURES]
    comparisons = [entry.figures[figure] for entry, figure in pairs]
    cells = [{c.verdict for c in entry.figures.values()} - {"unpublished"} for entry in entries]
    return Tally(
        verdicts=Counter(c.verdict for c in comparisons),
        within_errors=sum(c.verdict == "within" and abs(c.in_se) <= 3 + 1e-9 for c in comparisons),
        cells=sum(bool(verdicts) and verdicts <= {"within", "outside", "undecided"} for verdicts in cells),
        cells_within=sum(verdicts == {"within"} for verdicts in cells),
        outside=tuple((entry, f) for entry, f in pairs if entry.figures[f].verdict == "outside"),
    )


def _entry(cell: CellData) -> Entry:
    figures = {
        figure: compare(estimate(cell.final[figure]), published_estimate(cell, figure), same_budget(cell))
        for figure in FIGURES
    }
    return Entry(cell, figures, ceiling(cell.domain, cell.resolution, cell.n))


def same_budget(cell: CellData) -> bool:
    """Whether the published run had as many iterations; where it does not say, whether ours is no shorter than most."""
    printed = (cell.published or {}).get("iterations")
    return cell.iterations == int(printed) if printed else cell.iterations >= PUBLISHED_ITERATIONS


def domain_title(domain: str) -> str:
    """A domain as the paper names it."""
    return DOMAIN_TITLES.get(domain, domain)
