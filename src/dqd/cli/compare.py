"""`dqd compare`: runs against each other, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.inputs.names import check_known

if TYPE_CHECKING:
    from dqd.explorer.compare import Trial

FORMATS = ("table", "markdown", "latex", "csv")
LABELS = {"qd_score": "QD-score", "coverage": "coverage, %", "best": "best objective"}
REACHED = ("metric", "group", "trials", "mean", "low", "high", "median", "iqm")
TESTED = ("metric", "first", "second", "p", "corrected", "effect")


def compare(
    places: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, folders of runs, exported archives.")],
    format_: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print the two tables.")
    ] = "table",
) -> None:
    """Compare what runs have reached: mean with a 95 % interval, median, IQM, and rank tests between groups.

    Runs of one algorithm on one problem are one group of trials. low and high bound the mean (bootstrap). p is that of
    a two-sided Mann-Whitney test, corrected after Holm; effect is how often a run of the first beats one of the second.
    """
    from dqd.explorer import compare as comparing

    with explained(USAGE):
        check_known("format", format_, FORMATS)
        trials = [trial for place in places for trial in _trials(place)]
        if len(trials) < 2:
            raise ValueError(f"a comparison needs two runs or more, found {len(trials)}")
    with explained(FAILURE):
        groups = comparing.group(trials)
        typer.echo(printed(format_, REACHED, comparing.table(groups)))
        tests = [vars(test) for test in comparing.tests(groups)]
        if tests:
            typer.echo("\n" + printed(format_, TESTED, tests))


def _trials(place: Path) -> list[Trial]:
    from dqd.explorer.library import Library

    if not place.exists():
        raise FileNotFoundError(f"{place}: there is no such folder, run or file")
    library = Library(place)
    lines = {line["id"] for line in library.lines() if line["qd_score"] is not None}
    return [library.trial(each) for each in library.places().values() if each.id in lines]


def printed(format_: str, names: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    """A table in one of the formats; CSV has every digit."""
    if format_ == "csv":
        return "\n".join([",".join(names), *(",".join(_quoted(row[name]) for name in names) for row in rows)])
    cells = [list(names), *([_short(name, row[name]) for name in names] for row in rows)]
    if format_ == "latex":
        lines = [" & ".join(map(_escaped, line)) + r" \\" for line in cells]
        columns = "".join("l" if isinstance(rows[0][name], str) else "r" for name in names)
        body = "\n".join([lines[0], r"\midrule", *lines[1:]])
        return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}"
    if format_ == "markdown":
        rule = ["---" if isinstance(rows[0][name], str) else "---:" for name in names]
        return "\n".join(f"| {' | '.join(line)} |" for line in [cells[0], rule, *cells[1:]])
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    left = [isinstance(rows[0][name], str) for name in names]
    return "\n".join(
        "  ".join(c.ljust(w) if flush else c.rjust(w) for c, w, flush in zip(line, widths, left, strict=True)).rstrip()
        for line in cells
    )


def _short(name: str, value: Any) -> str:
    if name == "metric":
        return LABELS[value]
    if not isinstance(value, float):
        return str(value).replace("|", "/")
    return "-" if value != value else f"{value:.3g}" if name in ("p", "corrected", "effect") else f"{value:.3f}"


def _quoted(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n') else text


def _escaped(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    return text
