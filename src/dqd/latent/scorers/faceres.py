"""`faceres`: a MobileNet (Howard et al. 2017) that guesses ages, of the npm package @vladmandic/human.

It learnt from other pictures than dlib's network and has other weaknesses: a face that deceives the one rarely deceives
the other. So it is a held-out judge of ages. What it sees before it guesses describes a face, and tells faces apart.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.generators.layers import area_means, convolution, depthwise, pointwise, resample
from dqd.latent.scorers.age_gender import COLUMNS, ROWS
from dqd.types import matmul, pytree, static

PIXELS = 224
CHANNELS = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)  # after the stem and every block
HALVING = (1, 3, 5, 11)  # blocks whose depthwise convolution halves the size
AGES = np.arange(100, dtype=np.float32)
NEAREST = 5  # faces to which a face is compared

Weights = dict[str, Any]


def shapes() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"stem.weight": (3, 3, 3, CHANNELS[0]), "stem.bias": (CHANNELS[0],)}
    for i, (before, after) in enumerate(itertools.pairwise(CHANNELS)):
        found |= {f"blocks.{i}.depthwise": (before, 3, 3), f"blocks.{i}.shift": (before,)}
        found |= {f"blocks.{i}.pointwise": (after, before), f"blocks.{i}.bias": (after,)}
    dense = {"features": (CHANNELS[-1], 256), "age": (256, 100)}
    return (
        found
        | {f"{name}.weight": shape for name, shape in dense.items()}
        | {"features.bias": (256,), "age.bias": (100,)}
    )


def descriptors(weights: Weights, images: Array) -> Array:
    """What it sees in the faces of images (b, 3, h, w) in [-1, 1]: (b, 1024), not negative."""
    height, width = images.shape[2:]
    crops = resample(images, area_means(height, PIXELS, *ROWS), area_means(width, PIXELS, *COLUMNS))
    x = jnp.pad(jnp.moveaxis((crops + 1) * 127.5, 1, -1), ((0, 0), (0, 1), (0, 1), (0, 0)))
    x = jnp.moveaxis(_clipped(convolution(x, weights["stem"]["weight"], 2) + weights["stem"]["bias"]), -1, 1)
    for i in range(len(CHANNELS) - 1):
        part = weights["blocks"][str(i)]
        x = depthwise(x, part["depthwise"])
        x = x[:, :, 1::2, 1::2] if i in HALVING else x  # TensorFlow counts from the other corner
        x = _clipped(x + part["shift"][:, None, None])
        x = _clipped(pointwise(x, part["pointwise"]) + part["bias"][:, None, None])
    return jnp.mean(x, axis=(2, 3))


def ages(weights: Weights, seen: Array) -> Array:
    """Mean age (b,) over its 100 bins, of descriptors (b, 1024)."""
    features = jax.nn.relu(seen @ weights["features"]["weight"] + weights["features"]["bias"])
    bins = jax.nn.softmax(features @ weights["age"]["weight"] + weights["age"]["bias"], axis=1)
    return bins @ jnp.asarray(AGES, seen.dtype)


def _clipped(x: Array) -> Array:
    return jnp.clip(x, 0, 6)


@pytree
class SecondAge:
    """Predicted age in years."""

    weights: Weights
    names: tuple[str, ...] = static(default=("age",))

    def scores(self, images: Array) -> Array:
        images = images.astype(jnp.promote_types(images.dtype, jnp.float32))
        return ages(self.weights, descriptors(self.weights, images))[:, None]


@pytree
class Identity:
    """How unlike others a face is: its mean distance, as an angle in degrees, to the nearest of some random faces.

    Args:
        weights: of the network.
        others: (m, 1024), descriptors of random faces, of length 1.
    """

    weights: Weights
    others: Array
    names: tuple[str, ...] = static(default=("identity",))

    def scores(self, images: Array) -> Array:
        images = images.astype(jnp.promote_types(images.dtype, jnp.float32))
        angles = apart(unit(descriptors(self.weights, images)), self.others)
        return jnp.mean(-jax.lax.top_k(-angles, NEAREST)[0], axis=1, keepdims=True)


def unit(seen: Array) -> Array:
    return seen / jnp.sqrt(jnp.sum(seen**2, axis=1, keepdims=True) + 1e-12)


def apart(one: Array, other: Array) -> Array:
    """Angles in degrees between descriptors of length 1, (a, 1024) and (b, 1024) -> (a, b)."""
    cosines = jnp.clip(matmul(one, other.T.astype(one.dtype)), -1 + 1e-6, 1 - 1e-6)  # where the slope is finite
    return jnp.degrees(jnp.arccos(cosines))
