"""Views: an image is judged as the mean of several looks at it, all of which show the same thing.

What a judge says of a face should not depend on which way it looks, on a few pixels of the frame, on a little noise or
on the colour of the light. A pattern that deceives a network in one look seldom does so in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from dqd.inputs.names import check_known
from dqd.latent.domain import Scorer
from dqd.types import pytree, static

MARGIN = 0.04  # of the frame that a crop leaves out
NOISE = 0.05  # standard deviation, of a range of 2


def mirrored(images: Array) -> Array:
    return images[..., ::-1]


def cropped(images: Array) -> Array:
    """Without a strip at the top and at the left; `Views` also looks at the other corner."""
    top, left = (round(MARGIN * size) for size in images.shape[2:])
    return images[:, :, top:, left:]


def cropped_otherwise(images: Array) -> Array:
    top, left = (round(MARGIN * size) for size in images.shape[2:])
    return images[:, :, : images.shape[2] - top, : images.shape[3] - left]


def noisy(images: Array) -> Array:
    """The same noise for every image."""
    return images + NOISE * jax.random.normal(jax.random.key(0), images.shape[1:], images.dtype)


def balanced(images: Array) -> Array:
    """Grey world: every channel is as bright on average as all of them, whatever the colour of the light."""
    shares = (images + 1) / 2
    means = jnp.mean(shares, axis=(2, 3), keepdims=True)
    return 2 * jnp.clip(shares * jnp.mean(means, axis=1, keepdims=True) / (means + 1e-3), 0, 1) - 1


VIEWS: dict[str, tuple[Callable[[Array], Array], ...]] = {
    "flip": (mirrored,),
    "crop": (cropped, cropped_otherwise),
    "noise": (noisy,),
    "balance": (balanced,),
}


@pytree
class Views:
    """The mean of a scorer over an image as it is and some views of it; a pass for each.

    Args:
        scorer: whose scores are averaged.
        views: "flip", "crop" (two of them), "noise", "balance" (of white).

        >>> from dqd.latent.problems.digits import Strokes
        >>> lean = jnp.eye(28)[None, None] * 2 - 1
        >>> Views(Strokes(), ("flip",)).scores(lean)[0, 1].round(3).tolist()  # slant, once to each side
        0.0
    """

    scorer: Scorer
    views: tuple[str, ...] = static()

    def __post_init__(self) -> None:
        for name in self.views:
            check_known("view", name, VIEWS)

    @property
    def names(self) -> tuple[str, ...]:
        return self.scorer.names

    def scores(self, images: Array) -> Array:
        looks = [look for name in self.views for look in VIEWS[name]]
        every = [self.scorer.scores(images), *(self.scorer.scores(look(images)) for look in looks)]
        return sum(every[1:], start=every[0]) / len(every)


def seen_by(scorers: Sequence[Scorer], views: Sequence[str]) -> tuple[Scorer, ...]:
    """Scorers that look at these views, too."""
    return tuple(Views(scorer, tuple(views)) for scorer in scorers) if views else tuple(scorers)
