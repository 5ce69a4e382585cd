"""The comparison tables as text: one sheet per metric, as Markdown, LaTeX and CSV.

As in the paper, algorithms are rows and domains are groups of columns.
"""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dqd.paper.published import PRINTED
from dqd.paper.report.stats import Comparison, Estimate
from dqd.paper.report.tables import Compared, Table, domain_title

METRIC_TITLES = {"qd_score": "QD-score", "coverage": "Coverage (%)", "best": "Best objective"}
MARKS = {"within": "✓", "outside": "✗", "undecided": "?", "other budget": "-", "missing": "-", "unpublished": ""}
LEGEND = (
    "Mean ± standard error over trials. Δ/SE: ours minus published, in joint standard errors. "
    "✓ within 3 of them or within 1 % of the published value, ✗ outside, ? one trial only, - not comparable."
)
Rows = tuple[tuple[str, tuple[str, ...]], ...]  # name of a row, its fields


@dataclass(frozen=True)
class Sheet:
    """A table of strings with groups of columns."""

    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]  # title of a group, its columns
    rows: Rows
    legend: str


def sheets(table: Table) -> list[Sheet]:
    """One sheet per metric, then the percent of the known optimum."""
    return [_metric_sheet(table, metric) for metric in PRINTED] + [_optimum_sheet(table)]


def _metric_sheet(table: Table, metric: str) -> Sheet:
    groups = tuple((domain_title(domain), ("ours", "published", "Δ/SE")) for domain in table.domains)

    def fields(compared: Compared | None) -> tuple[str, str, str]:
        return ("", "", "") if compared is None else _fields(compared.metrics[metric])

    return Sheet(METRIC_TITLES[metric], groups, _rows(table, table.domains, fields), LEGEND)


def _fields(comparison: Comparison) -> tuple[str, str, str]:
    mark, judged = MARKS[comparison.verdict], comparison.verdict in ("within", "outside")
    distance = f"{round(comparison.in_se, 1) + 0.0:+.1f} " if judged and math.isfinite(comparison.in_se) else ""
    return plus_minus(comparison.ours), plus_minus(comparison.published), distance + mark  # + 0.0: never "-0.0"


def _optimum_sheet(table: Table) -> Sheet:
    known = [domain for domain in table.domains if _optimum(table, domain)]
    groups = tuple((f"{domain_title(domain)}: {_optimum(table, domain)}", ("ours", "published")) for domain in known)
    legend = (
        "The number after a domain is a bound that the QD-score of no archive of this resolution exceeds, derived in "
        "`paper/report/ceilings.py`; for Rastrigin it needs unequal coordinates, and the number in brackets is the "
        "best with all coordinates of a half equal, where CMA-MEGA stays when it starts from zero."
    )
    return Sheet("QD-score in percent of the known optimum", groups, _rows(table, known, _percents), legend)


def _rows(table: Table, domains: Iterable[str], fields: Callable[[Compared | None], Iterable[str]]) -> Rows:
    return tuple(
        (name, tuple(field for domain in domains for field in fields(table.entries.get((key, domain)))))
        for key, name in table.rows.items()
    )


def _percents(compared: Compared | None) -> tuple[str, str]:
    if compared is None:
        return "", ""
    comparison = compared.metrics["qd_score"]
    published = comparison.published.mean if comparison.published else math.nan
    ours, theirs = (compared.percent("qd_score", value) for value in (comparison.ours.mean, published))
    return _number(ours), _number(theirs)


def _optimum(table: Table, domain: str) -> str:
    """The optimum of a domain in words, empty if unknown."""
    found = next((e.ceiling for (_, d), e in table.entries.items() if d == domain), None)
    if found is None:
        return ""
    inside = found.symmetric_qd_score
    return f"{found.qd_score:.2f}" + (f" ({inside:.2f})" if inside and inside < found.qd_score else "")


def plus_minus(value: Estimate | None) -> str:
    """Two decimals, as the paper prints."""
    if value is None or not math.isfinite(value.mean):
        return "-"
    if math.isfinite(value.se):
        return f"{value.mean:.2f} ± {value.se:.2f}"
    return f"{value.mean:.2f} (one trial)" if value.trials == 1 else f"{value.mean:.2f}"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"


# Formats --------------------------------------------------------------------------------------------------------------


def markdown(sheet: Sheet) -> str:
    """A table as GitHub shows it, without its legend; what is outside stands out."""
    columns = [f"{title}<br>{column}" for title, group in sheet.groups for column in group]
    return markdown_table(["Algorithm", *columns], ([name, *map(_bold_outside, fields)] for name, fields in sheet.rows))


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[str]], words: int = 1) -> str:
    """Any table; the first columns hold words, the others numbers."""
    head, *lines = ("| " + " | ".join(field.replace("|", "\\|") for field in row) + " |" for row in (columns, *rows))
    return "\n".join([head, "|" + "---|" * words + "---:|" * (len(columns) - words), *lines])


def _bold_outside(field: str) -> str:
    return f"**{field}**" if field.endswith(MARKS["outside"]) else field


def latex(all_sheets: Iterable[Sheet], title: str) -> str:
    """A document of its own."""
    head = (
        "\\documentclass[a4paper,landscape,10pt]{article}",
        "\\usepackage[T1]{fontenc}",
        "\\usepackage[utf8]{inputenc}",
        "\\usepackage[margin=12mm]{geometry}",
        "\\usepackage{booktabs}",
        "\\setlength{\\tabcolsep}{3pt}",
        "\\setlength{\\belowcaptionskip}{4pt}",
        "\\begin{document}",
        f"\\section*{{{escape(title)}}}",
    )
    return "\n".join([*head, *map(latex_table, all_sheets), "\\end{document}", ""])


def latex_table(sheet: Sheet) -> str:
    """One table, to be included in a document that loads booktabs."""
    widths = [len(columns) for _, columns in sheet.groups]
    starts = [2 + sum(widths[:i]) for i in range(len(widths))]
    titles = [f"\\multicolumn{{{len(columns)}}}{{c}}{{{escape(title)}}}" for title, columns in sheet.groups]
    rules = [f"\\cmidrule(lr){{{start}-{start + width - 1}}}" for start, width in zip(starts, widths, strict=True)]
    columns = [column for _, group in sheet.groups for column in group]
    return "\n".join(
        [
            "\\begin{table}[ht]\\centering\\scriptsize",
            f"\\caption{{{escape(sheet.title)}. {escape(sheet.legend)}}}",
            f"\\begin{{tabular}}{{l{'r' * sum(widths)}}}",
            "\\toprule",
            _latex_line(["", *titles]),
            "".join(rules),
            _latex_line(["Algorithm", *map(escape, columns)]),
            "\\midrule",
            *(_latex_line([escape(name), *map(_latex_field, fields)]) for name, fields in sheet.rows),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
    )


def _latex_line(fields: Iterable[str]) -> str:
    return " & ".join(fields) + " \\\\"


def _latex_field(field: str) -> str:
    text = escape(field)
    return f"\\textbf{{{text}}}" if field.endswith(MARKS["outside"]) else text


_LATEX = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "±": "$\\pm$",
    "†": "$^\\dagger$",
    "Δ": "$\\Delta$",
    "✓": "$\\surd$",
    "✗": "$\\times$",
    "<": "$<$",
    ">": "$>$",
    "`": "",  # marks code in Markdown
} | {character: f"\\{character}" for character in "%_&#${}"}


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(character, character) for character in text)


def csv(table: Table) -> str:
    """One line per entry and metric, all digits."""
    lines = [_csv_line(table.suite, compared, metric) for compared in table.entries.values() for metric in PRINTED]
    text = io.StringIO()
    writer = csv_format.DictWriter(text, fieldnames=list(lines[0]) if lines else ["suite"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _csv_line(suite: str, compared: Compared, metric: str) -> dict[str, object]:
    entry, comparison = compared.entry, compared.metrics[metric]
    published = comparison.published or Estimate(math.nan, math.nan, 0)
    about = ("id", "domain", "algorithm", "label", "variant", "precision", "iterations", "resolution", "n")
    numbers = {
        "mean": comparison.ours.mean,
        "se": comparison.ours.se,
        "published_mean": published.mean,
        "published_se": published.se,
        "difference": comparison.difference,
        "joint_se": comparison.joint_se,
        "difference_in_se": comparison.in_se,
        "optimum": getattr(compared.ceiling, metric, math.nan),
        "percent_of_optimum": compared.percent(metric, comparison.ours.mean),
    }
    return {
        "suite": suite,
        **{name: getattr(entry, name) for name in about},
        "figure": metric,  # how this column has always been named
        "trials": comparison.ours.trials,
        "published_trials": published.trials or "",
        **{name: f"{value:.8g}" if math.isfinite(value) else "" for name, value in numbers.items()},
        "verdict": comparison.verdict,
    }
