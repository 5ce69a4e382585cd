"""The published experiments by name: problems, algorithms, and the values behind the tables of Fontaine & Nikolaidis
(2021, and 2023 for what is annealed).

    emitter = preset("arm", "cma-mega")
    settings("arm", "cma-mega")     # what it was made with

The values are those of the authors' released code. Where they differ from the paper's text, docs/algorithms.md says so.
The CMA family uses `rank_one="dqd2021"`, the authors' CMA-ES, on which the last printed digits depend; the library's
own default is the textbook's.

This module holds data and imports JAX only when something is made from it.
"""

from __future__ import annotations

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


def _domains() -> Any:
    from dqd import domains

    return domains


DOMAINS: dict[str, Callable[..., LinearProjection | Arm]] = {
    "lp-sphere": lambda n=1000: _domains().LinearProjection("sphere", n),
    "lp-rastrigin": lambda n=1000: _domains().LinearProjection("rastrigin", n),
    "lp-plateau": lambda n=1000: _domains().LinearProjection("plateau", n),
    "arm": lambda n=1000: _domains().Arm(n),
}
PROBLEMS = {**DOMAINS, **LATENT}
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
_CMA = {**_BATCH, "rank_one": "dqd2021"}
_CMA_MEGA = {**_CMA, "normalize": True, "keep_step_count": True}
_ANNEALING = {**_CMA, "batch_size": 540, "emitters": 15, "annealing": 0.01, "minimum": 0.0}  # of the paper of 2023
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
        _CMA_MEGA,
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
        {**_CMA, "emitters": 1, "parents": "changed", "patient": False, "separable": False},
        lp={"sigma": 0.5},
        arm={"sigma": 0.1},
    ),
    "cma-mae": Algorithm(
        "CMA-MAE", "cma_mae", {**_ANNEALING, "separable": False}, lp={"sigma": 0.5}, arm={"sigma": 0.1}
    ),
    "cma-maega": Algorithm(
        "CMA-MAEGA",
        "cma_maega",
        {**_CMA_MEGA, **_ANNEALING},
        lp={"sigma": 10.0, "learning_rate": 1.0},
        arm={"sigma": 0.05, "learning_rate": 1.0},
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
    """A problem of the paper with solutions of n numbers. It has `.grid(resolution)`."""
    return known("domain", domain, DOMAINS)(n)


def make_problem(
    domain: str, n: int | None = None, resolution: int | None = None, cvt: int | None = None, **options: Any
) -> Problem[Any]:
    """Any problem with its cells, its start and its labels: a grid, or `cvt` cells around centroids.

    Options are those of latent domains.
    """
    known("domain", domain, PROBLEMS)
    if domain in LATENT:
        if cvt is not None:
            raise ValueError(f"cvt: the measures of {domain} are of different scales, which distances would mix")
        made = latent.make_problem(domain, resolution=resolution, **options)
        if n not in (None, made.x0.size):
            raise ValueError(f"n: a solution of {domain} has {made.x0.size} numbers, got {n}")
        return made
    for name in options:
        raise ValueError(f"{name}: only latent domains ({', '.join(LATENT)}) have it, not {domain}")
    import jax.numpy as jnp

    from dqd.domains.problem import Problem
    from dqd.tessellations.cvt import CVT

    plain = make_domain(domain, 1000 if n is None else n)
    axes = ("hand, x", "hand, y") if domain == "arm" else ("measure 0", "measure 1")
    grid = plain.grid(100 if resolution is None else resolution)
    cells = grid if cvt is None else CVT.uniform(grid.lower, grid.upper, cvt)
    return Problem(plain, cells, jnp.zeros(plain.n), domain, ("objective", *axes))


def settings(domain: str, algorithm: str) -> dict[str, Any]:
    """Every setting of a preset, by the name that `preset` and `--set` take."""
    known("domain", domain, PROBLEMS)
    row = known("algorithm", algorithm, ALGORITHMS)
    if domain in LATENT:
        return {**known(f"algorithm for {domain}", algorithm, LATENT[domain].settings), **row.common}
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
    elif isinstance(published, int) or published is None:
        kind, fits = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        return value  # the preset function checks numbers and choices itself
    if not fits:
        raise TypeError(f"{name}: expected {kind}, got {value!r}")
    return value
