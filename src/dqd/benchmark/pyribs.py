"""CMA-MAE and CMA-MAEGA of pyribs: its archives and emitters in a loop on the host, one seed after the other.

All else is as this library's own have it: function, start, cells and evaluations, and of their emitter sigma, batch and
threshold. pyribs computes in float64; the function is evaluated in float32, as it is for all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dqd.benchmark.trials import Found, Run, Task
from dqd.emitters.emitter import threshold_of
from dqd.emitters.evolution import Evolution
from dqd.search.search import Search
from dqd.types import Evaluation
from dqd.workers.padded import OnHost

WORST = float(np.finfo(np.float32).min)  # in place of what is not finite, which pyribs refuses


def ready(task: Task) -> Run:
    """After an iteration that does not count, with which all is compiled."""
    run(replace(task, seeds=1, iterations=1))
    return run


def run(task: Task) -> Found:
    curves = [[_curve(task, search, seed) for seed in range(task.seeds)] for search in task.searches]
    score, coverage = np.moveaxis(np.array(curves), -1, 0)
    return score, coverage


def _curve(task: Task, search: Search, seed: int) -> list[tuple[float, float]]:
    """QD-score and coverage after every iteration."""
    trial = Trial(task, search, seed)
    with np.errstate(over="ignore", invalid="ignore"):  # far from x0, where single precision ends
        return [trial.step() for _ in range(task.iterations)]


class Trial:
    """The loop that a user of pyribs writes; its `Scheduler` would hand what is not finite to the archives."""

    def __init__(self, task: Task, search: Search, seed: int) -> None:
        from ribs.archives import GridArchive

        self.grid, self.function = task.function.grid, OnHost(task.field, None)
        ranges = list(zip(self.grid.lower, self.grid.upper, strict=True))
        cells = {"solution_dim": len(task.function.x0), "dims": self.grid.shape, "ranges": ranges, "seed": seed}
        rises = threshold_of(search.emitter, None)
        self.archive = GridArchive(**cells, learning_rate=rises.learning_rate, threshold_min=rises.minimum)
        self.results = GridArchive(**cells)  # the best of each cell
        self.emitter = _emitter(self.archive, search.emitter, task.function.x0, seed)

    def step(self) -> tuple[float, float]:
        """One iteration: QD-score and coverage, in percent, after it."""
        if hasattr(self.emitter, "ask_dqd"):
            theta = self.emitter.ask_dqd()
            found = self.function.evaluate_with_jacobian(np.asarray(theta, np.float32))
            self.emitter.tell_dqd(**self._added(theta, found), jacobian=np.nan_to_num(np.asarray(found.jacobian)))
        solutions = self.emitter.ask()
        self.emitter.tell(**self._added(solutions, self.function.evaluate(np.asarray(solutions, np.float32))))
        return float(self.results.stats.norm_qd_score), 100 * float(self.results.stats.coverage)

    def _added(self, solutions: np.ndarray, found: Evaluation) -> dict[str, Any]:
        """What the emitter is told of solutions, now that they are in both archives."""
        finite = np.isfinite(found.objective) & np.isfinite(found.measures).all(axis=1)
        objective = np.where(finite, found.objective, WORST)
        measures = np.clip(np.nan_to_num(found.measures), self.grid.lower, self.grid.upper)  # its own clip is of int32
        told = {"solution": solutions, "objective": objective, "measures": measures}
        if finite.any():
            self.results.add(**{name: rows[finite] for name, rows in told.items()})
        return {**told, "add_info": self.archive.add(**told)}


def _emitter(archive: Any, like: Any, x0: np.ndarray, seed: int) -> Any:
    """With pyribs' settings for CMA-MAE and CMA-MAEGA, where this library's emitter does not name them."""
    from ribs.emitters import EvolutionStrategyEmitter, GradientArborescenceEmitter

    own = {"x0": x0, "sigma0": float(like.strategy.sigma), "batch_size": like.batch_size, "seed": seed}
    rules = {"ranker": "imp", "selection_rule": "mu", "restart_rule": "basic"}
    if isinstance(like, Evolution):
        return EvolutionStrategyEmitter(archive, **own, **rules)
    climbing = {"lr": 1.0, "grad_opt": "gradient_ascent", "normalize_grad": True}
    return GradientArborescenceEmitter(archive, **own, **rules, **climbing)
