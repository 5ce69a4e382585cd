"""Who takes part: algorithms by name, each as the searches of which its figures are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dqd.benchmark.function import Field, Function
from dqd.domains.survey import Ask, lead
from dqd.emitters import (
    Emitter,
    auto,
    cma_me,
    cma_mega,
    cma_mega_adam,
    map_elites,
    map_elites_line,
    omg_mega,
    targeting,
)
from dqd.search.scales import Scales
from dqd.search.search import Search
from dqd.types import Evaluation
from dqd.workers.padded import OnHost

SIGMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Contestant:
    """One emitter, or several of which the best counts, for every function and every number of evaluations."""

    title: str
    emitters: Callable[[], Sequence[Emitter]]


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


def sigmas(search: Search) -> list[float]:
    """The sigma of an emitter that has one."""
    strategy = getattr(search.emitter, "strategy", None)
    return [float(strategy.sigma)] if strategy is not None else []
