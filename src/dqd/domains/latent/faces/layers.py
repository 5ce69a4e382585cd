"""The few layers that all face networks are made of. Images and features are (b, channels, height, width)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def convolution(x: Array, weight: Array, bias: Array | None = None, *, stride: int = 1, padding: int = 0) -> Array:
    """An ordinary convolution: weight (out, in, k, k), bias (out,)."""
    y = jax.lax.conv_general_dilated(
        x, weight, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    return y if bias is None else y + bias[:, None, None]


def pointwise(x: Array, weight: Array, result: Any = None) -> Array:
    """A 1 x 1 convolution, weight (out, in): one matrix product, summed and returned in the type `result`."""
    return jnp.einsum("oc,bchw->bohw", weight, x, preferred_element_type=result)


def depthwise(x: Array, weight: Array) -> Array:
    """A 3 x 3 convolution of each channel by itself, weight (channels, 3, 3).

    Nine shifted products fuse into one pass over memory; XLA's depthwise convolution takes 40 times as long on a CPU.
    """
    height, width = x.shape[2:]
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifts = [(row, column) for row in range(3) for column in range(3)]
    return sum(
        (padded[:, :, i : i + height, j : j + width] * weight[:, i, j][:, None, None] for i, j in shifts),
        start=jnp.zeros((), x.dtype),
    )


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
    return 0.5 * jnp.concatenate([mean, details], axis=1)


def leaky_relu(x: Array) -> Array:
    return jnp.where(x >= 0, x, x * jnp.asarray(0.2, x.dtype))


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
