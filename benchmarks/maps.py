"""Maps of image generators: one trial with its held-out judges, the file of all trials, and the table of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import dqd
from device import describe_device, source_digest, today
from dqd.paper.presets import ALGORITHMS

COLUMNS = {
    "qd_score": "QD-score",
    "trusted": "trusted QD-score",
    "agreement": "agreement (%)",
    "coverage": "coverage (%)",
    "seconds": "s",
}
Row = dict[str, Any]


def known_trials(path: Path, about: Row) -> list[Row]:
    """Those that a file has of the same settings: a run that was interrupted goes on."""
    found = json.loads(path.read_text()) if path.is_file() else {}
    return found.get("trials", []) if all(found.get(name) == value for name, value in about.items()) else []


def key(row: Row) -> tuple[Any, ...]:
    return row["algorithm"], tuple(row["pair"]), row["seed"]


def figures(result: dqd.Result, name: str, pair: Iterable[str], seed: int) -> Row:
    """Of one trial, as plain numbers."""
    return {
        "algorithm": name,
        "pair": list(pair),
        "seed": seed,
        "qd_score": result.qd_score,
        "coverage": result.coverage,
        "best": result.best,
        "mean": result.mean,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
    }


def write(path: Path, about: Row, rows: list[Row]) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    import jax

    machine = {"date": today(), "dqd": dqd.__version__, "jax": jax.__version__, "source": source_digest()}
    machine |= {"device": jax.devices()[0].device_kind, "flags": os.environ.get("XLA_FLAGS", ""), **describe_device()}
    path.write_text(json.dumps(about | machine | {"trials": rows}, indent=1) + "\n")


def table(rows: list[Row], words: str) -> str:
    """Of each pair the algorithms, best trusted QD-score first."""
    lines = [f"| map | algorithm | {' | '.join(COLUMNS.values())} |", "|---|---|" + "---:|" * len(COLUMNS)]
    for pair in dict.fromkeys(tuple(row["pair"]) for row in rows):
        mine = [row for row in rows if tuple(row["pair"]) == pair]
        entries = {name: [row for row in mine if row["algorithm"] == name] for name in {r["algorithm"] for r in mine}}
        ranked = sorted(entries, key=lambda name: -np.mean([row["trusted"] for row in entries[name]]))
        for place, name in enumerate(ranked):
            cells = [spread([row[column] for row in entries[name] if counts(row, column)]) for column in COLUMNS]
            title = f"{pair[0]}: {' × '.join(pair[1:])}" if place == 0 else ""
            lines.append(f"| {title} | {ALGORITHMS[name].title} | {' | '.join(cells)} |")
    return f"{words}\n\n" + "\n".join(lines) + "\n"


def counts(row: Row, column: str) -> bool:
    """Trials that shared their device with others have no seconds of their own."""
    return column != "seconds" or not row.get("side_by_side")


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.1f}" if values else ""
