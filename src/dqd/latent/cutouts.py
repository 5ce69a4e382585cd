"""Cut-outs: an image is judged by several random crops of it, averaged, as in CLIPDraw (Frans et al. 2021).

A pattern that deceives a scorer rarely survives being moved and scaled, a picture does. For scorers that judge any part
of an image, such as a text prompt; not for those that expect a face in its place.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dqd.types import pytree, static


@pytree
class Cutouts:
    """`count` crops of each image, of its own aspect, resized to size x size pixels; a score is the mean over them.

    A crop's share of the area is drawn uniformly, a ~ U(smallest, largest), it is sqrt(a) times as high and as wide as
    the image, and lies anywhere in it with equal chance. Scorers look at `count` times as many images, the generator
    paints as many as before.

    Args:
        count: crops per image.
        size: pixels of a crop's side; what the scorers take, such as 224 for CLIP.
        smallest, largest: shares of the image's area, in (0, 1].

        >>> crops = Cutouts(count=3, size=4).crops(jnp.ones((2, 1, 8, 8)), jax.random.split(jax.random.key(0), 2))
        >>> crops.shape
        (6, 1, 4, 4)
    """

    count: int = static(default=8)
    size: int = static(default=224)
    smallest: float = 0.7
    largest: float = 0.9

    def __post_init__(self) -> None:
        if self.count < 1 or self.size < 1:
            raise ValueError(f"Cutouts: expected at least 1 crop of 1 pixel, got {self.count} of {self.size}")
        if not 0 < self.smallest <= self.largest <= 1:
            raise ValueError(f"Cutouts: expected 0 < smallest <= largest <= 1, got {self.smallest}, {self.largest}")

    def crops(self, images: Array, keys: Array) -> Array:
        """(b, c, h, w) and a key for each image -> (b * count, c, size, size), the crops of an image together."""
        place = jax.vmap(lambda key: jax.random.uniform(key, (self.count, 3)))(keys)  # (b, count, 3)
        crops = jax.vmap(jax.vmap(self._crop, in_axes=(None, 0)))(images, place.astype(images.dtype))
        return crops.reshape(-1, *crops.shape[2:])

    def mean(self, scores: Array) -> Array:
        """Scores of the crops (b * count, s) -> (b, s)."""
        return jnp.mean(scores.reshape(-1, self.count, scores.shape[-1]), axis=1)

    def _crop(self, image: Array, place: Array) -> Array:
        """One crop of (c, h, w). `place` is (area, top, left), each in [0, 1)."""
        extent = jnp.asarray(image.shape[1:], image.dtype)
        side = jnp.sqrt(self.smallest + (self.largest - self.smallest) * place[0]) * extent  # (2,) pixels
        corner = place[1:] * (extent - side)
        scale = self.size / side
        shape = (image.shape[0], self.size, self.size)
        return jax.image.scale_and_translate(image, shape, (1, 2), scale, -corner * scale, "linear", antialias=True)
