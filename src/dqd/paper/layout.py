"""Where the files of a suite lie, said once for those who write them and those who read them.

OUT/suite.json                what was asked for, with the published numbers
OUT/lock                      held while suite.json is changed
OUT/<entry>/trial-000/        one record per trial (`dqd.storage.record`); solutions only in an entry's first one
OUT/report/report.md          for people: what was run, tables, statistics in words, what is outside
OUT/report/tables.tex         the tables, a document of its own
OUT/report/tables.csv         one line per entry and metric, all digits
OUT/report/statistics.json    every test with its numbers
OUT/report/figures/           the figures, `<suite>-<figure>.png`
"""

from __future__ import annotations

from pathlib import Path

SUITE = "suite.json"
ENTRIES = "cells"  # how suite.json has always named them
REPORT, FIGURES = "report", "figures"
WORDS, LATEX, CSV, STATISTICS = "report.md", "tables.tex", "tables.csv", "statistics.json"


def trial_folder(suite: Path, entry: str, trial: int) -> Path:
    """The record of one trial; `entry` is its id."""
    return suite / entry / f"trial-{trial:03d}"


def picture_name(suite: str, figure: str) -> str:
    """`figure` is the function that draws it."""
    return f"{suite}-{figure.replace('_', '-')}.png"
