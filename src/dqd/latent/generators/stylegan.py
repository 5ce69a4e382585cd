"""StyleGAN (Karras, Laine & Aila 2019): faces of 1024 x 1024 pixels from 512 numbers in W.

Names and shapes of the weights are those of the public PyTorch port (lernapparat's), which the paper used. A layer:

    convolution -> blur after an upsampling one -> bias -> noise -> LeakyReLU -> instance norm -> style

Learning-rate scales are multiplied into the weights when they are loaded. Both ways of upsampling that the network has,
nearest neighbour then convolution below 128 pixels and a transposed convolution above, are the same `phases` with
different kernels. Statistics and styles are computed in float32, images in `dtype`.
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

FUSED_FROM = 128  # pixels: from here on upsampling is a transposed convolution
MAPPING_LAYERS = 8
EPSILON = 1e-5  # of the instance norm

# Nearest neighbour makes of pixels (p, q) the row p, p, q, q: an even output pixel sees p once and q twice.
EVEN, ODD = np.array([[1.0, 0, 0], [0, 1, 1]]), np.array([[1.0, 1, 0], [0, 0, 1]])


@pytree
class Layer:
    """What follows a convolution."""

    bias: Array  # (c,)
    noise_strength: Array  # (c,)
    fixed_noise: Array  # (size, size)
    style_weight: Array  # (w, 2c): scale, then shift
    style_bias: Array  # (2c,), the scale's 1 included

    def __call__(self, images: Array, latents: Array, noise: Array) -> Array:
        values = self.activated(images, noise)
        scale, shift = self.affine(values, latents)
        return (values.astype(scale.dtype) * scale + shift).astype(images.dtype)

    def activated(self, images: Array, noise: Array) -> Array:
        exact = self.bias.dtype
        values = leaky_relu(images.astype(exact) + self.bias + self.noise_strength * noise)
        return values.astype(images.dtype)  # kept in memory as images are

    def affine(self, values: Array, latents: Array) -> tuple[Array, Array]:
        """Norm and style together: scale and shift of every channel, each (b, 1, 1, c)."""
        exact = self.bias.dtype
        mean, variance = moments(values.astype(exact))
        style = linear(latents.astype(exact), self.style_weight, self.style_bias)[:, None, None]
        scale, shift = jnp.split(style, 2, axis=-1)
        scale = scale * jax.lax.rsqrt(variance + EPSILON)
        return scale, shift - mean * scale


def moments(images: Array) -> tuple[Array, Array]:
    """Mean and variance over all pixels, each (b, 1, 1, c), from one pass: sums about the first pixel forget little."""
    about = jax.lax.stop_gradient(images[:, :1, :1])
    off = images - about
    first, second = (jnp.mean(values, axis=(1, 2), keepdims=True) for values in (off, off**2))
    return first + about, jnp.maximum(second - first**2, 0)


@pytree
class StyleGAN:
    """The synthesis network and its mapping network, if that is there."""

    mapping: MappingNetwork | None
    constant: Array  # (4, 4, c)
    first: Array  # kernel at 4 x 4
    upsampling: tuple[Array | Blurred, ...]  # from 8 x 8 on
    kernels: tuple[Array, ...]  # after a Blurred one the last kernel is that of four pixels at a time
    layers: tuple[Layer, ...]
    to_rgb: tuple[Array, Array]  # (c, 3), (3,)

    @property
    def resolution(self) -> int:
        return 4 * 2 ** len(self.upsampling)

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        return (self.layers[0].style_weight.shape[0],)

    def images(self, latents: Array, key: Array | None = None) -> Array:
        """(b, 512), or (b, layers, 512) for a latent per layer -> (b, 3, h, w). With keys (b,): fresh noise."""
        per_layer = latents if latents.ndim == 3 else jnp.repeat(latents[:, None], self.num_layers, axis=1)
        noise = noises([layer.fixed_noise for layer in self.layers], key)
        images = jnp.broadcast_to(self.constant, (len(latents), *self.constant.shape))
        images = convolve(self.layers[0](images, per_layer[:, 0], noise[0]), self.first)
        side = 1
        for i, (upsample, kernel) in enumerate(zip(self.upsampling, self.kernels, strict=True)):
            below, above = 2 * i + 1, 2 * i + 2
            images = self.layers[below](images, per_layer[:, below], noise[below])
            if above + 2 == self.num_layers and isinstance(upsample, Blurred):
                side, images, noise[above:] = 2, upsample(images), [fold(one) for one in noise[above:]]
            else:
                images = double(images, upsample)
            images = self.layers[above](images, per_layer[:, above], noise[above])
            images = convolve(images, kernel) if side == 1 else convolve_folded(images, kernel)
        return self._coloured(images, per_layer[:, -1], noise[-1], side)

    def _coloured(self, images: Array, latents: Array, noise: Array, side: int) -> Array:
        """The last layer and the colours (b, 3, h, w). Norm, style and colours are linear: one product does all."""
        values, (kernel, bias) = self.layers[-1].activated(images, noise), self.to_rgb
        scale, shift = (part[:, 0, 0] for part in self.layers[-1].affine(values, latents))
        b, h, w, c = values.shape
        together = side**2  # pixels that lie side by side
        colours = jnp.einsum("pq,bc,ck->bpcqk", jnp.eye(together, dtype=scale.dtype), scale, kernel.astype(scale.dtype))
        colours = colours.reshape(b, together * c, together * 3).astype(values.dtype)
        offset = jnp.tile(matmul(shift, kernel.astype(shift.dtype)) + bias, (1, together)).astype(values.dtype)
        rows = values.reshape(b, h * w // together, together * c)
        painted = jnp.einsum("bnc,bck->bnk", rows, colours, preferred_element_type=values.dtype) + offset[:, None]
        pixels = painted.reshape(b, h, w // together, side, side, 3).transpose(0, 5, 1, 3, 2, 4)
        return pixels.reshape(b, 3, side * h, w // side)


@pytree
class Blurred:
    """An upsampling convolution with its blur in one kernel, whose output pixels are not yet in order.

    The blur has zeros around; the kernel alone has what the convolution would find there. It is taken away again, at
    the first and the last row and column.
    """

    kernel: Array  # (3, 3, i, 2 * 2 * o)
    rows: Array  # (first and last, 3, i, 2 * o), along a row
    columns: Array  # the same along a column
    corners: Array  # (2, 2, i, o): what both take away

    def __call__(self, images: Array) -> Array:
        """(b, h, w, i) -> (b, h, 4w, o), as `fold` has it"""
        b, h, w, _ = images.shape
        found = convolve(images, self.kernel).reshape(b, h, w, 2, 2, -1)
        for end in (0, 1):  # the first pixel is of the even kind, the last of the odd
            row = _along(images[:, -end], self.rows[end])  # (b, w, 2, o)
            for side in (0, 1):
                corner = images[:, -end, -side] @ self.corners[end, side]
                row = row - _placed(corner[:, None, None], row.shape, {1: side, 2: side})
            column = _along(images[:, :, -end], self.columns[end])
            found = found - _placed(row[:, None, :, None], found.shape, {1: end, 3: end})
            found = found - _placed(column[:, :, None, :, None], found.shape, {2: end, 4: end})
        return found.reshape(b, h, 4 * w, -1)


def _along(line: Array, kernel: Array) -> Array:
    """A convolution of three pixels along a line, (b, l, i) -> (b, l, 2, o)."""
    around = jnp.pad(line, ((0, 0), (1, 1), (0, 0)))
    near = jnp.concatenate([around[:, j : j + line.shape[1]] for j in range(3)], axis=-1)
    return (near @ kernel.reshape(-1, kernel.shape[-1])).reshape(*line.shape[:2], 2, -1)


def _placed(part: Array, shape: tuple[int, ...], at: Mapping[int, int]) -> Array:
    """Zeros of a shape with a part at the first (0) or last (1) place of some axes."""
    edges = [(0, 0, 0)] * len(shape)
    for axis, end in at.items():
        edges[axis] = (0, shape[axis] - 1, 0) if end == 0 else (shape[axis] - 1, 0, 0)
    return jax.lax.pad(part, jnp.zeros((), part.dtype), edges)


def fold(images: Array) -> Array:
    """(b, 2h, 2w, c) -> (b, h, 4w, c): of every four pixels those of the upper row, then those of the lower."""
    b, h, w, c = images.shape
    return images.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, h // 2, 2 * w, c)


def convolve_folded(images: Array, kernel: Array) -> Array:
    """(b, h, 4w, c) -> the same, four pixels at a time: a GPU is fond of many channels."""
    b, h, w, c = images.shape
    return convolve(images.reshape(b, h, w // 4, 4 * c), kernel).reshape(b, h, w, c)


def unfold(images: Array) -> Array:
    """(b, h, 4w, c) -> (b, 2h, 2w, c)"""
    b, h, w, c = images.shape
    return images.reshape(b, h, w // 4, 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, 2 * h, w // 2, c)


def double(images: Array, upsample: Array | Blurred) -> Array:
    """An upsampling convolution and its blur, [1, 2, 1] / 4 along both axes with zeros around.

    The blur comes first and the weaving last: so pixels are moved once.
    """
    if isinstance(upsample, Blurred):
        return unfold(upsample(images))
    found = phases(images, upsample)  # odd pixels see the input pixels one further
    rows = weave(*_blurred(found[:, :-1, :, 0], found[:, 1:, :, 1], axis=1), axis=1)
    return weave(*_blurred(rows[:, :, :-1, 0], rows[:, :, 1:, 1], axis=2), axis=2)


def _blurred(even: Array, odd: Array, axis: int) -> tuple[Array, Array]:
    """Even and odd pixels of a line, after its blur."""
    return (_shifted(odd, axis, 1) + 2 * even + odd) / 4, (even + 2 * odd + _shifted(even, axis, -1)) / 4


def _shifted(images: Array, axis: int, by: int) -> Array:
    """Moved by one pixel, a zero coming in."""
    edges = [(0, 0, 0)] * images.ndim
    edges[axis] = (by, -by, 0)
    return jax.lax.pad(images, jnp.zeros((), images.dtype), edges)


# Weights --------------------------------------------------------------------------------------------------------------


def channels(resolution: int) -> dict[int, int]:
    """Of the published networks, by size: 512 up to 32 pixels, then halved with every doubling."""
    return {size: min(512, 16_384 // size) for size in sizes(resolution)}


def expected_shapes(
    channels: Mapping[int, int], latent: int = 512, mapping_layers: int = MAPPING_LAYERS
) -> files.Shapes:
    """Names and shapes of the weights."""
    shapes: files.Shapes = {}
    for i in range(mapping_layers):
        shapes |= {f"g_mapping.dense{i}.weight": (latent, latent), f"g_mapping.dense{i}.bias": (latent,)}
    before = 0
    for size, c in channels.items():
        block = f"g_synthesis.blocks.{size}x{size}"
        if size == 4:
            shapes |= {f"{block}.const": (1, c, 4, 4), f"{block}.bias": (c,)}
            convolutions = {"conv": c}
        else:
            convolutions = {"conv0_up": before, "conv1": c}
        for name, inputs in convolutions.items():
            shapes |= {f"{block}.{name}.weight": (c, inputs, 3, 3), f"{block}.{name}.bias": (c,)}
        for epilogue in ("epi1", "epi2"):
            shapes |= {
                f"{block}.{epilogue}.top_epi.noise.weight": (c,),
                f"{block}.{epilogue}.style_mod.lin.weight": (2 * c, latent),
                f"{block}.{epilogue}.style_mod.lin.bias": (2 * c,),
            }
        before = c
    return shapes | {"g_synthesis.torgb.weight": (3, before, 1, 1), "g_synthesis.torgb.bias": (3,)}


def shapes_like(found: Mapping[str, tuple[int, ...]]) -> files.Shapes:
    """The expected shapes of a network with as many blocks, channels and latent numbers as these weights say.

    A synthesis network may come alone: its own latents, W, need no mapping.
    """
    pattern = re.compile(r"g_synthesis\.blocks\.(\d+)x\1\.epi1\.top_epi\.noise\.weight")
    by_size = {int(match[1]): found[name][0] for name in found if (match := pattern.fullmatch(name))}
    if not by_size:
        return expected_shapes(channels(1024))
    latent = found.get("g_synthesis.blocks.4x4.epi1.style_mod.lin.weight", (0, 512))[-1]
    layers = MAPPING_LAYERS if any(name.startswith("g_mapping.") for name in found) else 0
    return expected_shapes({size: by_size.get(size, 1) for size in sizes(max(by_size))}, latent, layers)


def load(path: str | os.PathLike[str], dtype: str = "float32") -> StyleGAN:
    """A generator from a file that `dqd convert` has made."""
    return from_tensors(files.load(path, shapes_like(files.shapes(path))), dtype)


def from_tensors(tensors: files.Tensors, dtype: str = "float32", *, fused: int | None = None) -> StyleGAN:
    """A generator that computes in `dtype`: float32, bfloat16, float16, or float64 under jax.enable_x64.

    From `fused` pixels on the blur is a part of the kernel, and the largest images are then convolved four pixels at a
    time. Both multiply more and move less, to the same result. That suits a GPU, where it is the default from 256 on.
    """
    computed, exact = jnp.dtype(dtype), jnp.promote_types(dtype, jnp.float32)
    block_sizes = sizes(max(int(name.split(".")[2].split("x")[0]) for name in tensors if ".blocks." in name))
    if fused is None:
        fused = 256 if jax.default_backend() == "gpu" else 2 * block_sizes[-1]
    noise = np.random.default_rng(0)  # the port has no fixed noise of its own

    def kernel(name: str, gain: float = math.sqrt(2)) -> np.ndarray:
        weight = tensors[f"g_synthesis.{name}.weight"].astype(np.float64)
        return weight * gain / math.sqrt(np.prod(weight.shape[1:]))

    def layer(size: int, epilogue: str, bias: str) -> Layer:
        block = f"g_synthesis.blocks.{size}x{size}"
        style, shift = (tensors[f"{block}.{epilogue}.style_mod.lin.{part}"] for part in ("weight", "bias"))
        half = len(shift) // 2
        return Layer(
            bias=jnp.asarray(tensors[f"{block}.{bias}"], exact),
            noise_strength=jnp.asarray(tensors[f"{block}.{epilogue}.top_epi.noise.weight"], exact),
            fixed_noise=jnp.asarray(noise.standard_normal((size, size)), exact),
            style_weight=jnp.asarray(style.T / math.sqrt(style.shape[1]), exact),
            style_bias=jnp.asarray(shift + np.repeat([1.0, 0.0], half), exact),
        )

    def plain(name: str, gain: float = math.sqrt(2)) -> Array:
        return jnp.asarray(kernel(name, gain).transpose(2, 3, 1, 0), computed)

    def upsampling(size: int) -> Array | Blurred:
        weight = kernel(f"blocks.{size}x{size}.conv0_up")
        weight = weight[:, :, ::-1, ::-1] if size >= FUSED_FROM else weight  # transposed: the kernel turns round
        if size >= fused:
            return blurred(weight, computed)
        return jnp.asarray(phase_kernel(weight, EVEN, ODD), computed)

    layers = [layer(4, "epi1", "bias"), layer(4, "epi2", "conv.bias")]
    for size in block_sizes[1:]:
        layers += [layer(size, "epi1", "conv0_up.bias"), layer(size, "epi2", "conv1.bias")]
    kernels = [plain(f"blocks.{size}x{size}.conv1") for size in block_sizes[1:]]
    if fused <= block_sizes[-1]:
        kernels[-1] = jnp.asarray(folded_kernel(kernel(f"blocks.{block_sizes[-1]}x{block_sizes[-1]}.conv1")), computed)
    return StyleGAN(
        mapping=_mapping(tensors, exact),
        constant=jnp.asarray(tensors["g_synthesis.blocks.4x4.const"][0].transpose(1, 2, 0), computed),
        first=plain("blocks.4x4.conv"),
        upsampling=tuple(upsampling(size) for size in block_sizes[1:]),
        kernels=tuple(kernels),
        layers=tuple(layers),
        to_rgb=(plain("torgb", gain=1.0)[0, 0], jnp.asarray(tensors["g_synthesis.torgb.bias"], computed)),
    )


def blurred(weight: np.ndarray, dtype: jnp.dtype) -> Blurred:
    """An upsampling kernel (o, i, 3, 3) and its blur.

    Before the blur, pixel 2m is EVEN of the input pixels m - 1 and m, and 2m + 1 is ODD of m and m + 1. The blur adds
    both neighbours to twice the pixel: of m - 1, m and m + 1.
    """
    nothing = np.zeros(3)
    one = np.array([ODD[0], ODD[1] + ODD[0], ODD[1]]) + 2 * np.array([EVEN[0], EVEN[1], nothing])
    other = np.array([EVEN[0], EVEN[1] + EVEN[0], EVEN[1]]) + 2 * np.array([nothing, ODD[0], ODD[1]])
    even, odd = one / 4, other / 4
    taps, outside = np.stack([even, odd]), np.stack([ODD[1], EVEN[0]]) / 4  # before the first pixel, after the last
    i = weight.shape[1]
    return Blurred(
        kernel=jnp.asarray(phase_kernel(weight, even, odd), dtype),
        rows=jnp.asarray(np.einsum("ek,bql,oikl->eqibo", outside, taps, weight).reshape(2, 3, i, -1), dtype),
        columns=jnp.asarray(np.einsum("el,apk,oikl->epiao", outside, taps, weight).reshape(2, 3, i, -1), dtype),
        corners=jnp.asarray(np.einsum("ek,fl,oikl->efio", outside, outside, weight), dtype),
    )


def folded_kernel(weight: np.ndarray) -> np.ndarray:
    """Of a kernel (o, i, 3, 3) that of four pixels at a time, (3, 3, 2 * 2 * i, 2 * 2 * o)."""
    tap = np.zeros((3, 2, 2, 3))  # block, pixel in it, output pixel, tap of the kernel
    for block, inner, outer in np.ndindex(3, 2, 2):
        if 0 <= (offset := 2 * (block - 1) + inner - outer + 1) <= 2:
            tap[block, inner, outer, offset] = 1
    found = np.einsum("xrpk,ytql,oikl->xyrtipqo", tap, tap, weight)
    o, i = weight.shape[:2]
    return found.reshape(3, 3, 4 * i, 4 * o)


def _mapping(tensors: files.Tensors, dtype: jnp.dtype) -> MappingNetwork | None:
    if "g_mapping.dense0.weight" not in tensors:
        return None
    weights = [tensors[f"g_mapping.dense{i}.weight"].T for i in range(MAPPING_LAYERS)]
    scale = [MAPPING_RATE * math.sqrt(2 / len(weight)) for weight in weights]
    return MappingNetwork(
        weights=tuple(jnp.asarray(weight * s, dtype) for weight, s in zip(weights, scale, strict=True)),
        biases=tuple(
            jnp.asarray(tensors[f"g_mapping.dense{i}.bias"] * MAPPING_RATE, dtype) for i in range(MAPPING_LAYERS)
        ),
    )


def random_tensors(resolution: int = 1024, seed: int = 0, *, width: float = 1.0) -> files.Tensors:
    """Random weights in the network's own scale, for tests and timings; `width` shrinks the channels."""
    shapes = expected_shapes({size: max(4, int(c * width)) for size, c in channels(resolution).items()})
    random = np.random.default_rng(seed)
    drawn = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    mapping = {name: drawn[name] / MAPPING_RATE for name in drawn if "g_mapping" in name and "weight" in name}
    return drawn | mapping
