"""What the papers print: mean and standard error of three metrics, for every table, domain, algorithm and variant.

`published.csv` holds tables under the names that they have in the first paper's source, such as `tab:results_detailed`;
`annealing` is the main table of the second one (Fontaine & Nikolaidis 2023), without standard errors; `discount` are
QD-scores of Tjanaka et al. (2026), per cell and on the scale 0..100.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from dqd.inputs.names import METRICS

PRINTED = tuple(name for name in METRICS if name != "mean")  # the metrics that it prints
ITERATIONS = 10_000  # of every printed trial, unless a table says otherwise
TRIALS = 20
# Suite -> what the paper says about its analysis of variance (section "Analysis").
INTERACTION = {"table1": "F(14, 456) = 7328.18, p < 0.001", "lsi": "F(4, 20) = 260.64, p < 0.001"}


def published(table: str, domain: str, title: str, variant: str) -> dict[str, Any]:
    """One line of a table; `title` is the algorithm as the paper prints it."""
    wanted = (table, domain.replace("-", "_"), title, variant)
    for row in _rows():
        if (row["table"], row["domain"], row["algorithm"], row["variant"]) == wanted:
            counts = {name: int(row[name]) for name in ("trials", "iterations")}
            names = [name for metric in PRINTED for name in (metric, f"{metric}_se")]
            return {"table": table} | counts | {name: float(row[name]) for name in names if row[name]}
    raise LookupError(f"no published row for {wanted}")


@cache
def _rows() -> Iterable[dict[str, str]]:
    text = resources.files("dqd.paper").joinpath("published.csv").read_text()
    return tuple(csv.DictReader(text.splitlines()))
