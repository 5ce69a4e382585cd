"""From a generator's image to what CLIP looks at.

`as_the_paper` is what the authors did: the raw image in about [-1, 1], resized by plain bilinear interpolation with the
corners aligned, no mean and no standard deviation. CLIP was trained on something else, `properly`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711])


def as_the_paper(images: Array, size: int) -> Array:
    """(b, c, h, w) -> (b, c, size, size), bilinear, corners on corners, nothing smoothed before.

    Of a large image it looks at few pixels; these are picked.
    """
    exact = images.astype(jnp.promote_types(images.dtype, jnp.float32))
    rows = _between(exact, size)
    return jnp.swapaxes(_between(jnp.swapaxes(rows, 2, 3), size), 2, 3)


def _between(images: Array, size: int) -> Array:
    """(b, c, h, w) -> (b, c, size, w): between two rows each, the first and the last being those of the image."""
    height = images.shape[2]
    place = np.arange(size) * (height - 1) / max(size - 1, 1)
    above = np.clip(place.astype(int), 0, max(height - 2, 0))
    share = jnp.asarray((place - above)[:, None], images.dtype)
    pick: Any = {"unique_indices": size < height, "indices_are_sorted": True}
    first, second = (images.at[:, :, np.minimum(rows, height - 1)].get(**pick) for rows in (above, above + 1))
    return first * (1 - share) + second * share


def properly(images: Array, size: int) -> Array:
    """As CLIP was trained: [0, 1], smoothed bicubic interpolation, then its mean and standard deviation."""
    shares = jnp.clip((images.astype(jnp.promote_types(images.dtype, jnp.float32)) + 1) / 2, 0, 1)
    small = jax.image.resize(shares, (*images.shape[:2], size, size), "cubic", antialias=True)
    return (small - MEAN[:, None, None].astype(small.dtype)) / DEVIATION[:, None, None].astype(small.dtype)


def as_siglip(images: Array, size: int) -> Array:
    """As SigLIP was trained: smoothed bicubic interpolation, numbers in [-1, 1]."""
    exact = jnp.clip(images.astype(jnp.promote_types(images.dtype, jnp.float32)), -1, 1)
    return jax.image.resize(exact, (*images.shape[:2], size, size), "cubic", antialias=True)
