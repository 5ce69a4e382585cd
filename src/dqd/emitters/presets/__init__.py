"""The paper's algorithms as plain functions. `batch_size` is always the number of evaluations per iteration.

In the formulas e is an elite drawn uniformly from the archive, n the size of a solution, k the number of measures, f
the objective, m_j measure j, and lambda the samples of a generation. Costs are per iteration, beyond the evaluations.
"""

from dqd.emitters.presets.aiming import auto, targeting, usual
from dqd.emitters.presets.elites import (
    map_elites,
    map_elites_line,
    og_map_elites,
    og_map_elites_line,
    omg_mega,
    random_sampling,
)
from dqd.emitters.presets.evolving import cma_mae, cma_maega, cma_me, cma_mega, cma_mega_adam
from dqd.emitters.presets.pools import bandit
from dqd.emitters.presets.population import squad
from dqd.emitters.presets.rewarded import dds, dds_mega, dms, dms_mega

__all__ = [
    "auto",
    "bandit",
    "cma_mae",
    "cma_maega",
    "cma_me",
    "cma_mega",
    "cma_mega_adam",
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
    "squad",
    "targeting",
    "usual",
]
