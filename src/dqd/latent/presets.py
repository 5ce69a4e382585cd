"""The latent domains by name: where they are built, which options they take, and the settings of the algorithms there.

This module holds data and imports a domain only when it is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dqd.inputs.names import check_known, known

if TYPE_CHECKING:
    from dqd.domains.problem import Problem
    from dqd.latent import LatentDomain

ITERATIONS = 10_000  # of every published trial
ALGORITHM = "cma-mega-adam"  # the paper's best in latent spaces

Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Latent:
    """A builder `module.build(**options) -> Problem`, and what suits its space."""

    module: str
    options: tuple[str, ...]
    settings: Settings  # by algorithm
    gpu: int = ITERATIONS  # iterations unless told otherwise
    cpu: int = ITERATIONS


_ALONE = {"emitters": 1, "batch_size": 36}


def _settings(
    iso: float, line: tuple[float, float], cma_me: float, cma_mega: tuple[float, float], adam: tuple[float, float]
) -> Settings:
    """Standard deviations, and the learning rates of both CMA-MEGA."""
    return {
        "cma-mega": {"sigma": cma_mega[0], "learning_rate": cma_mega[1]},
        "cma-mega-adam": {"sigma": adam[0], "learning_rate": adam[1]},
        "cma-me": {"sigma": cma_me},
        # One emitter, like the others: an image costs more than all of an emitter does.
        "cma-mae": {"sigma": cma_me, **_ALONE},
        "cma-maega": {"sigma": adam[0], "learning_rate": adam[1], "optimizer": "adam", **_ALONE},
        "map-elites": {"sigma": iso},
        "map-elites-line": {"sigma1": line[0], "sigma2": line[1]},
        "auto": {},
        "targeting": {},
        "random": {"sigma": 1.0},
    }


_COMMON = ("objective", "measures", "space", "resolution", "judges")
LATENT: dict[str, Latent] = {
    # Steps are in standard deviations of the generator's own latents.
    "lsi-digits": Latent(
        "dqd.latent.problems.digits",
        (*_COMMON, "weights"),
        _settings(iso=0.2, line=(0.1, 0.5), cma_me=0.5, cma_mega=(0.5, 1.0), adam=(0.5, 0.1)),
        gpu=2_000,
        cpu=2_000,
    ),
    "lsi-faces": Latent(
        "dqd.latent.problems.faces",
        (*_COMMON, "weights", "preview", "dtype", "views"),
        # In standard deviations too, of 64 components: a random face lies 8 from the mean one, steps of 1 are seen.
        _settings(iso=0.3, line=(0.2, 0.5), cma_me=0.5, cma_mega=(1.0, 1.0), adam=(1.0, 0.05)),
        cpu=50,
    ),
    # Latents of anybody's generator, in standard deviations, too.
    "lsi-own": Latent(
        "dqd.latent.problems.own",
        (*_COMMON, "generator", "weights"),
        _settings(iso=0.3, line=(0.2, 0.5), cma_me=0.5, cma_mega=(0.5, 1.0), adam=(0.5, 0.05)),
        gpu=1_000,
        cpu=200,
    ),
    # Those of the authors' released code, in W.
    "lsi-stylegan": Latent(
        "dqd.latent.problems.stylegan_clip",
        (*_COMMON, "weights", "prompts", "fresh_noise", "proper_preprocessing", "text_score", "dtype"),
        _settings(iso=0.2, line=(0.1, 0.2), cma_me=0.02, cma_mega=(0.002, 1.0), adam=(0.002, 0.002)),
    ),
}


def make_problem(
    domain: str,
    *,
    images: int | None = None,
    norm_penalty: float | None = None,
    cutouts: int | None = None,
    hold: Mapping[str, tuple[float, float]] | None = None,
    **options: Any,
) -> Problem[LatentDomain]:
    """A latent domain, built with those options that are not None.

    `images` (per pass), `norm_penalty`, `cutouts` (crops per image) and `hold` (scores within ranges) go to any.
    """
    row = known("domain", domain, LATENT)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        check_known(f"option of {domain}", name, row.options)
    from dqd.latent import Cutouts, with_judges

    problem = importlib.import_module(row.module).build(**given)
    crops = None if cutouts is None else Cutouts(cutouts, size=min(224, *problem.domain.image_shape))
    common = {"images": images, "norm_penalty": norm_penalty, "cutouts": crops, "hold": hold}
    changes: dict[str, Any] = {name: value for name, value in common.items() if value is not None}
    final = None if problem.final is None else replace(problem.final, **changes)
    return with_judges(replace(problem, domain=replace(problem.domain, **changes), final=final))


def iterations(domain: str) -> int:
    """How long to search a domain on the device at hand, unless told otherwise."""
    from dqd.latent import by_device

    row = LATENT.get(domain)
    return ITERATIONS if row is None else by_device(cpu=row.cpu, gpu=row.gpu)
