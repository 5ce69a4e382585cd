"""The page: one table of scores for every number of evaluations, one that sums up, one of how much sooner."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dqd.benchmark.draw import curves
from dqd.benchmark.entry import Entry
from dqd.benchmark.standings import LEVEL, Suite, suites
from dqd.storage import durable

ABOUT = {
    "seen": "These functions were looked at while `dqd.targeting` and `dqd.auto` were made.",
    "unseen": "These functions were written before any algorithm was run on them.",
}


def write_page(entries: Sequence[Entry], marks: Sequence[int], out: Path, jacobian_cost: float | None) -> Path:
    """benchmark.md, with its figures in benchmark.json and its curves beside; its path."""
    parts = suites(entries, marks, jacobian_cost)
    for part in parts:
        durable.replace_file(out / f"{part.name}.png", functools.partial(curves(part).savefig, format="png"))
    figures = {part.name: part.figures() for part in parts}
    durable.replace_file(out / "benchmark.json", json.dumps(figures, indent=1) + "\n")
    durable.replace_file(out / "benchmark.md", "\n\n".join([_head(entries[0]), *map(_suite, parts)]) + "\n")
    return out / "benchmark.md"


def _head(entry: Entry) -> str:
    return (
        f"# Benchmark\n\nQD-score, mean ± standard deviation over {entry.seeds} seeds; n = {entry.n} numbers. A "
        "jacobian counts as the evaluation of its point. Where the best possible score is known, percent of it stand "
        "in brackets. The best of a row is bold."
    )


def _suite(suite: Suite) -> str:
    parts = [f"## {suite.name}", ABOUT[suite.name]]
    for mark in suite.marks:
        header = ["function", *(suite.title(name) for name in suite.algorithms)]
        rows = [[function, *_row(suite, function, mark)] for function in suite.functions]
        parts.append(f"{mark:,} evaluations\n\n{_table(header, rows)}")
    if suite.challengers:
        parts += [_summary(suite), _speedups(suite)]
    return "\n\n".join([*parts, f"![QD-score over evaluations]({suite.name}.png)"])


def _row(suite: Suite, function: str, mark: int) -> list[str]:
    scores = [suite.scores(function, algorithm, mark) for algorithm in suite.algorithms]
    best = max(score.mean() for score in scores)
    ceiling = suite.entries[function, suite.algorithms[0]].ceiling
    cells = []
    for score in scores:
        words = f"{score.mean():.1f} ± {score.std():.1f}"
        words = f"**{words}**" if score.mean() == best else words
        cells.append(words if ceiling is None else f"{words} ({100 * score.mean() / ceiling:.1f})")
    return cells


def _summary(suite: Suite) -> str:
    words = (
        "Ranks are means over functions and seeds, with 95 % intervals over functions (bootstrap). Ahead: on how many "
        f"of {len(suite.functions)} functions the mean is above that of {suite.title(suite.reference)}; then on how "
        f"many the seeds differ upwards and downwards (Wilcoxon's signed-rank test, p < {LEVEL} after Holm). Of the "
        "best: mean score in percent of the best algorithm's, median and least over functions."
    )
    header = ["algorithm", *(f"rank at {mark:,}" for mark in suite.marks)]
    header += [f"ahead at {mark:,}" for mark in suite.marks] + [f"of the best at {mark:,}, %" for mark in suite.marks]
    ranks = {mark: suite.ranks(mark) for mark in suite.marks}
    rows = []
    for name in suite.algorithms:
        places = [
            f"{mean:.2f} ({low:.2f}, {high:.2f})" for mean, low, high in (ranks[mark][name] for mark in suite.marks)
        ]
        won = ["" if name == suite.reference else _ahead(suite, name, mark) for mark in suite.marks]
        shares = [list(suite.share_of_best(name, mark).values()) for mark in suite.marks]
        rows.append([suite.title(name), *places, *won, *(f"{np.median(each):.1f}, {min(each):.1f}" for each in shares)])
    return f"### Summary\n\n{words}\n\n{_table(header, rows)}"


def _ahead(suite: Suite, name: str, mark: int) -> str:
    found = suite.ahead(name, mark)
    return f"{found['ahead']}; {found['surely_ahead']} up, {found['surely_behind']} down"


def _speedups(suite: Suite) -> str:
    reference, last = suite.title(suite.reference), suite.marks[-1]
    words = (
        f"How many times fewer evaluations until the mean score that {reference} has at {last:,}, median over seeds. "
        "< is for runs that ended before most seeds had it. In cost a jacobian counts for more than the evaluation of "
        "its point."
    )
    header = [
        "function",
        *(f"{suite.title(name)}, {unit}" for name in suite.challengers for unit in ("evaluations", "cost")),
    ]
    columns = [
        [suite.speedup(function, name, cost) for function in suite.functions]
        for name in suite.challengers
        for cost in (False, True)
    ]
    rows = [
        [function, *(_times(suite, function, column[i]) for column in columns)]
        for i, function in enumerate(suite.functions)
    ]
    middle = max(suite.functions, key=lambda function: _least(suite, function))
    rows.append(["*median*", *(_times(suite, middle, float(np.median(column))) for column in columns)])
    return f"### How much sooner\n\n{words}\n\n{_table(header, rows)}"


def _times(suite: Suite, function: str, speedup: float) -> str:
    return f"{speedup:.2f}" if speedup else f"< {_least(suite, function):.2f}"


def _least(suite: Suite, function: str) -> float:
    """The smallest that can be told: runs end some time."""
    return float(suite.marks[-1] / suite.entries[function, suite.reference].evaluations[-1])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
