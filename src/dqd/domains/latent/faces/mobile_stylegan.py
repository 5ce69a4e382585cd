"""MobileStyleGAN (Belousov 2021): a small generator of faces, 1024 x 1024 pixels, learnt from StyleGAN2 on FFHQ.

    z (512) -> mapping -> w (512)        eight dense layers
    w -> synthesis -> image              4 x 4 to 512 x 512 in seven levels, and one more step to 1024 for the image

Every level doubles the size by an inverse Haar wavelet; its convolutions are modulated by w and split into a depthwise
and a pointwise one. A *preview* stops after a few levels and reads the image off the features there with one 1 x 1
layer of ours, fitted by least squares: quick on a CPU, blurred, and never the generator itself.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.domains.latent.faces.layers import convolution, depthwise, inverse_haar, leaky_relu, pointwise
from dqd.types import pytree, static

STYLE = 512
DEPTH = 8  # layers of the mapping
CHANNELS = (512, 512, 512, 512, 256, 128, 64)  # of the levels 8 x 8 to 512 x 512
FULL = 1024  # pixels
PREVIEWS = {128: 4, 256: 5}  # pixels: levels needed
GAIN = 2**0.5

Weights = dict[str, Any]


def shapes() -> dict[str, tuple[int, ...]]:
    """Every array of the generator by its dotted name."""
    table: dict[str, tuple[int, ...]] = {}
    for layer in range(DEPTH):
        table |= {f"mapping.{layer}.weight": (STYLE, STYLE), f"mapping.{layer}.bias": (STYLE,)}
    table |= {"start.constant": (512, 4, 4), "start.weight": (512, 512, 3, 3), "start.noise": (4, 4)}
    table |= {"start.bias": (512,), **_modulation("start", 512)}
    before, size = 512, 8
    for level, channels in enumerate(CHANNELS):
        name = f"levels.{level}"
        table |= _modulation(f"{name}.up", before)
        table |= _separable(f"{name}.conv1", before // 4, channels, size)
        table |= _separable(f"{name}.conv2", channels, channels, size)
        before, size = channels, 2 * size
    return table | {"image.weight": (12, before), "image.bias": (12,), **_modulation("image", before)}


def preview_shapes(pixels: int) -> dict[str, tuple[int, ...]]:
    return {"weight": (12, CHANNELS[PREVIEWS[pixels] - 1]), "bias": (12,)}


def _modulation(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.modulation.weight": (channels, STYLE), f"{name}.modulation.bias": (channels,)}


def _separable(name: str, before: int, channels: int, size: int) -> dict[str, tuple[int, ...]]:
    arrays = {"depthwise": (before, 3, 3), "pointwise": (channels, before), "noise": (size, size), "bias": (channels,)}
    return {f"{name}.{key}": shape for key, shape in arrays.items()} | _modulation(name, before)


def mapping(weights: Weights, z: Array) -> Array:
    """Styles w (b, 512) of standard normal z (b, 512)."""
    w = z * jax.lax.rsqrt(jnp.mean(z**2, axis=1, keepdims=True) + 1e-8)
    for layer in range(DEPTH):
        part = weights["mapping"][str(layer)]
        w = GAIN * leaky_relu(jnp.matmul(w, part["weight"].T, precision="highest") + part["bias"])
    return w


def features(weights: Weights, w: Array, levels: int, key: Array | None = None) -> Array:
    """The features after some levels; with keys (b,), fresh noise as strong as the fixed noise of the file."""
    convolutions = 1 + 2 * levels
    keys = iter([None] * convolutions if key is None else jax.vmap(jax.random.split, (0, None), 1)(key, convolutions))
    x = _modulated(weights["start"], weights["start"]["constant"][None], w)
    x = _finished(weights["start"], convolution(x, weights["start"]["weight"], padding=1), next(keys))
    for level in range(levels):
        part = weights["levels"][str(level)]
        x = inverse_haar(_modulated(part["up"], x, w))
        for name in ("conv1", "conv2"):
            split = part[name]
            x = depthwise(_modulated(split, x, w), split["depthwise"])
            x = _finished(split, pointwise(x, split["pointwise"]), next(keys))
    return x


def synthesis(weights: Weights, w: Array, key: Array | None = None) -> Array:
    """Images (b, 3, 1024, 1024) of styles w (b, 512), nearly all of it in [-1, 1]."""
    x = features(weights, w, len(CHANNELS), key)
    image = weights["image"]
    return inverse_haar(pointwise(_modulated(image, x, w), image["weight"]) + image["bias"][:, None, None])


def preview(weights: Weights, layer: Weights, w: Array, levels: int) -> Array:
    """Blurred images from the features after some levels."""
    x = features(weights, w, levels)
    return inverse_haar(pointwise(x, layer["weight"]) + layer["bias"][:, None, None])


def _modulated(part: Weights, x: Array, w: Array) -> Array:
    style = jnp.matmul(w, part["modulation"]["weight"].T) + part["modulation"]["bias"]
    return x * style[:, :, None, None]


def _finished(part: Weights, x: Array, key: Array | None) -> Array:
    """Noise, bias and activation."""
    noise = part["noise"]
    if key is not None:
        strength = jnp.sqrt(jnp.mean(noise.astype(jnp.float32) ** 2)).astype(noise.dtype)
        noise = strength * jax.vmap(lambda one: jax.random.normal(one, (1, *noise.shape), noise.dtype))(key)
    return leaky_relu(x + noise + part["bias"][:, None, None])


@pytree
class MobileStyleGAN:
    """The generator of faces: styles w in, images in [-1, 1] out. Frozen; weights are traced."""

    weights: Weights
    layer: Weights | None = None  # of the preview
    pixels: int = static(default=FULL)
    dtype: str = static(default="float32")

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return (STYLE,)

    @property
    def resolution(self) -> int:
        return self.pixels

    @property
    def is_preview(self) -> bool:
        return self.pixels != FULL

    def images(self, latents: Array, key: Array | None = None) -> Array:
        """(b, 3, pixels, pixels) of styles (b, 512); fixed noise unless keys (b,) are given."""
        weights, layer, w = jax.tree.map(lambda x: x.astype(self.dtype), (self.weights, self.layer, latents))
        if self.is_preview:
            images = preview(weights, layer, w, PREVIEWS[self.pixels])
        else:
            images = synthesis(weights, w, key)
        return jnp.clip(images.astype(jnp.promote_types(self.dtype, jnp.float32)), -1, 1)
