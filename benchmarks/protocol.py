"""What a worker says and hears: one JSON object per line on stdout, `run K` or `quit` per line on stdin.

    python worker_x.py CONTESTANT DOMAIN ALGORITHM N [--seed S] [--side CELLS]
    < {"ready": true, "versions": {...}, "granularity": 100}      compiled and warm, no iteration of the search done
    > run 1000
    < {"seconds": 0.09, "cpu_seconds": 0.1, "evaluation_seconds": 0.02, "iterations": 1000, "qd_score": 66.9, ...}

Standard library only, because every contestant imports it from its own environment.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Protocol

from settings import SIDE, Settings, settings_of


class Search(Protocol):
    """A search in motion, as a worker drives it."""

    def advance(self, iterations: int) -> None:
        """Do that many more iterations, and return when they are really done."""

    def score(self) -> tuple[float | None, float | None]:
        """QD-score (sum of stored objectives / all cells) and coverage in percent; (None, None) without an archive."""


Factory = Callable[[str, Settings, int], Search]  # contestant, settings, seed


def serve(make: Factory, packages: list[str], granularity: int, warm_up: int) -> None:
    """Warm up on a search that is thrown away, then obey the lines on stdin with a fresh one."""
    say = _claim_stdout()
    contestant, settings, seed = _arguments()
    make(contestant, settings, seed + 1).advance(warm_up)
    search = make(contestant, settings, seed)
    search.advance(0)
    say({"ready": True, "versions": {name: version(name) for name in packages}, "granularity": granularity})
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "quit":
            break
        say(_timed_run(search, int(rest[0])))


def _timed_run(search: Search, iterations: int) -> dict:
    evaluated = _evaluated(search)
    begin, cpu = time.perf_counter(), time.process_time()
    search.advance(iterations)
    took = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
    took["evaluation_seconds"] = _evaluated(search) - evaluated
    qd_score, coverage = search.score()
    return took | {"iterations": iterations, "qd_score": qd_score, "coverage": coverage}


def _evaluated(search: Search) -> float:
    """Seconds in evaluations so far, where these are NumPy's."""
    return getattr(getattr(search, "domain", None), "seconds", 0.0)


def _claim_stdout() -> Callable[[dict], None]:
    """Keep the real stdout for answers; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return lambda message: print(json.dumps(message), file=answers)


def _arguments() -> tuple[str, Settings, int]:
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant")
    parser.add_argument("domain")
    parser.add_argument("algorithm")
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--side", type=int, default=SIDE)
    given = parser.parse_args()
    return given.contestant, settings_of(given.domain, given.algorithm, given.n, given.side), given.seed
