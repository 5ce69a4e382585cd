"""Reads a finished (or half-finished) suite from its folder: every trial's final figures and its curves.

A trial that is missing, damaged or shorter than the suite asks is left out and named, never guessed. Archives stay on
disk: only whoever draws them needs them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from dqd.inputs.names import METRICS
from dqd.paper import layout
from dqd.safe import load_json
from dqd.storage import record


class NotASuiteError(ValueError):
    """The folder holds no suite."""


@dataclass(frozen=True)
class EntryData:
    """One entry of a table: all trials of one algorithm on one domain."""

    id: str
    domain: str
    algorithm: str
    label: str  # as the paper prints it
    variant: str
    resolution: int
    cells: int  # around centroids, in place of a grid; 0: a grid
    n: int
    iterations: int
    precision: str
    settings: Mapping[str, Any]
    published: Mapping[str, Any] | None
    note: str  # what a reader should know about this entry, often empty
    folder: Path  # of the suite
    expected: int  # trials asked for
    trials: tuple[int, ...]  # those that are whole
    problems: tuple[str, ...]  # one sentence for each of the others
    final: Mapping[str, np.ndarray]  # figure -> (trials,)
    seeds: tuple[int, ...]
    steps: np.ndarray  # (points,) iterations that all trials recorded
    curves: Mapping[str, np.ndarray]  # figure -> (trials, points)

    @property
    def key(self) -> str:
        """The row of this entry: its algorithm, with the variant if there is one."""
        return self.algorithm if self.variant == "base" else f"{self.algorithm}.{self.variant}"

    @property
    def name(self) -> str:
        """The row of this entry in words."""
        return self.label if self.variant == "base" else f"{self.label} ({self.variant.replace('_', ' ')})"

    def trial_folder(self, trial: int) -> Path:
        """Where the record of a trial lies."""
        return layout.trial_folder(self.folder, self.id, trial)


@dataclass(frozen=True)
class SuiteData:
    """A suite read back."""

    folder: Path
    name: str
    title: str
    device: str
    seconds: float
    execution_seconds: float  # of these seconds, on an accelerator; 0 elsewhere
    entries: tuple[EntryData, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """In the order of the table."""
        return tuple(dict.fromkeys(entry.domain for entry in self.entries))

    @property
    def rows(self) -> dict[str, str]:
        """Key and name of every row, in the order of the table."""
        return {entry.key: entry.name for entry in self.entries}

    @property
    def problems(self) -> tuple[str, ...]:
        """What is missing or damaged, one sentence each."""
        return tuple(problem for entry in self.entries for problem in entry.problems)

    def entry(self, key: str, domain: str) -> EntryData | None:
        """One algorithm on one domain, if the suite has it."""
        return next((entry for entry in self.entries if (entry.key, entry.domain) == (key, domain)), None)


@dataclass(frozen=True)
class _Trial:
    index: int
    seed: int
    final: dict[str, float]
    curve: dict[int, dict[str, Any]]  # iteration -> metrics


def read_suite(folder: str | os.PathLike[str]) -> SuiteData:
    """Read a suite: its description and every trial that is whole."""
    source = Path(folder)
    about = _description(source)
    return SuiteData(
        folder=source,
        name=str(about["suite"]),
        title=str(about.get("title", about["suite"])),
        device=str(about.get("device") or "an unnamed device"),
        seconds=float(about.get("seconds", 0.0)),
        execution_seconds=float(about.get("execution_seconds", 0.0)),
        entries=tuple(_entry(source, about, entry) for entry in about[layout.ENTRIES]),
    )


def _description(source: Path) -> dict[str, Any]:
    path = source / layout.SUITE
    if not path.is_file():
        raise NotASuiteError(
            f"{source} holds no suite: suite.json is missing; `dqd reproduce SUITE --out DIR` makes one"
        )
    try:
        about = load_json(path)
    except ValueError as error:
        raise NotASuiteError(f"{path} is not JSON: {error}") from None
    if not isinstance(about, dict) or not {"suite", layout.ENTRIES} <= set(about):
        raise NotASuiteError(f"{path} describes no suite: expected the fields 'suite' and '{layout.ENTRIES}'")
    return about


def _entry(source: Path, about: Mapping[str, Any], entry: Mapping[str, Any]) -> EntryData:
    def field(name: str) -> Any:  # an entry's own value goes before that of the suite
        return entry[name] if name in entry else about[name]

    expected, iterations = int(field("trials")), int(field("iterations"))
    trials, problems = _trials([layout.trial_folder(source, entry["id"], i) for i in range(expected)], iterations)
    steps, curves = _align(trials)
    return EntryData(
        **{name: str(entry[name]) for name in ("id", "domain", "algorithm")},
        label=str(entry.get("label", entry["algorithm"])),
        variant=str(entry.get("variant", "base")),
        resolution=int(field("resolution")),
        cells=int(entry.get("cells", 0)),
        n=int(field("n")),
        iterations=iterations,
        precision=str(field("precision")),
        settings=entry.get("settings", {}),
        published=entry.get("published"),
        note=str(entry.get("note", "")),
        folder=source,
        expected=expected,
        trials=tuple(trial.index for trial in trials),
        problems=tuple(problems),
        final={name: np.array([trial.final[name] for trial in trials], np.float64) for name in METRICS},
        seeds=tuple(trial.seed for trial in trials),
        steps=steps,
        curves=curves,
    )


def _trials(folders: list[Path], iterations: int) -> tuple[list[_Trial], list[str]]:
    """The whole trials, and a sentence about each of the others."""
    trials, problems = [], []
    for index, place in enumerate(folders):
        try:
            trials.append(_trial(place, index, iterations))
        except FileNotFoundError:
            problems.append(f"{place.parent.name}/{place.name} is missing")
        except (ValueError, KeyError, TypeError, OSError) as error:
            problems.append(
                f"{place.parent.name}/{place.name} is left out: {type(error).__name__}: {error}; "
                "`dqd reproduce` runs it again"
            )
    return trials, problems


def _trial(place: Path, index: int, iterations: int) -> _Trial:
    summary, rows = record.newest(place, lambda checkpoint: (checkpoint.summary, checkpoint.lines(record.METRICS)))
    if int(summary.get("iterations", iterations)) != iterations:
        raise ValueError(f"it has {summary['iterations']} iterations, the suite asks for {iterations}")
    final = {name: float(summary[name]) for name in METRICS}
    return _Trial(index, int(summary.get("seed", index)), final, {int(row["iteration"]): row for row in rows})


def _align(trials: list[_Trial]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The curves at the iterations that all trials have."""
    common = reduce(set.intersection, [set(trial.curve) for trial in trials]) if trials else set()
    steps = sorted(common)
    curves = {
        name: np.array([[trial.curve[step][name] for step in steps] for trial in trials], np.float64)
        for name in METRICS
    }
    return np.array(steps, np.int64), {name: curve.reshape(len(trials), len(steps)) for name, curve in curves.items()}
