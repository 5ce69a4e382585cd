"""StyleGAN2 (Karras et al. 2020), whose images are free of StyleGAN's droplets.

Names and shapes of the weights are those of the common PyTorch port (rosinality's). A layer:

    style times input -> convolution, blurred after an upsampling one -> demodulation -> noise -> bias -> LeakyReLU

Styles scale the input and demodulation scales the output, so that all images of a batch share one convolution. RGB
images of every size are upsampled and added up. Learning-rate scales are multiplied into the weights when loaded.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.generators.convolutions import (
    MAPPING_RATE,
    MappingNetwork,
    convolve,
    leaky_relu,
    linear,
    noises,
    phase_kernel,
    phases,
    sizes,
    weave,
)
from dqd.latent.weights import files
from dqd.types import matmul, pytree

GAIN = math.sqrt(2)  # of every LeakyReLU
EPSILON = 1e-8

# A transposed convolution of stride 2: of pixels (p, q), an even output pixel sees the outer taps, an odd one the
# middle.
EVEN, ODD = np.array([[0.0, 0, 1], [1, 0, 0]]), np.array([[0.0, 0, 0], [0, 1, 0]])


@pytree
class Modulated:
    """A convolution whose input channels are scaled by a style."""

    kernel: Array  # (height, width, in, out)
    power: Array | None  # (in, out): squares of the kernel summed over its taps; None: not demodulated
    style_weight: Array  # (w, in)
    style_bias: Array  # (in,)

    def style(self, latents: Array) -> Array:
        return linear(latents.astype(self.style_weight.dtype), self.style_weight, self.style_bias)  # (b, in)

    def enter(self, images: Array, style: Array) -> Array:
        return images * style[:, None, None].astype(images.dtype)

    def leave(self, images: Array, style: Array) -> Array:
        """Demodulated, in the style's precision."""
        exact = images.astype(style.dtype)
        if self.power is None:
            return exact
        return exact * jax.lax.rsqrt(matmul(style**2, self.power) + EPSILON)[:, None, None]


@pytree
class Layer:
    convolution: Modulated
    noise_strength: Array  # ()
    fixed_noise: Array  # (size, size)
    bias: Array  # (c,)

    def __call__(self, images: Array, latents: Array, noise: Array, *, upsample: bool) -> Array:
        style = self.convolution.style(latents)
        entered = self.convolution.enter(images, style)
        if upsample:
            found = blurred(phases(entered, self.convolution.kernel))
        else:
            found = convolve(entered, self.convolution.kernel)
        values = self.convolution.leave(found, style) + self.noise_strength * noise + self.bias
        return (leaky_relu(values) * GAIN).astype(images.dtype)


@pytree
class ToRGB:
    convolution: Modulated
    bias: Array  # (3,)

    def __call__(self, images: Array, latents: Array) -> Array:
        style = self.convolution.style(latents)
        entered = self.convolution.enter(images, style)
        found = entered @ self.convolution.kernel[0, 0]  # three channels are slow to convolve on a GPU
        return self.convolution.leave(found, style) + self.bias


@pytree
class StyleGAN2:
    """The synthesis network and its mapping network, if that is there."""

    mapping: MappingNetwork | None
    constant: Array  # (4, 4, c)
    layers: tuple[Layer, ...]  # one at 4 x 4, then an upsampling and a plain one for every size
    to_rgb: tuple[ToRGB, ...]

    @property
    def resolution(self) -> int:
        return 4 * 2 ** (len(self.to_rgb) - 1)

    @property
    def num_layers(self) -> int:
        """Latents of an image: one for every layer and one for the last RGB."""
        return len(self.layers) + 1

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return (self.layers[0].convolution.style_weight.shape[0],)

    def images(self, latents: Array, key: Array | None = None) -> Array:
        """(b, 512), or (b, layers, 512) for a latent per layer -> (b, 3, h, w). With keys (b,): fresh noise."""
        per_layer = latents if latents.ndim == 3 else jnp.repeat(latents[:, None], self.num_layers, axis=1)
        noise = noises([layer.fixed_noise for layer in self.layers], key)
        images = jnp.broadcast_to(self.constant, (len(latents), *self.constant.shape))
        images = self.layers[0](images, per_layer[:, 0], noise[0], upsample=False)
        rgb = self.to_rgb[0](images, per_layer[:, 1])
        for i in range(1, len(self.layers), 2):
            images = self.layers[i](images, per_layer[:, i], noise[i], upsample=True)
            images = self.layers[i + 1](images, per_layer[:, i + 1], noise[i + 1], upsample=False)
            rgb = enlarged(rgb) + self.to_rgb[(i + 1) // 2](images, per_layer[:, i + 2])
        return jnp.moveaxis(rgb, -1, 1)


def blurred(found: Array) -> Array:
    """The pixels of `phases` in order, blurred by [1, 3, 3, 1]: (b, h + 1, w + 1, 2, 2, c) -> (b, 2h, 2w, c)."""
    rows = weave(found[:, :, :, 0], found[:, :, :, 1], axis=1)
    images = weave(rows[:, :, :, 0], rows[:, :, :, 1], axis=2)  # the last row and column are zeros
    padded = jnp.pad(images, ((0, 0), (1, 0), (1, 0), (0, 0)))
    return _filtered(_filtered(padded, axis=1), axis=2)


def _filtered(images: Array, axis: int) -> Array:
    """[1, 3, 3, 1] / 4 along an axis: it sums to 2, as half of what a transposed convolution sees are zeros."""
    size = images.shape[axis] - 3
    a, b, c, d = (jax.lax.slice_in_dim(images, start, start + size, axis=axis) for start in range(4))
    return (a + 3 * (b + c) + d) / 4


def enlarged(images: Array) -> Array:
    """Twice the size, zeros between the pixels blurred by [1, 3, 3, 1]: each pixel three parts, its neighbour one."""
    for axis in (1, 2):
        edge = [(0, 0)] * 4
        edge[axis] = (1, 1)
        padded = jnp.pad(images, edge)
        size = images.shape[axis]
        before, after = (jax.lax.slice_in_dim(padded, start, start + size, axis=axis) for start in (0, 2))
        images = weave((before + 3 * images) / 4, (3 * images + after) / 4, axis)
    return images


# Weights --------------------------------------------------------------------------------------------------------------


def channels(resolution: int, multiplier: int = 2) -> dict[int, int]:
    """Of the published networks ("config F"), by size."""
    return {size: min(512, 16_384 * multiplier // size) for size in sizes(resolution)}


def expected_shapes(channels: Mapping[int, int], latent: int = 512, mapping_layers: int = 8) -> files.Shapes:
    """Names and shapes of the weights."""
    first = channels[4]
    shapes: files.Shapes = {"input.input": (1, first, 4, 4)}
    for i in range(1, mapping_layers + 1):
        shapes |= {f"style.{i}.weight": (latent, latent), f"style.{i}.bias": (latent,)}

    def modulated(name: str, inputs: int, outputs: int, taps: int) -> None:
        shapes[f"{name}.conv.weight"] = (1, outputs, inputs, taps, taps)
        shapes[f"{name}.conv.modulation.weight"] = (inputs, latent)
        shapes[f"{name}.conv.modulation.bias"] = (inputs,)

    def styled(name: str, inputs: int, outputs: int) -> None:
        modulated(name, inputs, outputs, 3)
        shapes[f"{name}.noise.weight"] = (1,)
        shapes[f"{name}.activate.bias"] = (outputs,)

    def to_rgb(name: str, inputs: int) -> None:
        modulated(name, inputs, 3, 1)
        shapes[f"{name}.bias"] = (1, 3, 1, 1)

    styled("conv1", first, first)
    to_rgb("to_rgb1", first)
    shapes["noises.noise_0"] = (1, 1, 4, 4)
    before = first
    for i, (size, c) in enumerate(list(channels.items())[1:]):
        styled(f"convs.{2 * i}", before, c)
        styled(f"convs.{2 * i + 1}", c, c)
        to_rgb(f"to_rgbs.{i}", c)
        shapes |= {f"noises.noise_{2 * i + j}": (1, 1, size, size) for j in (1, 2)}
        before = c
    return shapes


def shapes_like(found: Mapping[str, tuple[int, ...]]) -> files.Shapes:
    """The expected shapes of a network with as many blocks, channels and latent numbers as these weights say."""
    outputs = {0: found.get("conv1.activate.bias", (512,))[0]}
    outputs |= {
        int(match[1]) // 2 + 1: shape[0]
        for name, shape in found.items()
        if (match := re.fullmatch(r"convs\.(\d*[13579])\.activate\.bias", name))
    }
    if len(outputs) == 1:
        return expected_shapes(channels(1024))
    by_size = {4 * 2**block: outputs.get(block, 1) for block in range(max(outputs) + 1)}
    mapping_layers = sum(re.fullmatch(r"style\.\d+\.bias", name) is not None for name in found)
    return expected_shapes(by_size, found.get("conv1.conv.modulation.weight", (0, 512))[-1], mapping_layers)


def load(path: str | os.PathLike[str], dtype: str = "float32") -> StyleGAN2:
    """A generator from a file that `dqd convert` has made."""
    return from_tensors(files.load(path, shapes_like(files.shapes(path))), dtype)


def from_tensors(tensors: files.Tensors, dtype: str = "float32") -> StyleGAN2:
    """A generator that computes in `dtype`: float32, bfloat16, float16, or float64 under jax.enable_x64."""
    computed, exact = jnp.dtype(dtype), jnp.promote_types(dtype, jnp.float32)

    def modulated(name: str, *, upsample: bool = False, demodulate: bool = True) -> Modulated:
        weight = tensors[f"{name}.conv.weight"][0].astype(np.float64)
        weight = weight / math.sqrt(np.prod(weight.shape[1:]))
        style = tensors[f"{name}.conv.modulation.weight"]
        kernel = phase_kernel(weight, EVEN, ODD) if upsample else weight.transpose(2, 3, 1, 0)
        return Modulated(
            kernel=jnp.asarray(kernel, computed),
            power=jnp.asarray((weight**2).sum((2, 3)).T, exact) if demodulate else None,
            style_weight=jnp.asarray(style.T / math.sqrt(style.shape[1]), exact),
            style_bias=jnp.asarray(tensors[f"{name}.conv.modulation.bias"], exact),
        )

    def layer(name: str, number: int) -> Layer:
        return Layer(
            convolution=modulated(name, upsample=number % 2 == 1),
            noise_strength=jnp.asarray(tensors[f"{name}.noise.weight"][0], exact),
            fixed_noise=jnp.asarray(tensors[f"noises.noise_{number}"][0, 0], exact),
            bias=jnp.asarray(tensors[f"{name}.activate.bias"], exact),
        )

    def to_rgb(name: str) -> ToRGB:
        return ToRGB(modulated(name, demodulate=False), jnp.asarray(tensors[f"{name}.bias"].reshape(3), exact))

    blocks = sum(re.fullmatch(r"to_rgbs\.\d+\.bias", name) is not None for name in tensors)
    return StyleGAN2(
        mapping=_mapping(tensors, exact),
        constant=jnp.asarray(tensors["input.input"][0].transpose(1, 2, 0), computed),
        layers=tuple(layer(f"convs.{i - 1}" if i else "conv1", i) for i in range(2 * blocks + 1)),
        to_rgb=(to_rgb("to_rgb1"), *(to_rgb(f"to_rgbs.{i}") for i in range(blocks))),
    )


def _mapping(tensors: files.Tensors, dtype: jnp.dtype) -> MappingNetwork | None:
    count = sum(re.fullmatch(r"style\.\d+\.bias", name) is not None for name in tensors)
    if not count:
        return None
    weights = [tensors[f"style.{i}.weight"].T for i in range(1, count + 1)]
    return MappingNetwork(
        weights=tuple(jnp.asarray(weight * (MAPPING_RATE / math.sqrt(len(weight))), dtype) for weight in weights),
        biases=tuple(jnp.asarray(tensors[f"style.{i}.bias"] * MAPPING_RATE, dtype) for i in range(1, count + 1)),
        gain=GAIN,
    )


def random_tensors(resolution: int = 1024, seed: int = 0, *, width: float = 1.0) -> files.Tensors:
    """Random weights in the network's own scale, for tests and timings; `width` shrinks the channels."""
    shapes = expected_shapes({size: max(4, int(c * width)) for size, c in channels(resolution).items()})
    random = np.random.default_rng(seed)
    drawn = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    mapping = {name: drawn[name] / MAPPING_RATE for name in drawn if re.fullmatch(r"style\.\d+\.weight", name)}
    return drawn | mapping
