"""Emitters: they propose solutions and learn from what became of them."""

from dqd.emitters.combine import combine, replicate
from dqd.emitters.emitter import Emitter
from dqd.emitters.presets import (
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
    og_map_elites,
    og_map_elites_line,
    omg_mega,
    random_sampling,
    squad,
    targeting,
)

__all__ = [
    "Emitter",
    "auto",
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
]
