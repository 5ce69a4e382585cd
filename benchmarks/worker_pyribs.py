"""Contestants `pyribs` and `pyribs-float32`: its own emitters and scheduler, batched NumPy, analytic gradients.

float64 is pyribs' default; `pyribs-float32` is the same at the precision that the JAX contestants compute in.
"""

import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter, GradientArborescenceEmitter
from ribs.schedulers import Scheduler

from numpy_domains import Timed, domain_of
from protocol import serve
from settings import BATCH, LEARNING_RATE, Settings


class PyribsSearch:
    """The ask/tell loop that a pyribs user writes."""

    def __init__(self, contestant: str, settings: Settings, seed: int) -> None:
        self.domain = Timed(domain_of(settings.domain, settings.n))
        dtype = np.float32 if contestant == "pyribs-float32" else np.float64
        dims, ranges = (settings.side,) * 2, [(-settings.bound, settings.bound)] * 2
        self.archive = GridArchive(solution_dim=settings.n, dims=dims, ranges=ranges, dtype=dtype, seed=seed)
        emitter, self.step = self._choose(settings, seed)
        self.scheduler = Scheduler(self.archive, [emitter])

    def advance(self, iterations: int) -> None:
        for _ in range(iterations):
            self.step()

    def score(self) -> tuple[float, float]:
        stats = self.archive.stats
        return float(stats.norm_qd_score), 100 * float(stats.coverage)

    def _choose(self, settings: Settings, seed: int):
        shared = {"x0": np.zeros(settings.n), "sigma0": settings.sigma, "ranker": "2imp", "seed": seed}
        shared["restart_rule"] = "no_improvement"
        if settings.algorithm == "cma-me":
            emitter = EvolutionStrategyEmitter(self.archive, selection_rule="filter", batch_size=BATCH, **shared)
            return emitter, self._ask_and_tell
        shared |= {"lr": LEARNING_RATE, "grad_opt": "gradient_ascent", "normalize_grad": True}
        emitter = GradientArborescenceEmitter(self.archive, selection_rule="mu", batch_size=BATCH - 1, **shared)
        return emitter, self._cma_mega_step

    def _cma_mega_step(self) -> None:
        points = self.scheduler.ask_dqd()
        self.scheduler.tell_dqd(*self.domain.evaluate(points), self.domain.jacobian(points[0])[None])
        self._ask_and_tell()

    def _ask_and_tell(self) -> None:
        self.scheduler.tell(*self.domain.evaluate(self.scheduler.ask()))


if __name__ == "__main__":
    serve(PyribsSearch, ["ribs", "numpy", "numba"], granularity=1, warm_up=20)
