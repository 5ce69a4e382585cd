"""Writes the report of a suite beside its trials; `dqd.paper.layout` lists the files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path

from dqd.console import saying
from dqd.paper import layout
from dqd.paper.report import sheets, words
from dqd.paper.report.analysis import Statistics, analyse
from dqd.paper.report.collect import SuiteData, read_suite
from dqd.paper.report.tables import comparison_table
from dqd.storage import durable
from dqd.storage.settings import finite


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write the report of the suite in a folder. Returns the path of report.md."""
    suite = read_suite(folder)
    for problem in suite.problems:
        saying.warn(problem, stacklevel=2)
    table, found = comparison_table(suite), _statistics(suite)
    pages = sheets.sheets(table)
    target = suite.folder / layout.REPORT
    durable.make_folder(target / layout.FIGURES)
    pictures = [path.relative_to(target) for path in _draw(suite, target / layout.FIGURES)]
    tests = found if isinstance(found, str) else finite(dataclasses.asdict(found))
    files = {
        layout.LATEX: sheets.latex(pages, suite.title),
        layout.CSV: sheets.csv(table),
        layout.STATISTICS: json.dumps(tests, indent=2, ensure_ascii=False) + "\n",
        layout.WORDS: words.report(suite, table, pages, found, pictures),
    }
    for name, text in files.items():
        durable.replace_file(target / name, text)
    return target / layout.WORDS


def _statistics(suite: SuiteData) -> Statistics | str:
    """The statistics, or why there are none: scipy and statsmodels are an extra, and the tables do not need them."""
    try:
        return analyse(suite)
    except ImportError as error:
        return str(error)


def _draw(suite: SuiteData, folder: Path) -> Iterable[Path]:
    from dqd.paper.report.draw.suite import draw_figures  # matplotlib is slow to import

    return draw_figures(suite, folder)
