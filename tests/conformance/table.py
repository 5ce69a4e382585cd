"""The table: one row per emitter. What every row must keep is in `dqd.conformance`.

A new emitter is one row in EMITTERS.
"""

import numpy as np

import dqd
from dqd.conformance import searching
from dqd.conformance.problems import PROBLEMS as PROBLEMS
from dqd.conformance.problems import RESOLUTION as RESOLUTION
from dqd.conformance.problems import SPHERE as SPHERE
from dqd.conformance.problems import N as N
from dqd.conformance.problems import evaluate as evaluate
from dqd.conformance.problems import evaluate_with_jacobian as evaluate_with_jacobian
from dqd.conformance.problems import problem as problem
from dqd.conformance.problems import start as start
from dqd.conformance.same import assert_same as assert_same
from dqd.conformance.same import copied as copied
from dqd.conformance.same import meaning as meaning
from dqd.conformance.searching import CHUNK as CHUNK
from dqd.conformance.searching import ITERATIONS as ITERATIONS
from dqd.conformance.searching import play as play
from dqd.conformance.searching import played as played
from dqd.conformance.searching import quick_to_compile as quick_to_compile
from dqd.emitters.share import Shared
from dqd.emitters.targeting import Targeting

FEW = {"initial_population": 36}
NONE = {"initial_population": 0}  # spares a compilation; the archive is empty at first
PAIR = {"batch_size": 26, "emitters": 2}
# Name -> factory; its argument scales every float of the emitter.
EMITTERS = {
    "random_sampling": lambda s=1.0: dqd.random_sampling(1.0 * s, batch_size=12),
    "map_elites": lambda s=1.0: dqd.map_elites(0.5 * s, batch_size=12, **FEW),
    "map_elites_line": lambda s=1.0: dqd.map_elites_line(0.5 * s, 0.2 * s, batch_size=12, **NONE),
    "cma_me": lambda s=1.0: dqd.cma_me(0.5 * s, batch_size=12),
    "sep_cma_me": lambda s=1.0: dqd.cma_me(0.5 * s, batch_size=12, strategy="sep-cma-es"),
    "lm_ma_me": lambda s=1.0: dqd.cma_me(0.5 * s, batch_size=12, strategy="lm-ma-es"),
    "openai_me": lambda s=1.0: dqd.cma_me(0.5 * s, batch_size=12, strategy="openai-es"),
    "xnes_mega": lambda s=1.0: dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13, strategy="xnes"),
    "cma_mae": lambda s=1.0: dqd.cma_mae(0.5 * s, 0.1 * s, -5.0 * s, batch_size=24, emitters=2),
    "cma_maega": lambda s=1.0: dqd.cma_maega(1.0 * s, 0.9 * s, annealing=0.1 * s, minimum=-5.0 * s, **PAIR),
    "dds": lambda s=1.0: dqd.dds(0.5 * s, 0.05 * s, batch_size=24, emitters=2, buffer=50),
    "dds_mega": lambda s=1.0: dqd.dds_mega(1.0 * s, 0.05 * s, 0.9 * s, buffer=50, **PAIR),
    "dms": lambda s=1.0: dqd.dms(2.0 * s, 0.1 * s, -5.0 * s, 90.0 * s, batch_size=24, emitters=2, restart=7, empty=8),
    "dms_mega": lambda s=1.0: dqd.dms_mega(1.0 * s, 0.1 * s, -5.0 * s, 90.0 * s, 0.9 * s, empty=8, **PAIR),
    "squad": lambda s=1.0: dqd.squad(
        0.1 * s, 1.0 * s, minimum=-5.0 * s, scale=0.1 * s, initial_sigma=1.0 * s, population=24, batch_size=24
    ),
    "og_map_elites": lambda s=1.0: dqd.og_map_elites(0.5 * s, 0.1 * s, batch_size=24, **NONE),
    "og_map_elites_line": lambda s=1.0: dqd.og_map_elites_line(0.5 * s, 0.2 * s, 0.1 * s, batch_size=24, **NONE),
    "og_independent": lambda s=1.0: dqd.og_map_elites(
        0.5 * s, 0.1 * s, independent=True, batch_size=48, stepped=12, **NONE
    ),
    "og_line_independent": lambda s=1.0: dqd.og_map_elites_line(0.5 * s, 0.2 * s, 0.1 * s, independent=True, **NONE),
    "omg_mega": lambda s=1.0: dqd.omg_mega(1.0 * s, batch_size=24, **FEW),
    "omg_mega_unnormalized": lambda s=1.0: dqd.omg_mega(0.1 * s, normalize=False, batch_size=24, **NONE),
    "cma_mega": lambda s=1.0: dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13),
    "cma_mega_adam": lambda s=1.0: dqd.cma_mega_adam(1.0 * s, 0.1 * s, batch_size=13),
    "targeting": lambda s=1.0: Targeting(4.0 * s, branches=12),
    "replicate_targeting": lambda s=1.0: dqd.replicate(Targeting(4.0 * s, branches=12), 2),
    "auto": lambda s=1.0: Shared(
        dqd.combine(Targeting(4.0 * s, branches=12), dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13)), ("one", "other")
    ),
    "replicate_cma_mega": lambda s=1.0: dqd.replicate(dqd.cma_mega(1.0 * s, batch_size=13), 3),
    "replicate_cma_me": lambda s=1.0: dqd.replicate(dqd.cma_me(0.5 * s, batch_size=12), 2),
    "bandit": lambda s=1.0: dqd.bandit(
        *(dqd.cma_me(0.5 * s, batch_size=6), dqd.map_elites(0.5 * s, batch_size=6, **NONE)),
        *(dqd.cma_me(2.0 * s, batch_size=6), dqd.random_sampling(1.0 * s, batch_size=6)),
        active=2,
        zeta=0.1 * s,
    ),
    "combine": lambda s=1.0: dqd.combine(
        dqd.cma_mega(1.0 * s, 0.9 * s, batch_size=13), dqd.map_elites(0.5 * s, batch_size=12, **FEW)
    ),
}


def search(name, *arguments, **options):
    return searching.search(EMITTERS[name], *arguments, **options)


def found(name, *arguments, **options):
    return searching.found(EMITTERS[name], *arguments, **options)


def asking(name, *arguments, **options):
    return searching.asking(EMITTERS[name], *arguments, **options)


class Tensor:
    """Just enough of a torch tensor that lives on a device and, while attached, requires a gradient."""

    def __init__(self, values, attached=True):
        self.values, self.attached = values, attached

    def detach(self):
        return Tensor(self.values, attached=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return np.array(self.values, dtype)
