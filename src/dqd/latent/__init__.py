"""Latent space illumination: search the latent space of an image generator for a whole map of images, good by one score
and different by others (Fontaine & Nikolaidis 2021).

A *space* turns solutions into latents, a *generator* latents into images, *scorers* images into numbers with names. A
`LatentDomain` is made of the three and is a domain like any other.
"""

from dqd.domains.problem import Problem
from dqd.latent.cutouts import Cutouts
from dqd.latent.domain import Generator, LatentDomain, Scorer, by_device
from dqd.latent.reevaluate import reevaluate, with_judges
from dqd.latent.spaces import Extended, Identity, Mapped, Space, Sphere, Whitened

__all__ = [
    "Cutouts",
    "Extended",
    "Generator",
    "Identity",
    "LatentDomain",
    "Mapped",
    "Problem",
    "Scorer",
    "Space",
    "Sphere",
    "Whitened",
    "by_device",
    "reevaluate",
    "with_judges",
]
