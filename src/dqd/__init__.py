"""dqd: quality diversity with gradients.

    result = dqd.illuminate(score, dqd.cma_mega(sigma=1.0), dqd.Grid(...), x0=x0, iterations=1000)

Names load on first use: `import dqd` alone does not import JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dqd.archives import DNS as DNS
    from dqd.archives import Archive as Archive
    from dqd.archives import Novelty as Novelty
    from dqd.archives import SlidingBoundaries as SlidingBoundaries
    from dqd.archives import Threshold as Threshold
    from dqd.archives import UnboundedGrid as UnboundedGrid
    from dqd.ask_tell import AskTell as AskTell
    from dqd.ask_tell_async import AskTellAsync as AskTellAsync
    from dqd.domains import Arm as Arm
    from dqd.domains import Domain as Domain
    from dqd.domains import LinearProjection as LinearProjection
    from dqd.domains import check_jacobian as check_jacobian
    from dqd.domains.probe import Probe as Probe
    from dqd.domains.probe import probe as probe
    from dqd.domains.problem import Problem as Problem
    from dqd.emitters import auto as auto
    from dqd.emitters import bandit as bandit
    from dqd.emitters import cma_mae as cma_mae
    from dqd.emitters import cma_maega as cma_maega
    from dqd.emitters import cma_me as cma_me
    from dqd.emitters import cma_mega as cma_mega
    from dqd.emitters import cma_mega_adam as cma_mega_adam
    from dqd.emitters import combine as combine
    from dqd.emitters import dds as dds
    from dqd.emitters import dds_mega as dds_mega
    from dqd.emitters import dms as dms
    from dqd.emitters import dms_mega as dms_mega
    from dqd.emitters import map_elites as map_elites
    from dqd.emitters import map_elites_line as map_elites_line
    from dqd.emitters import og_map_elites as og_map_elites
    from dqd.emitters import og_map_elites_line as og_map_elites_line
    from dqd.emitters import omg_mega as omg_mega
    from dqd.emitters import random_sampling as random_sampling
    from dqd.emitters import replicate as replicate
    from dqd.emitters import squad as squad
    from dqd.emitters import targeting as targeting
    from dqd.explorer.show import show as show
    from dqd.illumination import illuminate as illuminate
    from dqd.inputs.bounds import Bounds as Bounds
    from dqd.inputs.estimates import EvolutionStrategies as EvolutionStrategies
    from dqd.inputs.estimates import FiniteDifferences as FiniteDifferences
    from dqd.inputs.evaluator import Evaluator as Evaluator
    from dqd.inputs.evaluator import evaluator as evaluator
    from dqd.interop.torch import torch_evaluator as torch_evaluator
    from dqd.reevaluation import reevaluate as reevaluate
    from dqd.result import Result as Result
    from dqd.result import Results as Results
    from dqd.runners.sharded import Devices as Devices
    from dqd.runners.until import coverage as coverage
    from dqd.runners.until import evaluations as evaluations
    from dqd.runners.until import seconds as seconds
    from dqd.runners.until import stagnation as stagnation
    from dqd.safe import UnreadableError as UnreadableError
    from dqd.saved.archive import SavedArchive as SavedArchive
    from dqd.saved.load import from_pyribs as from_pyribs
    from dqd.saved.load import load as load
    from dqd.search.health import NonFiniteError as NonFiniteError
    from dqd.storage.folder import Folder as Folder
    from dqd.tessellations import CVT as CVT
    from dqd.tessellations import CategoricalGrid as CategoricalGrid
    from dqd.tessellations import Grid as Grid
    from dqd.tessellations import Tessellation as Tessellation
    from dqd.tessellations import UnevenGrid as UnevenGrid
    from dqd.types import Evaluation as Evaluation
    from dqd.workers.failures import EvaluationError as EvaluationError
    from dqd.workers.workers import Workers as Workers

_HOMES = {
    "dqd.archives": ("DNS", "Archive", "Novelty", "SlidingBoundaries", "Threshold", "UnboundedGrid"),
    "dqd.ask_tell": ("AskTell",),
    "dqd.ask_tell_async": ("AskTellAsync",),
    "dqd.domains": ("Arm", "Domain", "LinearProjection", "check_jacobian"),
    "dqd.inputs.bounds": ("Bounds",),
    "dqd.inputs.estimates": ("EvolutionStrategies", "FiniteDifferences"),
    "dqd.inputs.evaluator": ("Evaluator", "evaluator"),
    "dqd.interop.torch": ("torch_evaluator",),
    "dqd.domains.probe": ("Probe", "probe"),
    "dqd.domains.problem": ("Problem",),
    "dqd.emitters": (
        "auto",
        "bandit",
        "cma_mae",
        "cma_maega",
        "cma_me",
        "cma_mega",
        "cma_mega_adam",
        "combine",
        "dds",
        "dds_mega",
        "dms",
        "dms_mega",
        "map_elites",
        "map_elites_line",
        "og_map_elites",
        "og_map_elites_line",
        "omg_mega",
        "random_sampling",
        "replicate",
        "squad",
        "targeting",
    ),
    "dqd.explorer.show": ("show",),
    "dqd.saved.load": ("from_pyribs", "load"),
    "dqd.workers.failures": ("EvaluationError",),
    "dqd.workers.workers": ("Workers",),
    "dqd.reevaluation": ("reevaluate",),
    "dqd.result": ("Result", "Results"),
    "dqd.search.health": ("NonFiniteError",),
    "dqd.illumination": ("illuminate",),
    "dqd.runners.sharded": ("Devices",),
    "dqd.runners.until": ("coverage", "evaluations", "seconds", "stagnation"),
    "dqd.storage.folder": ("Folder",),
    "dqd.tessellations": ("CVT", "CategoricalGrid", "Grid", "Tessellation", "UnevenGrid"),
    "dqd.safe": ("UnreadableError",),
    "dqd.saved.archive": ("SavedArchive",),
    "dqd.types": ("Evaluation",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {  # what every emitter must keep; runs in other tools; what an archive is worth; figures; a run on disk
    "conformance": "dqd.conformance",
    "loggers": "dqd.loggers",
    "metrics": "dqd.metrics",
    "plot": "dqd.figures.plot",
    "record": "dqd.storage.record",
}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'dqd' has no attribute {name!r}{hint}", name=name, obj=importlib.import_module("dqd"))


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
