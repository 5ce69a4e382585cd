"""What the entries of a suite amount to: scores, ranks, tests against a reference, and how much sooner its score comes.

The reference is CMA-MEGA at the best of its sigmas, or else CMA-MEGA, or else the algorithm that was named last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.benchmark.entry import Entry
from dqd.paper.report.stats import bootstrap, holm, library, paired

REFERENCES = ("cma-mega-tuned", "cma-mega")
LEVEL = 0.05  # below it a difference is called one


@dataclass(frozen=True)
class Suite:
    """All entries of one suite: every algorithm on every function."""

    name: str
    marks: tuple[int, ...]  # evaluations at which scores are told
    entries: dict[tuple[str, str], Entry]  # by function and algorithm
    jacobian_cost: float | None

    @property
    def functions(self) -> list[str]:
        return list(dict.fromkeys(function for function, _ in self.entries))

    @property
    def algorithms(self) -> list[str]:
        return list(dict.fromkeys(algorithm for _, algorithm in self.entries))

    @property
    def reference(self) -> str:
        return next((name for name in REFERENCES if name in self.algorithms), self.algorithms[-1])

    @property
    def challengers(self) -> list[str]:
        return [name for name in self.algorithms if name != self.reference]

    def title(self, algorithm: str) -> str:
        return self.entries[self.functions[0], algorithm].title

    def scores(self, function: str, algorithm: str, mark: int) -> np.ndarray:
        return self.entries[function, algorithm].at(mark)

    # What they amount to ----------------------------------------------------------------------------------------------

    def ranks(self, mark: int) -> dict[str, tuple[float, float, float]]:
        """Mean over functions and seeds of the place of each, 1 the best; and its interval over functions."""
        rankdata = library("scipy.stats").rankdata
        places = []
        for function in self.functions:
            scores = np.array([self.scores(function, algorithm, mark) for algorithm in self.algorithms])
            places.append(rankdata(-scores, axis=0).mean(axis=1))
        columns = np.array(places).T
        return {
            name: (float(column.mean()), *bootstrap(column))
            for name, column in zip(self.algorithms, columns, strict=True)
        }

    def tests(self, algorithm: str, mark: int) -> dict[str, float]:
        """For every function, whether its seeds differ from those of the reference: p, corrected for all functions."""
        pairs = [[self.scores(name, each, mark) for each in (algorithm, self.reference)] for name in self.functions]
        return dict(zip(self.functions, holm([paired(*pair) for pair in pairs]), strict=True))

    def ahead(self, algorithm: str, mark: int) -> dict[str, int]:
        """On how many functions its mean is above that of the reference, and where p says that it is above or below."""
        gaps = {
            name: float(np.mean(self.scores(name, algorithm, mark) - self.scores(name, self.reference, mark)))
            for name in self.functions
        }
        sure = {name for name, p in self.tests(algorithm, mark).items() if p < LEVEL}
        return {
            "ahead": sum(gap > 0 for gap in gaps.values()),
            "surely_ahead": sum(gaps[name] > 0 for name in sure),
            "surely_behind": sum(gaps[name] < 0 for name in sure),
            "functions": len(gaps),
        }

    def speedup(self, function: str, algorithm: str, cost: bool = False) -> float:
        """How many times fewer evaluations, median over seeds, until the score that the reference has in the end.

        Or how much less cost. 0 where most seeds never have it.
        """
        reference, entry = self.entries[function, self.reference], self.entries[function, algorithm]
        spent = float(np.median(entry.until(float(reference.at(self.marks[-1]).mean()))))
        if not np.isfinite(spent):
            return 0.0
        if not cost:
            return self.marks[-1] / spent
        whole, own = np.array(float(self.marks[-1])), np.array(spent)
        return float(reference.cost(whole, self.jacobian_cost) / entry.cost(own, self.jacobian_cost))

    def share_of_best(self, algorithm: str, mark: int) -> dict[str, float]:
        """Its mean score on every function, in percent of the best algorithm there."""
        best = {
            name: max(float(self.scores(name, each, mark).mean()) for each in self.algorithms)
            for name in self.functions
        }
        return {name: 100 * float(self.scores(name, algorithm, mark).mean()) / best[name] for name in self.functions}

    def figures(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "reference": self.reference,
            "scores": [self._score(*key, mark) for key in self.entries for mark in self.marks],
            "ranks": [
                {"algorithm": name, "evaluations": mark, "mean": mean, "low": low, "high": high}
                for mark in self.marks
                for name, (mean, low, high) in self.ranks(mark).items()
            ],
            "against_reference": [
                {"algorithm": name, "evaluations": mark, **self.ahead(name, mark), "p": self.tests(name, mark)}
                for name in self.challengers
                for mark in self.marks
            ],
            "speedup": {name: self._speedups(name, cost=False) for name in self.challengers},
            "speedup_in_cost": {name: self._speedups(name, cost=True) for name in self.challengers},
            "percent_of_best": [
                {"algorithm": name, "evaluations": mark, **self.share_of_best(name, mark)}
                for name in self.algorithms
                for mark in self.marks
            ],
        }

    def _speedups(self, algorithm: str, cost: bool) -> dict[str, float]:
        return {function: self.speedup(function, algorithm, cost) for function in self.functions}

    def _score(self, function: str, algorithm: str, mark: int) -> dict[str, Any]:
        entry, scores = self.entries[function, algorithm], self.scores(function, algorithm, mark)
        return {
            "function": function,
            "algorithm": algorithm,
            "evaluations": mark,
            "mean": float(scores.mean()),
            "deviation": float(scores.std()),
            "percent_of_ceiling": None if entry.ceiling is None else 100 * float(scores.mean()) / entry.ceiling,
            "seeds": scores.tolist(),
        }


def suites(entries: Sequence[Entry], marks: Sequence[int], jacobian_cost: float | None) -> list[Suite]:
    """The entries by suite."""
    return [
        Suite(
            name,
            tuple(marks),
            {(entry.function, entry.algorithm): entry for entry in entries if entry.suite == name},
            jacobian_cost,
        )
        for name in dict.fromkeys(entry.suite for entry in entries)
    ]
