"""The age and gender networks of dlib (Cydral Technology), both from a crop of the face.

A predicted age is the mean of 81 age bins weighted by their probabilities. The gender score is the log-odds of the
class that the network's makers called male: a classifier's habit, not a fact about anybody.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.generators.layers import area_means, convolution, convolution_shapes, resample
from dqd.types import pytree

ROWS, COLUMNS = (0.29, 0.87), (0.21, 0.79)  # of the frame: a face chip with a margin of 20 %, eyes and chin inside
MEANS, SCALE = (122.782, 117.001, 104.298), 256.0  # RGB bytes
AGES = np.array([0.25, *range(1, 81)], np.float32)
AGE_PIXELS, GENDER_PIXELS = 64, 32

# (name, out, in, kernel) in the order they run
AGE_CONVOLUTIONS = (
    ("stem", 64, 3, 7),
    ("blocks.0.first", 64, 64, 3),
    ("blocks.0.second", 64, 64, 3),
    ("blocks.1.first", 128, 64, 3),
    ("blocks.1.second", 128, 128, 3),
    ("blocks.2.first", 128, 128, 3),
    ("blocks.2.second", 128, 128, 3),
    ("blocks.3.first", 256, 128, 3),
    ("blocks.3.second", 256, 256, 3),
    ("blocks.4.first", 256, 256, 3),
    ("blocks.4.second", 256, 256, 3),
)
GENDER_CONVOLUTIONS = (("0", 32, 3, 3), ("1", 32, 32, 3), ("2", 64, 32, 3), ("3", 64, 64, 3))

Weights = dict[str, Any]


def age_shapes() -> dict[str, tuple[int, ...]]:
    return convolution_shapes(AGE_CONVOLUTIONS) | {"out.weight": (256, 81), "out.bias": (81,)}


def gender_shapes() -> dict[str, tuple[int, ...]]:
    dense = {"dense.weight": (4096, 16), "dense.bias": (16,), "out.weight": (16, 2), "out.bias": (2,)}
    return convolution_shapes(GENDER_CONVOLUTIONS) | dense


def age_logits(weights: Weights, chips: Array) -> Array:
    """(b, 81) of normalised chips (b, 3, 64, 64)."""
    x = jax.nn.relu(_conv(weights["stem"], jnp.moveaxis(chips, 1, -1), stride=2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")
    for block in weights["blocks"].values():
        x = _residual(block, x)
    return jnp.mean(x, axis=(1, 2)) @ weights["out"]["weight"] + weights["out"]["bias"]


def gender_logits(weights: Weights, chips: Array) -> Array:
    """(b, 2), female and male, of normalised chips (b, 3, 32, 32)."""
    x = jnp.moveaxis(chips, 1, -1)
    for layer in range(len(GENDER_CONVOLUTIONS)):
        x = jax.nn.relu(_conv(weights[str(layer)], x, padding=1))
        x = _halved(x) if layer % 2 else x
    x = jnp.moveaxis(x, -1, 1)  # the dense layer counts channel by channel
    x = jax.nn.relu(x.reshape(x.shape[0], -1) @ weights["dense"]["weight"] + weights["dense"]["bias"])
    return x @ weights["out"]["weight"] + weights["out"]["bias"]


def _conv(part: Weights, x: Array, stride: int = 1, padding: int = 0) -> Array:
    return convolution(x, part["weight"], stride, padding) + part["bias"]


def _residual(block: Weights, x: Array) -> Array:
    """Two convolutions beside a shortcut. Where channels grow, size halves; the smaller side is padded with zeros."""
    grows = block["first"]["weight"].shape[-1] != x.shape[-1]
    y = jax.nn.relu(_conv(block["first"], x, stride=2) if grows else _conv(block["first"], x, padding=1))
    y = _conv(block["second"], y, padding=1)
    if not grows:
        return jax.nn.relu(x + y)
    shortcut = _halved(x)
    size = tuple(max(a, b) for a, b in zip(shortcut.shape, y.shape, strict=True))
    return jax.nn.relu(_padded(shortcut, size) + _padded(y, size))


def _halved(x: Array) -> Array:
    """Means of 2 x 2; a last odd row or column is left out."""
    b, h, w, c = x.shape
    return jnp.mean(x[:, : h // 2 * 2, : w // 2 * 2].reshape(b, h // 2, 2, w // 2, 2, c), axis=(2, 4))


def _padded(x: Array, size: tuple[int, ...]) -> Array:
    return jnp.pad(x, [(0, wanted - got) for wanted, got in zip(size, x.shape, strict=True)])


def chips(images: Array, pixels: int) -> Array:
    """The face of each image (b, 3, h, w) in [-1, 1], cut out, shrunk and normalised as dlib does."""
    height, width = images.shape[2:]
    small = resample(images, area_means(height, pixels, *ROWS), area_means(width, pixels, *COLUMNS))
    return ((small + 1) * 127.5 - jnp.asarray(MEANS, images.dtype)[:, None, None]) / SCALE


@pytree
class AgeAndGender:
    """Predicted age in years, and the gender score in log-odds."""

    age: Weights
    gender: Weights
    names = ("age", "gender")

    def scores(self, images: Array) -> Array:
        age, gender = jax.tree.map(lambda x: x.astype(images.dtype), (self.age, self.gender))
        shares = jax.nn.softmax(age_logits(age, chips(images, AGE_PIXELS)), axis=1)
        logits = gender_logits(gender, chips(images, GENDER_PIXELS))
        return jnp.stack([shares @ jnp.asarray(AGES, images.dtype), logits[:, 1] - logits[:, 0]], axis=1)
