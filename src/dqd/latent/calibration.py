"""Judges that measure in units of their own, brought to those that were searched.

Cosines of two text-image models, or log-odds of two classifiers, cannot be compared as they are. Over random images of
the generator both vary; a judge is rescaled so that its mean and spread there are those of the searched score.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.domain import LatentDomain, Scorer
from dqd.latent.terms import unsigned
from dqd.latent.witness import Judge
from dqd.types import pytree

RANDOM = 32  # images


@pytree
class Rescaled:
    """scale * score + offset, each (number of scores,)."""

    scorer: Any
    scale: Array
    offset: Array

    @property
    def names(self) -> tuple[str, ...]:
        return self.scorer.names

    def scores(self, images: Array) -> Array:
        return self.scale * self.scorer.scores(images) + self.offset


def calibrated(name: str, scorer: Scorer, domain: LatentDomain, latents: Array) -> Judge:
    """A judge in the units of a domain, by images of some latents, such as random ones.

    Args:
        name: of the judge.
        scorer: has scores of the names that the domain searches by.
        domain: what is searched.
        latents: (m, *latent_shape), some dozens. The judge agrees within one standard deviation of the searched score
            over their images.
    """
    wanted = set(unsigned((domain.objective, *domain.measures))) & set(scorer.names)
    theirs, ours, pieces = [], [], range(0, len(latents), domain.images)
    for part in (latents[start : start + domain.images] for start in pieces):
        images = _images(domain.generator, part)
        theirs.append(np.asarray(_scores(scorer, images)))
        ours.append({n: column for each in domain.scorers for n, column in _columns(each, images, wanted).items()})
    searched = {n: np.concatenate([part[n] for part in ours]) for n in wanted}
    scale, offset = np.ones(len(scorer.names), np.float32), np.zeros(len(scorer.names), np.float32)
    tolerance = {}
    for j, n in enumerate(scorer.names):
        if n in wanted:
            (mean, spread), (other, width) = _spread(searched[n]), _spread(np.concatenate(theirs)[:, j])
            scale[j], tolerance[n] = spread / max(width, 1e-9), max(spread, 1e-9)
            offset[j] = mean - scale[j] * other
    return Judge(name, Rescaled(scorer, jnp.asarray(scale), jnp.asarray(offset)), tolerance)


def _columns(scorer: Any, images: Array, wanted: set[str]) -> dict[str, np.ndarray]:
    if not wanted & set(scorer.names):
        return {}
    return dict(zip(scorer.names, np.asarray(_scores(scorer, images)).T, strict=True))


def _spread(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of what is finite."""
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        raise ValueError("calibration: hardly any score of random images is finite; choose another kind of score")
    return float(np.mean(finite)), float(np.std(finite, ddof=1))


_images = jax.jit(lambda generator, latents: generator.images(latents, None))
_scores = jax.jit(lambda scorer, images: scorer.scores(images))
