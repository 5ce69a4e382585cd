"""Who takes part: algorithms by name, each as the searches of which its figures are made."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.archives import DNS, Threshold
from dqd.archives.archive import Archive
from dqd.archives.competition import CellsLike
from dqd.benchmark import pyribs
from dqd.benchmark.function import Field, Function
from dqd.benchmark.trials import Ready, compiled
from dqd.domains.survey import Ask, lead
from dqd.emitters import (
    Emitter,
    auto,
    cma_mae,
    cma_maega,
    cma_me,
    cma_mega,
    cma_mega_adam,
    dds,
    dds_mega,
    dms,
    dms_mega,
    map_elites,
    map_elites_line,
    og_map_elites_line,
    omg_mega,
    squad,
    targeting,
)
from dqd.emitters.emitter import threshold_of
from dqd.loggers.needed import needed
from dqd.search.scales import Scales
from dqd.search.search import Search
from dqd.types import Evaluation
from dqd.workers.padded import OnHost

SIGMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
STEPS = ((0.1, 0.01), (0.1, 0.1), (0.1, 1.0), (0.3, 0.01), (0.3, 0.1), (0.3, 1.0))  # sigma1, and along the gradient
ROOM = 1024  # elites of DNS, as Hedayatian & Nikolaidis (2026) have it
ONE: dict[str, Any] = {"batch_size": 36, "emitters": 1}  # in place of 15, which need more than these budgets to learn


@dataclass(frozen=True)
class Contestant:
    """One emitter, or several of which the best counts, for every function and every number of evaluations."""

    title: str
    emitters: Callable[[], Sequence[Emitter]]
    cells: Callable[[Function], CellsLike] | None = None  # in which it searches, if not in the grid
    ready: Ready = compiled  # how it is run
    package: str = ""  # that it needs

    def check(self) -> None:
        """That its package can be imported."""
        if self.package:
            with needed(self.title, self.package):
                importlib.import_module(self.package)


def _stepping() -> list[Emitter]:
    """Elites by turns varied along lines and moved up their gradients, with six pairs of lengths."""
    return [og_map_elites_line(sigma1, 0.2, step, independent=True) for sigma1, step in STEPS]


def _dominated(function: Function) -> CellsLike:
    return DNS(len(function.lower), ROOM)


CONTESTANTS: Mapping[str, Contestant] = {
    "auto": Contestant("Auto", lambda: [auto()]),
    "targeting": Contestant("Targeting", lambda: [targeting()]),
    "cma-mega": Contestant("CMA-MEGA", lambda: [cma_mega()]),
    "cma-mega-tuned": Contestant("CMA-MEGA, best of six sigmas", lambda: [cma_mega(sigma) for sigma in SIGMAS]),
    "cma-mega-adam": Contestant("CMA-MEGA (Adam)", lambda: [cma_mega_adam()]),
    "omg-mega": Contestant("OMG-MEGA", lambda: [omg_mega()]),
    "cma-me": Contestant("CMA-ME", lambda: [cma_me()]),
    "map-elites-line": Contestant("MAP-Elites (line)", lambda: [map_elites_line()]),
    "map-elites": Contestant("MAP-Elites", lambda: [map_elites()]),
    "cma-mae": Contestant("CMA-MAE", lambda: [cma_mae(**ONE)]),
    "cma-maega": Contestant("CMA-MAEGA", lambda: [cma_maega(**ONE)]),
    "dds": Contestant("DDS", lambda: [dds(**ONE)]),
    "dds-mega": Contestant("DDS-MEGA", lambda: [dds_mega(**ONE)]),
    "dms": Contestant("DMS", lambda: [dms(**ONE)]),
    "dms-mega": Contestant("DMS-MEGA", lambda: [dms_mega(**ONE)]),
    "squad": Contestant("SQUAD", lambda: [squad()]),
    "dns": Contestant("DNS", lambda: [map_elites_line()], _dominated),
    "gradient-map-elites": Contestant("Gradient MAP-Elites, best of six", _stepping),
    "dns-g": Contestant("DNS-G, best of six", _stepping, _dominated),
    "pyribs-cma-mae": Contestant("CMA-MAE of pyribs", lambda: [cma_mae(**ONE)], None, pyribs.ready, "ribs"),
    "pyribs-cma-maega": Contestant("CMA-MAEGA of pyribs", lambda: [cma_maega(**ONE)], None, pyribs.ready, "ribs"),
}


def searches(name: str, function: Function, field: Field) -> list[Search]:
    """With every sigma that was left out chosen by a look around the start, which is not counted."""
    return [_scaled(Search(emitter), function, field) for emitter in CONTESTANTS[name].emitters()]


def _scaled(search: Search, function: Function, field: Field) -> Search:
    scales = Scales.of(search, None)
    if not scales.names:
        return search

    look = OnHost(field, None)

    def evaluate(ask: Ask) -> Evaluation:
        return look.evaluate_with_jacobian(ask.solutions) if ask.jacobian else look.evaluate(ask.solutions)

    return scales.chosen(lead(scales.choosing(np.asarray(function.x0, np.float32), function.grid), evaluate))


def archive(name: str, function: Function, search: Search) -> Archive:
    """Empty. Where it is not MAP-Elites', what is found is kept beside it, too, in the grid that all are judged by."""
    cells, threshold = CONTESTANTS[name].cells, threshold_of(search.emitter, None)
    beside = function.grid if cells is not None or threshold != Threshold() else None
    own = function.grid if cells is None else cells(function)
    return Archive.empty(own, len(function.x0), threshold=threshold, results=beside)


def sigmas(search: Search) -> list[float]:
    """The sigma of an emitter that has one."""
    strategy = getattr(search.emitter, "strategy", None)
    return [float(strategy.sigma)] if strategy is not None else []
