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

from dqd.latent.generators.convolutions import MappingNetwork, leaky_relu
from dqd.latent.generators.layers import convolution, depthwise, inverse_haar, pointwise
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
    table |= {"start.constant": (512, 4, 4), "start.weight": (3, 3, 512, 512), "start.noise": (4, 4)}
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


def mapping(weights: Weights) -> MappingNetwork:
    """Standard normal z (b, 512) -> styles w (b, 512)."""
    parts = [weights["mapping"][str(layer)] for layer in range(DEPTH)]
    return MappingNetwork(tuple(part["weight"].T for part in parts), tuple(part["bias"] for part in parts), GAIN)


def features(weights: Weights, w: Array, levels: int, key: Array | None = None, dtype: Any = jnp.float32) -> Array:
    """The features after some levels; with keys (b,), fresh noise as strong as the fixed noise of the file.

    Features are of `dtype`; styles are always computed in float32, which costs nothing.
    """
    convolutions = 1 + 2 * levels
    keys = iter([None] * convolutions if key is None else jax.vmap(jax.random.split, (0, None), 1)(key, convolutions))
    start = weights["start"]
    x = _modulated(start, start["constant"][None].astype(dtype), w)
    x = convolution(jnp.moveaxis(x, 1, -1), start["weight"].astype(dtype), 1, 1)
    x = _finished(start, jnp.moveaxis(x, -1, 1), next(keys))
    for level in range(levels):
        part = weights["levels"][str(level)]
        x = inverse_haar(_modulated(part["up"], x, w))
        for name in ("conv1", "conv2"):
            split = part[name]
            x = depthwise(_modulated(split, x, w), split["depthwise"].astype(dtype))
            x = _finished(split, pointwise(x, split["pointwise"].astype(dtype)), next(keys))
    return x


def synthesis(weights: Weights, w: Array, key: Array | None = None, dtype: Any = jnp.float32) -> Array:
    """Images (b, 3, 1024, 1024) of styles w (b, 512), nearly all of it in [-1, 1]."""
    x = features(weights, w, len(CHANNELS), key, dtype)
    return _image(weights["image"], _modulated(weights["image"], x, w))


def preview(weights: Weights, layer: Weights, w: Array, levels: int, dtype: Any = jnp.float32) -> Array:
    """Blurred images from the features after some levels."""
    return _image(layer, features(weights, w, levels, dtype=dtype))


def _image(part: Weights, x: Array) -> Array:
    """The last layer, at least float32 from here on: 8 bits of bfloat16 would show in the picture."""
    wavelets = pointwise(x, part["weight"].astype(x.dtype), result=jnp.promote_types(x.dtype, jnp.float32))
    return inverse_haar(wavelets + part["bias"][:, None, None])


def _modulated(part: Weights, x: Array, w: Array) -> Array:
    style = jnp.matmul(w, part["modulation"]["weight"].T, precision="highest") + part["modulation"]["bias"]
    return x * style[:, :, None, None].astype(x.dtype)


def _finished(part: Weights, x: Array, key: Array | None) -> Array:
    """Noise, bias and activation."""
    noise = part["noise"]
    if key is not None:
        strength = jnp.sqrt(jnp.mean(noise**2))
        noise = strength * jax.vmap(lambda one: jax.random.normal(one, (1, *part["noise"].shape)))(key)
    return leaky_relu(x + noise.astype(x.dtype) + part["bias"][:, None, None].astype(x.dtype))


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

    def images(self, latents: Array, key: Array | None = None) -> Array:
        """(b, 3, pixels, pixels) of styles (b, 512); fixed noise unless keys (b,) are given."""
        if self.layer is None:
            images = synthesis(self.weights, latents, key, self.dtype)
        else:
            images = preview(self.weights, self.layer, latents, PREVIEWS[self.pixels], self.dtype)
        return jnp.clip(images, -1, 1)
