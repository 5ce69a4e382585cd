"""One algorithm on one function, all its seeds: what is kept of it, as one file of JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dqd.safe import load_json
from dqd.storage import durable
from dqd.storage.settings import SettingsChangedError

ASKED = ("suite", "function", "algorithm", "n", "seeds", "budget")  # what must be as it was to go on


@dataclass(frozen=True)
class Entry:
    suite: str
    function: str
    algorithm: str
    title: str  # of the algorithm
    n: int
    seeds: int
    budget: int  # evaluations
    k: int
    ceiling: float | None  # the best QD-score that is possible, where it is known
    batch: int  # evaluations of an iteration,
    jacobians: int  # with so many jacobians
    sigmas: list[float]  # that was chosen; or those of which the best counts
    seconds: float  # of all seeds, with all that ran beside them, compilation not included
    evaluations: np.ndarray  # (points,)
    qd_score: np.ndarray  # (seeds, points)
    coverage: np.ndarray  # (seeds, points)

    def cost(self, evaluations: np.ndarray, jacobian_cost: float | None) -> np.ndarray:
        """In evaluations, when a jacobian costs so many, that of its point included.

        By default two for each of its 1 + k rows, beside that of its point: pulling back takes about twice as long.
        """
        factor = 1 + 2 * (1 + self.k) if jacobian_cost is None else jacobian_cost
        return evaluations * (1 + (factor - 1) * self.jacobians / self.batch)

    def at(self, evaluations: int) -> np.ndarray:
        """QD-score of every seed after so many evaluations."""
        return self.qd_score[:, np.searchsorted(self.evaluations, evaluations, side="right") - 1]

    def until(self, qd_score: float) -> np.ndarray:
        """Evaluations after which each seed has that score; infinite where it never has."""
        reached = self.qd_score >= qd_score
        return np.where(reached.any(axis=1), self.evaluations[reached.argmax(axis=1)], np.inf)

    def write(self, path: Path) -> None:
        content = {
            name: value.round(4).tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }
        durable.replace_file(path, json.dumps(content) + "\n")


def read(path: Path, asked: dict[str, Any]) -> Entry | None:
    """The entry in a file, if it is there; one of other settings is refused."""
    if not path.exists():
        return None
    found = load_json(path)
    names = {field.name for field in dataclasses.fields(Entry)}
    if not isinstance(found, dict) or set(found) != names:
        raise SettingsChangedError(f"{path} is no entry of a benchmark; give another --out")
    changed = [name for name in ASKED if found[name] != asked[name]]
    if changed:
        raise SettingsChangedError(
            f"{path} was run with other settings ({', '.join(changed)} differ); give another --out, or these settings"
        )
    arrays = {name: np.asarray(found[name], float) for name in ("evaluations", "qd_score", "coverage")}
    return Entry(**{**found, **arrays})
