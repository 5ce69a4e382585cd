"""The report of a suite in words, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from dqd.paper.published import INTERACTION
from dqd.paper.report import anova, stats
from dqd.paper.report.analysis import Statistics
from dqd.paper.report.claims import Checked
from dqd.paper.report.collect import EntryData, SuiteData
from dqd.paper.report.sheets import METRIC_TITLES, Sheet, markdown, markdown_table, plus_minus
from dqd.paper.report.tables import Compared, Table, Tally, domain_title, tally


def report(
    suite: SuiteData, table: Table, sheets: Sequence[Sheet], found: Statistics | str, pictures: list[Path]
) -> str:
    """The text of report.md: the answer first, then what was run, tables, tests, figures."""
    counts = tally(table)
    parts = [f"# {suite.title}", _summary(counts), "## What was run", _what(suite), _settings(suite)]
    parts += ["## Ours beside the published numbers", _WORDS, *_tables(sheets)]
    parts += ["## Outside", _outside(counts)]
    parts += ["## Statistics", found if isinstance(found, str) else _statistics(suite, found)]
    if pictures:
        parts += ["## Figures", *(f"![{path.stem.replace('-', ' ')}]({path.as_posix()})" for path in pictures)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


_WORDS = (
    "QD-score: sum of the objectives of all elites divided by the number of cells, so it rewards both many elites and "
    "good ones. Coverage: share of cells that hold an elite. Best: highest objective ever evaluated; 100 is perfect."
)


def _tables(sheets: Sequence[Sheet]) -> list[str]:
    """Each table; a legend they share is said once."""
    parts: list[str] = []
    for sheet in sheets:
        if sheet.groups:
            parts += [f"### {sheet.title}", markdown(sheet)]
            parts += [sheet.legend] if sheet.legend not in parts else []
    return parts


def _summary(tally: Tally) -> str:
    """The answer first."""
    within, undecided = tally.verdicts.get("within", 0), tally.verdicts.get("undecided", 0)
    judged = within + undecided + len(tally.outside)
    if not judged:
        return (
            "**Nothing here is comparable with the paper's numbers**: this run has another budget, or no trials yet, "
            "or the paper prints no such numbers. The tables show what there is for orientation."
        )
    return (
        f"**{within} of {judged} metrics agree with the paper**: {tally.within_errors} are within 3 joint standard "
        f"errors, {within - tally.within_errors} more within 1 % of the published value. {len(tally.outside)} are "
        f"outside{f', {undecided} undecided for want of a second trial' if undecided else ''}. "
        f"{tally.entries_within} of {tally.entries} entries agree in QD-score, coverage and best alike."
    )


def _what(suite: SuiteData) -> str:
    done, asked = sum(len(entry.trials) for entry in suite.entries), sum(entry.expected for entry in suite.entries)
    lines = [
        f"- {len(suite.entries)} entries: {len(suite.rows)} {_plural('algorithm', len(suite.rows))}, "
        f"{len(suite.domains)} {_plural('domain', len(suite.domains))}",
        f"- {done:,} trials of {asked:,} asked for: {_values(len(entry.trials) for entry in suite.entries)} per entry",
        f"- {_values(entry.iterations for entry in suite.entries)} iterations per trial",
        f"- solutions of {_values(entry.n for entry in suite.entries)} numbers, "
        f"{' and '.join(dict.fromkeys(_cells(entry) for entry in suite.entries))}, "
        f"{' and '.join(dict.fromkeys(entry.precision for entry in suite.entries))}",
        f"- on {suite.device}, {suite.seconds:,.0f} s"
        + (f", {suite.execution_seconds:,.0f} s of them execution" if suite.execution_seconds else ""),
    ]
    return "\n".join([*lines, *_repeated_seeds(suite.entries), *(f"- **{problem}**" for problem in suite.problems)])


def _cells(entry: EntryData) -> str:
    return f"{entry.cells:,} cells around centroids" if entry.cells else f"{entry.resolution:,} cells per measure"


def _repeated_seeds(entries: Iterable[EntryData]) -> list[str]:
    repeated = [entry.id for entry in entries if len(set(entry.seeds)) < len(entry.seeds)]
    return [f"- **Seeds occur twice, so trials are not independent: {', '.join(repeated)}**"] if repeated else []


def _settings(suite: SuiteData) -> str:
    """The settings of every entry, folded away."""
    rows = [
        (*_names(entry), ", ".join(f"{name} {value}" for name, value in entry.settings.items() if value is not None))
        for entry in suite.entries
        if entry.settings
    ]
    table = markdown_table(["Algorithm", "Domain", "Settings"], rows, words=3)
    return f"<details><summary>Settings of every entry</summary>\n\n{table}\n\n</details>" if rows else ""


def _names(entry: EntryData) -> tuple[str, str]:
    return entry.name, domain_title(entry.domain)


def _outside(tally: Tally) -> str:
    if not tally.outside:
        return "No metric that could be compared is outside." if tally.entries else "No metric could be compared."
    return "\n".join(_outside_line(compared, metric) for compared, metric in tally.outside)


def _outside_line(compared: Compared, metric: str) -> str:
    comparison, entry = compared.metrics[metric], compared.entry
    return (
        f"- {entry.name}, {domain_title(entry.domain)}, {METRIC_TITLES[metric]}: "
        f"{plus_minus(comparison.ours)}, published {plus_minus(comparison.published)} "
        f"({comparison.in_se:+.1f} joint standard errors)" + (f". {entry.note}" if entry.note else "")
    )


def _statistics(suite: SuiteData, found: Statistics) -> str:
    parts = [_analysis(suite, found), _simple(found)]
    if found.claims:
        parts += ["### The paper's sentences", _claims(suite, found.claims)]
    parts += ["### Intervals and areas", _intervals(suite, found)]
    return "\n\n".join(parts) + "\n\nAll pairs with p-values and effect sizes are in `statistics.json`."


def _analysis(suite: SuiteData, found: Statistics) -> str:
    published = INTERACTION.get(suite.name)
    said = f" The paper: {published}." if published else ""
    if found.printed_interaction and published:
        said += f" Its own printed means and standard errors give {effect(found.printed_interaction)}."
    if found.two_way.note:
        return f"No two-way analysis of variance: {found.two_way.note}.{said}"
    return (
        "Two-way analysis of variance of the final QD-score, algorithm x domain. "
        f"Interaction: {effect(found.two_way.interaction)}.{said} Algorithm: {effect(found.two_way.algorithm)}; "
        f"domain: {effect(found.two_way.domain)}. F divides by the spread of trials, which the unequal entries tell to "
        f"about {100 * found.two_way.mse_error:.0f} % (one standard error), so repetitions of the whole experiment "
        "differ in F by as much."
    )


def _simple(found: Statistics) -> str:
    lines = [f"- {domain_title(domain)}: {effect(one)}" for domain, one in found.simple_effects.items()]
    return "\n".join(["Effect of the algorithm within each domain (simple main effects):", "", *lines])


def _claims(suite: SuiteData, claims: Sequence[Checked]) -> str:
    columns = ("Sentence", "Domain", "Our trials", "Closest pair", "p", "p (Welch)", "p (printed numbers)")
    rows = (
        (
            *(claim.sentence, domain_title(claim.domain), f"**{claim.verdict}**"),
            f"{suite.rows[claim.weakest[0]]} - {suite.rows[claim.weakest[1]]}: {claim.difference:+.2f}",
            *map(p_value, (claim.p, claim.p_welch, claim.p_printed)),
        )
        for claim in claims
    )
    return markdown_table(columns, rows, words=7) + (
        "\n\nEvery p-value carries Bonferroni's correction for all pairs of its domain. "
        "p: t-test with the error of the analysis of variance; Welch: the two algorithms alone, unequal variances; "
        "printed numbers: Welch's test of the paper's own means and standard errors. A sentence holds when its closest "
        f"pair is significant at 0.05 in both tests of our trials.{_few(suite)}"
    )


def _few(suite: SuiteData) -> str:
    fewest = min(len(entry.trials) for entry in suite.entries)
    return f" With {fewest} trials in an entry hardly anything can be significant." if fewest < 5 else ""


_INTERVALS = (
    "Intervals: bootstrap of the mean over trials, too narrow for fewer than about ten. "
    "Area: area under the curve of the QD-score divided by its length, so the mean QD-score during the run."
)


def _intervals(suite: SuiteData, found: Statistics) -> str:
    columns = ("Algorithm", "Domain", "QD-score", "95 % interval", "Area", "95 % interval")
    rows = (
        (
            *_names(entry),
            *(plus_minus(stats.estimate(entry.final["qd_score"])), _interval(found.intervals[entry.id])),
            *(plus_minus(found.areas[entry.id]), _interval(found.area_intervals[entry.id])),
        )
        for entry in suite.entries
    )
    return markdown_table(columns, rows, words=2) + "\n\n" + _INTERVALS


def effect(one: anova.Effect) -> str:
    """An analysis of variance as papers print it."""
    if not math.isfinite(one.f):
        return f"not testable, {one.note}"
    return f"F({one.df}, {one.df_error}) = {one.f:.2f}, p {p_value(one.p, sign=True)}"


def p_value(p: float, sign: bool = False) -> str:
    """Three digits, as papers print them."""
    if not math.isfinite(p):
        return "n/a"
    return "< 0.001" if p < 0.001 else f"{'= ' if sign else ''}{p:.3f}"


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f} to {ends[1]:.2f}" if math.isfinite(ends[0]) else "n/a"


def _values(numbers: Iterable[int]) -> str:
    """Different values, in order."""
    return " or ".join(f"{number:,}" for number in sorted(set(numbers)))


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
