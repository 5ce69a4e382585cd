"""Runs what is missing of a benchmark, and writes the page. A finished entry is a file, so it may be stopped any time.

OUT/entries/<function>.<algorithm>.json   one algorithm on one function, all seeds
OUT/benchmark.json                        every figure of the page
OUT/benchmark.md, OUT/<suite>.png         for people
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.benchmark.contestants import CONTESTANTS, archive, searches, sigmas
from dqd.benchmark.entry import Entry, read
from dqd.benchmark.function import Field, Function, fields
from dqd.benchmark.seen import seen
from dqd.benchmark.trials import Programs, Ready, Task
from dqd.benchmark.unseen import unseen
from dqd.inputs.names import check_known, known
from dqd.search.search import Search
from dqd.storage import durable

SUITES: Mapping[str, Callable[[int], dict[str, Function]]] = {"seen": seen, "unseen": unseen}
POINTS = 300  # of a curve


@dataclass(frozen=True)
class Benchmark:
    """What is to be run."""

    suites: Sequence[str]
    algorithms: Sequence[str]
    out: Path
    seeds: int = 10
    budget: int = 80_000  # evaluations
    n: int = 100
    only: Sequence[str] = ()  # functions; all, where none is named

    def __post_init__(self) -> None:
        for suite in self.suites:
            check_known("suite", suite, SUITES)
        for name in self.algorithms:
            known("algorithm", name, CONTESTANTS).check()
        if not any(self.functions.values()):
            raise ValueError(f"suite: there are no functions in {' and '.join(self.suites)} at present")
        for name in self.only:
            check_known("function", name, [name for suite in self.functions.values() for name in suite])

    @cached_property
    def functions(self) -> dict[str, dict[str, Function]]:
        return {suite: known("suite", suite, SUITES)(self.n) for suite in self.suites}


def run(benchmark: Benchmark, marks: Sequence[int], say: Callable[[str], None]) -> list[Entry]:
    """All entries: those that are there, and those that are missing."""
    wanted = [
        (suite, name, function)
        for suite, functions in benchmark.functions.items()
        for name, function in functions.items()
        if not benchmark.only or name in benchmark.only
    ]
    every = fields({name: function for _, name, function in wanted})
    durable.make_folder(benchmark.out / "entries")
    there = {
        (name, algorithm): _read(benchmark, suite, name, algorithm)
        for suite, name, _ in wanted
        for algorithm in benchmark.algorithms
    }
    missing = [place for place in wanted if any(there[place[1], who] is None for who in benchmark.algorithms)]
    turns = [turn for place in missing for turn in _turns(benchmark, *place, every[place[1]], there)]
    say(f"dqd: {sum(entry is None for entry in there.values())} of {len(there)} entries to run")
    programs, started = Programs([turn.task for turn in turns]), time.perf_counter()
    try:
        for done, turn in enumerate(turns, start=1):
            for entry in turn.run(programs, marks):
                entry.write(_path(benchmark, entry.function, entry.algorithm))
                there[entry.function, entry.algorithm] = entry
                score, seconds = entry.qd_score[:, -1].mean(), time.perf_counter() - started
                say(
                    f"dqd: {entry.function}, {entry.title}: QD-score {score:.2f}"
                    f" ({done} of {len(turns)} done in {seconds:.0f} s)"
                )
    finally:
        programs.close()
    return [entry for entry in there.values() if entry is not None]


def _path(benchmark: Benchmark, function: str, algorithm: str) -> Path:
    return benchmark.out / "entries" / f"{function}.{algorithm}.json"


def _asked(benchmark: Benchmark, suite: str, function: str, algorithm: str) -> dict[str, Any]:
    common = {"n": benchmark.n, "seeds": benchmark.seeds, "budget": benchmark.budget}
    return {"suite": suite, "function": function, "algorithm": algorithm, **common}


def _read(benchmark: Benchmark, suite: str, function: str, algorithm: str) -> Entry | None:
    return read(_path(benchmark, function, algorithm), _asked(benchmark, suite, function, algorithm))


@dataclass(frozen=True)
class Turn:
    """Algorithms that run side by side on one function, with how many searches each."""

    asked: Sequence[dict[str, Any]]  # of every algorithm
    counts: Sequence[int]
    task: Task

    def run(self, programs: Programs, marks: Sequence[int]) -> list[Entry]:
        program = programs.of(self.task)
        started = time.perf_counter()
        qd_score, coverage = program(self.task)
        seconds = time.perf_counter() - started
        ends = np.cumsum(self.counts)
        return [
            _entry(asked, self.task, slice(end - count, end), qd_score, coverage, marks, seconds)
            for asked, count, end in zip(self.asked, self.counts, ends, strict=True)
        ]


def _turns(
    benchmark: Benchmark, suite: str, name: str, function: Function, field: Field, there: Mapping[Any, Entry | None]
) -> list[Turn]:
    """What is missing of one function: one turn for all algorithms whose searches have the same form."""
    forms: dict[Any, list[tuple[str, list[Search]]]] = {}
    empty: dict[Any, Archive] = {}
    for algorithm in benchmark.algorithms:
        if there[name, algorithm] is None:
            own, ready = searches(algorithm, function, field), CONTESTANTS[algorithm].ready
            form = ready, jax.tree.structure((own[0], room := archive(algorithm, function, own[0])))
            forms.setdefault(form, []).append((algorithm, own))
            empty[form] = room
    return [
        Turn(
            [_asked(benchmark, suite, name, algorithm) for algorithm, _ in group],
            [len(own) for _, own in group],
            _task(benchmark, function, field, [search for _, own in group for search in own], empty[form], form[0]),
        )
        for form, group in forms.items()
    ]


def _task(
    benchmark: Benchmark, function: Function, field: Field, every: Sequence[Search], empty: Archive, ready: Ready
) -> Task:
    emitter = every[0].emitter
    batch = emitter.num_points + emitter.batch_size
    iterations = max(1, (benchmark.budget - emitter.initial_population) // batch)
    return Task(function, field, tuple(every), empty, benchmark.seeds, iterations, ready)


def _entry(
    asked: dict[str, Any],
    task: Task,
    own: slice,
    qd_score: np.ndarray,
    coverage: np.ndarray,
    marks: Sequence[int],
    seconds: float,
) -> Entry:
    """Of several searches, at every point the one whose seeds are best on average."""
    emitter = task.searches[own.start].emitter
    batch = emitter.num_points + emitter.batch_size
    marked = [(mark - emitter.initial_population) // batch for mark in marks]
    points = np.geomspace(1, task.iterations, POINTS).round().astype(int)
    iteration = np.unique(np.clip([*points, *marked], 1, task.iterations))
    best = qd_score[own].mean(axis=1).argmax(axis=0)[iteration - 1]  # (points,)
    return Entry(
        **asked,
        title=CONTESTANTS[asked["algorithm"]].title,
        k=len(task.function.lower),
        ceiling=task.function.ceiling,
        batch=batch,
        jacobians=emitter.num_points,
        sigmas=[number for search in task.searches[own] for number in sigmas(search)],
        seconds=seconds,
        evaluations=emitter.initial_population + iteration * batch,
        qd_score=qd_score[own][best, :, iteration - 1].T,
        coverage=coverage[own][best, :, iteration - 1].T,
    )
