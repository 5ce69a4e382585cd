"""The few layers that all face networks are made of. Images are (b, channels, height, width)."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def convolution(x: Array, weight: Array, stride: int = 1, padding: int = 0) -> Array:
    """An ordinary convolution, channels last: x (b, h, w, in), weight (k, k, in, out). Weights are frozen.

    Inside a loop, XLA's fast convolution on a CPU is reached by this order of the axes alone; another one is a hundred
    times slower. The gradient that JAX derives has another one, hence the gradient by hand.
    """
    return _channels_last(x, weight, stride, (padding, padding))


def _channels_last(x: Array, weight: Array, stride: int, padding: tuple[int, int]) -> Array:
    axes = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), [padding] * 2, dimension_numbers=axes)


def _forward(x: Array, weight: Array, stride: int, padding: int) -> tuple[Array, tuple[int, Array]]:
    return _channels_last(x, weight, stride, (padding, padding)), (x.shape[1], weight)


def _backward(stride: int, padding: int, kept: tuple[int, Array], slope: Array) -> tuple[Array, None]:
    """The slope spread by the stride, convolved with the kernel turned round."""
    size, weight = kept
    zero, spread = jnp.zeros((), slope.dtype), (0, 0, stride - 1)
    slope = jax.lax.pad(slope, zero, [(0, 0, 0), spread, spread, (0, 0, 0)])
    before = len(weight) - 1 - padding
    after = size + padding - slope.shape[1]
    turned = jnp.swapaxes(weight[::-1, ::-1], 2, 3)
    return _channels_last(slope, turned, 1, (before, after)), None


convolution.defvjp(_forward, _backward)


def pointwise(x: Array, weight: Array, result: Any = None) -> Array:
    """A 1 x 1 convolution, weight (out, in): one matrix product, summed and returned in the type `result`."""
    return jnp.einsum("oc,bchw->bohw", weight, x, preferred_element_type=result)


@jax.custom_vjp
def depthwise(x: Array, weight: Array) -> Array:
    """A 3 x 3 convolution of each channel by itself, weight (channels, 3, 3). Weights are frozen.

    Nine shifted products fuse into one pass over memory; XLA's depthwise convolution takes 40 times as long on a CPU.
    """
    height, width = x.shape[2:]
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifts = [(row, column) for row in range(3) for column in range(3)]
    return sum(
        (padded[:, :, i : i + height, j : j + width] * weight[:, i, j][:, None, None] for i, j in shifts),
        start=jnp.zeros((), x.dtype),
    )


# The gradient is such a convolution too. JAX would derive nine passes over memory instead of one.
depthwise.defvjp(
    lambda x, weight: (depthwise(x, weight), weight),
    lambda weight, slope: (depthwise(slope, weight[:, ::-1, ::-1]), None),
)


@jax.custom_vjp
def inverse_haar(x: Array) -> Array:
    """Twice as high and wide, a quarter of the channels: means first, then for each of them three details."""
    b, channels, height, width = x.shape
    c = channels // 4
    mean = x[:, :c]
    vertical, horizontal, diagonal = jnp.moveaxis(x[:, c:].reshape(b, c, 3, height, width), 2, 0)
    top, bottom = (mean + vertical, horizontal + diagonal), (mean - vertical, horizontal - diagonal)
    rows = [jnp.stack([a + d, a - d], axis=-1) for a, d in (top, bottom)]  # (b, c, height, width, 2)
    return (jnp.stack(rows, axis=3) * jnp.asarray(0.5, x.dtype)).reshape(b, c, 2 * height, 2 * width)


def haar(x: Array) -> Array:
    """The other way: half as high and wide, four times the channels."""
    b, c, height, width = x.shape
    (a, right), (below, both) = ((x[:, :, i::2, 0::2], x[:, :, i::2, 1::2]) for i in range(2))
    mean, vertical = a + right + below + both, a + right - below - both
    horizontal, diagonal = a - right + below - both, a - right - below + both
    details = jnp.stack([vertical, horizontal, diagonal], axis=2).reshape(b, 3 * c, height // 2, width // 2)
    return jnp.concatenate([mean, details], axis=1) * jnp.asarray(0.5, x.dtype)


inverse_haar.defvjp(lambda x: (inverse_haar(x), None), lambda _, slope: (haar(slope),))  # a rotation of each 2 x 2


def convolution_shapes(table: Iterable[tuple[str, int, int, int]]) -> dict[str, tuple[int, ...]]:
    """Of the weights and biases of convolutions, each given as (name, out, in, kernel)."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, out, inside, kernel in table:
        shapes |= {f"{name}.weight": (kernel, kernel, inside, out), f"{name}.bias": (out,)}
    return shapes


def resample(images: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Images (b, c, h, w) resampled by a matrix (out, h) for the rows and one (out, w) for the columns."""
    product = jnp.einsum("bchw,vw->bchv", images, columns.astype(images.dtype))
    return jnp.einsum("bchv,uh->bcuv", product, rows.astype(images.dtype))


def area_means(pixels: int, size: int, lower: float = 0.0, upper: float = 1.0) -> np.ndarray:
    """(size, pixels): means over `size` equal parts of the stretch from `lower` to `upper` of the frame."""
    edges = np.linspace(lower * pixels, upper * pixels, size + 1)
    starts, ends = edges[:-1, None], edges[1:, None]
    pixel = np.arange(pixels)[None, :]
    overlap = np.clip(np.minimum(ends, pixel + 1) - np.maximum(starts, pixel), 0, None)
    return (overlap / overlap.sum(axis=1, keepdims=True)).astype(np.float32)


def linear_weights(points: int, size: int, pixels: int) -> np.ndarray:
    """(size, points): linear interpolation of `points` that reach from the first to the last of `pixels` pixels,

    at the centres of `size` equal parts of the frame.
    """
    centres = (np.arange(size) + 0.5) * pixels / size - 0.5
    place = np.clip(centres * (points - 1) / (pixels - 1), 0, points - 1)
    distance = np.abs(place[:, None] - np.arange(points)[None, :])
    return np.clip(1 - distance, 0, None).astype(np.float32)
