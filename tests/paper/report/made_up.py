"""Suites of made-up trials: whole ones with archives to draw, and tables whose scores are given."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np

from dqd.paper import layout, suites
from dqd.storage import record

N, SIDE, ITERATIONS, TRIALS = 10, 10, 100, 3
PRINTED = {"trials": 20, "qd_score": 10.0, "qd_score_se": 0.1, "coverage": 20.0, "coverage_se": 0.2}
PRINTED |= {"best": 100.0, "best_se": 0.0, "table": "tab:results_detailed"}


def entry(domain: str, algorithm: str, label: str, published=PRINTED, **changes) -> dict:
    about = {"resolution": 100, "n": 1000, "iterations": 10_000, "precision": "float32", "trials": 4}
    about |= {"settings": {"rank_one": "dqd2021"}, "published": published, "variant": "base"} | changes
    suffix = "" if about["variant"] == "base" else f".{about['variant']}"
    return {"id": f"{domain}.{algorithm}{suffix}", "domain": domain, "algorithm": algorithm, "label": label, **about}


def write_scores(folder: Path, entries: dict[str, list[float]], described: list[dict]) -> Path:
    """A suite of entries whose trials have these QD-scores, twice that coverage, and 100 as their best."""
    folder.mkdir(parents=True)
    about = {"suite": "table1", "title": "A title_with 100 %", "device": "an abacus", "seconds": 60, "cells": described}
    (folder / "suite.json").write_text(json.dumps(about))
    iterations = {one["id"]: one["iterations"] for one in described}
    for name, scores in entries.items():
        for trial, score in enumerate(scores):
            final = {"qd_score": score, "coverage": 2 * score, "best": 100.0, "mean": 50.0}
            rows = [{"iteration": step, **final} for step in (iterations[name] // 2, iterations[name])]
            summary = {**final, "iterations": iterations[name], "seed": trial}
            record.write(layout.trial_folder(folder, name, trial), {"summary": summary}, rows, {"cell": np.arange(2)})
    return folder


def write_whole_suite(folder: Path, name: str, leave_out=()) -> Path:
    """A small suite of made-up trials. `leave_out` names trials that are missing, as (entry, trial)."""
    suite = suites.suite(name).resized(TRIALS, ITERATIONS)
    entries = [dataclasses.replace(entry, n=N, resolution=SIDE) for entry in suite.entries]
    about = {"suite": name, "title": suite.title, "cells": [entry.describe() for entry in entries]}
    folder.mkdir()
    (folder / "suite.json").write_text(json.dumps(about))
    for entry, trial in itertools.product(entries, range(TRIALS)):
        if (entry.id, trial) not in leave_out:
            write_trial(layout.trial_folder(folder, entry.id, trial), entry, trial)
    return folder


def write_trial(place: Path, entry, trial: int) -> None:
    random = np.random.default_rng([trial, *entry.id.encode()])
    occupied = np.sort(random.choice(SIDE**2, 40, replace=False))
    limit = float(N) if entry.domain == "arm" else 5.12 * N / 2
    solutions = random.normal(0.3, 0.001, (40, N)).astype(entry.precision)
    arrays = {
        "cell": occupied,
        "objective": (100 * (1 - solutions.var(axis=1)) if entry.domain == "arm" else random.uniform(0, 100, 40)),
        "grid_lower": np.full(2, -limit),
        "grid_upper": np.full(2, limit),
        "grid_shape": np.array([SIDE, SIDE]),
    } | ({"solutions": solutions} if trial == 0 else {})
    steps = np.arange(10, ITERATIONS + 1, 10)
    final = {"qd_score": 40.0 + trial, "coverage": 40.0, "best": 99.0, "mean": 90.0}
    rows = [{"iteration": int(step), **final, "qd_score": final["qd_score"] * step / ITERATIONS} for step in steps]
    record.write(place, {"summary": {**final, "iterations": ITERATIONS, "seed": trial}}, rows, arrays)
