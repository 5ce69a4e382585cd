"""The published experiments by name: problems, algorithms, and the values behind the tables of Fontaine & Nikolaidis
(2021, and 2023 for what is annealed), Lee et al. (2024), Tjanaka et al. (2026)
and Hedayatian & Nikolaidis (2026).

    emitter = preset("arm", "cma-mega")
    settings("arm", "cma-mega")     # what it was made with

The values are those of the authors' released code. Where they differ from the paper's text, docs/algorithms.md says so.
The CMA family uses `rank_one="dqd2021"`, the authors' CMA-ES, on which the last printed digits depend; the library's
own default is the textbook's.

This module holds data and imports JAX only when something is made from it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dqd.inputs.names import known
from dqd.latent import presets as latent
from dqd.latent.presets import LATENT

if TYPE_CHECKING:
    from dqd.domains import Arm, LinearProjection
    from dqd.domains.problem import Problem
    from dqd.emitters import Emitter
    from dqd.tessellations.cvt import CVT
    from dqd.tessellations.grid import Grid


def _domains() -> Any:
    from dqd import domains

    return domains


DOMAINS: dict[str, Callable[..., LinearProjection | Arm]] = {
    "lp-sphere": lambda n=1000: _domains().LinearProjection("sphere", n),
    "lp-rastrigin": lambda n=1000: _domains().LinearProjection("rastrigin", n),
    "lp-plateau": lambda n=1000: _domains().LinearProjection("plateau", n),
    "arm": lambda n=1000: _domains().Arm(n),
}
# More measures than a grid can cut: Rastrigin by Hedayatian & Nikolaidis (2026), the sphere by Tjanaka et al. (2026).
MANY: dict[str, Callable[..., LinearProjection]] = {
    f"lp-{objective}-k{k}": lambda n=1000, objective=objective, k=k: _domains().LinearProjection(objective, n, k)
    for objective, counts in {"rastrigin": (4, 8, 16), "sphere": (10, 20)}.items()
    for k in counts
}
CELLS = 10_000  # of those, around centroids
PROBLEMS = {**DOMAINS, **MANY, **LATENT}
AUTO = "auto"  # in the place of a sigma: chosen by the cells of the grid


@dataclass(frozen=True)
class Algorithm:
    """A preset function of `dqd` and what it was called with; the linear projections share their values."""

    title: str  # as in the paper's tables
    function: str  # name in dqd.emitters
    common: Mapping[str, Any]
    lp: Mapping[str, Any]
    arm: Mapping[str, Any]

    def values(self, domain: str) -> dict[str, Any]:
        """All settings on one of the paper's domains."""
        return {**(self.arm if domain == "arm" else self.lp), **self.common}


_BATCH = {"batch_size": 36}  # evaluations per iteration
_FROM_ELITES = {**_BATCH, "initial_population": 100}
_RULES = {"selection": "mu", "restart": "no_improvement", "strategy": "cma-es", "rank_one": "dqd2021"}
_CMA = {**_BATCH, **_RULES, "ranking": "improvement"}
_CMA_MEGA = {**_CMA, "emitters": 1, "normalize": True, "keep_step_count": True}
_ASCENT = {"optimizer": "sgd"}
_MANY = {**_RULES, "batch_size": 540, "emitters": 15, "restart": "basic"}  # the papers of 2023, 2024 and 2026
_ANNEALING = {**_MANY, "ranking": "improvement", "annealing": 0.01, "minimum": 0.0}
_DENSITY = {**_MANY, "bandwidth": 0.05, "buffer": 10_000}
_DISCOUNT = {**_MANY, "minimum": 0.0, "maximum": 100.0, "empty": 100}
_OG = {"initial_population": 100, "independent": False, "stepped": None, **_BATCH}
_OG_INDEPENDENT = {"initial_population": 100, "independent": True, "stepped": 12}
# The published LP rows fit 12 re-evaluated + 12 stepped + 12 perturbed; the arm rows fit the released script, which
# perturbs twice as often: docs/algorithms.md, "Independent operators".
_LP_BUDGET, _ARM_BUDGET = {"batch_size": 36}, {"batch_size": 48}

_ISO_LP, _ISO_ARM = {"sigma": 0.5}, {"sigma": 0.1}
_LINE_LP, _LINE_ARM = {"sigma1": 0.5, "sigma2": 0.2}, {"sigma1": 0.1, "sigma2": 0.2}
_STEP_LP, _STEP_ARM = {"step": 0.5}, {"step": 100.0}

ALGORITHMS: dict[str, Algorithm] = {
    "cma-mega": Algorithm(
        "CMA-MEGA",
        "cma_mega",
        {**_CMA_MEGA, **_ASCENT},
        lp={"sigma": 10.0, "learning_rate": 1.0},
        arm={"sigma": 0.05, "learning_rate": 1.0},
    ),
    "cma-mega-adam": Algorithm(
        "CMA-MEGA (Adam)",
        "cma_mega_adam",
        _CMA_MEGA,
        lp={"sigma": 10.0, "learning_rate": 0.002},
        arm={"sigma": 0.05, "learning_rate": 0.002},
    ),
    "omg-mega": Algorithm(
        "OMG-MEGA", "omg_mega", {**_FROM_ELITES, "normalize": True}, lp={"sigma": 10.0}, arm={"sigma": 1.0}
    ),
    "omg-mega-unnormalized": Algorithm(
        "OMG-MEGA (unnormalized)",
        "omg_mega",
        {**_FROM_ELITES, "normalize": False},
        lp={"sigma": 0.5},
        arm={"sigma": 1e-4},
    ),
    "og-map-elites": Algorithm(
        "OG-MAP-Elites", "og_map_elites", _OG, lp={**_ISO_LP, **_STEP_LP}, arm={**_ISO_ARM, **_STEP_ARM}
    ),
    "og-map-elites-line": Algorithm(
        "OG-MAP-Elites (line)",
        "og_map_elites_line",
        _OG,
        lp={**_LINE_LP, **_STEP_LP},
        arm={**_LINE_ARM, **_STEP_ARM},
    ),
    "og-map-elites-independent": Algorithm(
        "OG-MAP-Elites†",
        "og_map_elites",
        _OG_INDEPENDENT,
        lp={**_ISO_LP, **_STEP_LP, **_LP_BUDGET},
        arm={**_ISO_ARM, **_STEP_ARM, **_ARM_BUDGET},
    ),
    "og-map-elites-line-independent": Algorithm(
        "OG-MAP-Elites (line)†",
        "og_map_elites_line",
        _OG_INDEPENDENT,
        lp={**_LINE_LP, **_STEP_LP, **_LP_BUDGET},
        arm={**_LINE_ARM, **_STEP_ARM, **_ARM_BUDGET},
    ),
    "cma-me": Algorithm(
        "CMA-ME",
        "cma_me",
        {**_CMA, "emitters": 1, "selection": "filter"},
        lp={"sigma": 0.5},
        arm={"sigma": 0.1},
    ),
    "cma-mae": Algorithm("CMA-MAE", "cma_mae", {**_ANNEALING}, lp={"sigma": 0.5}, arm={"sigma": 0.1}),
    "cma-maega": Algorithm(
        "CMA-MAEGA",
        "cma_maega",
        {**_CMA_MEGA, **_ASCENT, **_ANNEALING},
        lp={"sigma": 10.0, "learning_rate": 1.0},
        arm={"sigma": 0.05, "learning_rate": 1.0},
    ),
    "dds": Algorithm("DDS", "dds", _DENSITY, lp={"sigma": 1.5}, arm={"sigma": 0.5}),
    "dms": Algorithm(
        "DMS", "dms", _DISCOUNT, lp={"sigma": 0.5, "annealing": 0.1}, arm={"sigma": 0.2, "annealing": 0.001}
    ),
    # The same with gradients are not in these papers; their steps are those of CMA-MEGA.
    "dds-mega": Algorithm(
        "DDS-MEGA",
        "dds_mega",
        _DENSITY,
        lp={"sigma": 10.0, "learning_rate": 1.0},
        arm={"sigma": 0.05, "learning_rate": 1.0},
    ),
    "dms-mega": Algorithm(
        "DMS-MEGA",
        "dms_mega",
        _DISCOUNT,
        lp={"sigma": 10.0, "learning_rate": 1.0, "annealing": 0.1},
        arm={"sigma": 0.05, "learning_rate": 1.0, "annealing": 0.001},
    ),
    "squad": Algorithm(
        "SQUAD",
        "squad",
        {"batch_size": 128, "population": 1024, "neighbours": 16, "minimum": 0.0, "scale": None},
        lp={"learning_rate": 0.05, "bandwidth": 0.1**0.5, "initial_sigma": 5.12 / 3**0.5},  # as wide as U(-5.12, 5.12)
        arm={"learning_rate": 0.01, "bandwidth": 0.1**0.5, "initial_sigma": 0.1},  # not in the paper
    ),
    "map-elites": Algorithm("MAP-Elites", "map_elites", _FROM_ELITES, lp=_ISO_LP, arm=_ISO_ARM),
    "map-elites-line": Algorithm("MAP-Elites (line)", "map_elites_line", _FROM_ELITES, lp=_LINE_LP, arm=_LINE_ARM),
    # Not in the paper: algorithms without step sizes; and a baseline that draws what the others draw as their
    # initial population, again and again.
    "auto": Algorithm("Auto", "auto", _BATCH, lp={}, arm={}),
    "targeting": Algorithm("Targeting", "targeting", _BATCH, lp={}, arm={}),
    "random": Algorithm("Random sampling", "random_sampling", _BATCH, lp={"sigma": 1.0}, arm={"sigma": 1.0}),
}


def make_domain(domain: str, n: int = 1000) -> LinearProjection | Arm:
    """A problem of the papers with solutions of n numbers. It has `.grid(resolution)`."""
    return known("domain", domain, {**DOMAINS, **MANY})(n)


_one_at_a_time = threading.Lock()  # k-means keeps all processors busy


@functools.lru_cache(maxsize=8)
def _cells(domain: str, n: int, count: int) -> CVT:
    return MANY[domain](n).cells(count)


def make_cells(domain: str, n: int, resolution: int = 100, count: int = 0) -> Grid | CVT:
    """The cells of a problem: a grid, or `count` cells around centroids, which are computed once."""
    if not count:
        return make_domain(domain, n).grid(resolution)
    with _one_at_a_time:
        return _cells(domain, n, count)


def make_problem(domain: str, n: int | None = None, resolution: int | None = None, **options: Any) -> Problem[Any]:
    """Any problem with its grid, its start and its labels. Options are those of latent domains."""
    known("domain", domain, PROBLEMS)
    if domain in LATENT:
        made = latent.make_problem(domain, resolution=resolution, **options)
        if n not in (None, made.x0.size):
            raise ValueError(f"n: a solution of {domain} has {made.x0.size} numbers, got {n}")
        return made
    for name in options:
        raise ValueError(f"{name}: only latent domains ({', '.join(LATENT)}) have it, not {domain}")
    import jax.numpy as jnp

    from dqd.domains.problem import Problem

    plain = make_domain(domain, 1000 if n is None else n)
    count = CELLS if domain in MANY and resolution is None else 0
    cells = make_cells(domain, plain.n, 100 if resolution is None else resolution, count)
    axes = [f"measure {j}" for j in range(cells.num_measures)]
    axes = ["hand, x", "hand, y"] if domain == "arm" else axes
    return Problem(plain, cells, jnp.zeros(plain.n), domain, ("objective", *axes))


def settings(domain: str, algorithm: str) -> dict[str, Any]:
    """Every setting of a preset, by the name that `preset` and `--set` take."""
    known("domain", domain, PROBLEMS)
    row = known("algorithm", algorithm, ALGORITHMS)
    if domain in LATENT:
        return {**row.common, **known(f"algorithm for {domain}", algorithm, LATENT[domain].settings)}
    return row.values(domain)


def preset(domain: str, algorithm: str, **overrides: Any) -> Emitter:
    """The emitter of a published experiment; any of its settings may be given another value.

    >>> preset("lp-sphere", "map-elites", batch_size=72).batch_size
    72
    """
    values = settings(domain, algorithm)
    for name, value in overrides.items():
        known(f"setting of {algorithm}", name, values)
        values[name] = _same_kind(name, value, values[name])
    from dqd import emitters

    return getattr(emitters, ALGORITHMS[algorithm].function)(**values)


def _same_kind(name: str, value: Any, published: Any) -> Any:
    """Overrides may be words from a command line, where `normalize=no` must not count as true."""
    if value == AUTO:
        return None  # to be chosen; the preset function knows whether it can be
    if isinstance(published, bool):
        kind, fits = "true or false", isinstance(value, bool)
    elif isinstance(published, int):
        kind, fits = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    elif published is None:
        kind, fits = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    else:
        return value  # the preset function checks numbers and choices itself
    if not fits:
        raise TypeError(f"{name}: expected {kind}, got {value!r}")
    return value
