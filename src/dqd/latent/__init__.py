"""Latent space illumination: search the latent space of an image generator for a whole map of images, good by one score
and different by others (Fontaine & Nikolaidis 2021).

A *space* turns solutions into latents, a *generator* latents into images, *scorers* images into numbers with names. A
`LatentDomain` is made of the three and is a domain like any other.

Names load on first use: the names of the problems (`presets`) are known without JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqd.domains.problem import Problem as Problem
    from dqd.latent.cutouts import Cutouts as Cutouts
    from dqd.latent.domain import Generator as Generator
    from dqd.latent.domain import LatentDomain as LatentDomain
    from dqd.latent.domain import Scorer as Scorer
    from dqd.latent.domain import by_device as by_device
    from dqd.latent.judgement import reevaluate as reevaluate
    from dqd.latent.judgement import with_judges as with_judges
    from dqd.latent.problems.own import problem as problem
    from dqd.latent.spaces import Extended as Extended
    from dqd.latent.spaces import Identity as Identity
    from dqd.latent.spaces import Mapped as Mapped
    from dqd.latent.spaces import Space as Space
    from dqd.latent.spaces import Sphere as Sphere
    from dqd.latent.spaces import Whitened as Whitened
    from dqd.latent.torch_models import TorchGenerator as TorchGenerator
    from dqd.latent.torch_models import TorchScorer as TorchScorer
    from dqd.latent.views import Views as Views
    from dqd.latent.witness import Judge as Judge
    from dqd.latent.witness import held_out as held_out

_HOMES = {
    "dqd.domains.problem": ("Problem",),
    "dqd.latent.cutouts": ("Cutouts",),
    "dqd.latent.domain": ("Generator", "LatentDomain", "Scorer", "by_device"),
    "dqd.latent.torch_models": ("TorchGenerator", "TorchScorer"),
    "dqd.latent.views": ("Views",),
    "dqd.latent.witness": ("Judge", "held_out"),
    "dqd.latent.judgement": ("reevaluate", "with_judges"),
    "dqd.latent.problems.own": ("problem",),
    "dqd.latent.spaces": ("Extended", "Identity", "Mapped", "Space", "Sphere", "Whitened"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'dqd.latent' has no attribute {name!r}")
