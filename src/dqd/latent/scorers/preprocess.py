"""From a generator's image to what CLIP looks at.

`as_the_paper` is what the authors did: the raw image in about [-1, 1], resized by plain bilinear interpolation with the
corners aligned, no mean and no standard deviation. CLIP was trained on something else, `properly`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711])


def as_the_paper(images: Array, size: int) -> Array:
    """(b, c, h, w) -> (b, c, size, size), bilinear, corners on corners, nothing smoothed before."""
    step = (np.array(images.shape[2:]) - 1) / (size - 1)  # input pixels between two output pixels
    exact = images.astype(jnp.promote_types(images.dtype, jnp.float32))
    return jax.image.scale_and_translate(
        exact,
        (*images.shape[:2], size, size),
        (2, 3),
        jnp.asarray(1 / step, exact.dtype),
        jnp.asarray(0.5 - 0.5 / step, exact.dtype),  # scale_and_translate counts from the edges of pixels
        "linear",
        antialias=False,
    )


def properly(images: Array, size: int) -> Array:
    """As CLIP was trained: [0, 1], smoothed bicubic interpolation, then its mean and standard deviation."""
    shares = jnp.clip((images.astype(jnp.promote_types(images.dtype, jnp.float32)) + 1) / 2, 0, 1)
    small = jax.image.resize(shares, (*images.shape[:2], size, size), "cubic", antialias=True)
    return (small - MEAN[:, None, None].astype(small.dtype)) / DEVIATION[:, None, None].astype(small.dtype)


def as_siglip(images: Array, size: int) -> Array:
    """As SigLIP was trained: smoothed bicubic interpolation, numbers in [-1, 1]."""
    exact = jnp.clip(images.astype(jnp.promote_types(images.dtype, jnp.float32)), -1, 1)
    return jax.image.resize(exact, (*images.shape[:2], size, size), "cubic", antialias=True)
