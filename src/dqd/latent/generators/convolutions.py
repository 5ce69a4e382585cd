"""The pieces that generators of the StyleGAN family share. Images are channels-last, (b, h, w, c), which convolutions
of 16-bit numbers on a GPU want; kernels are (height, width, in, out).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import matmul, pytree, static

SLOPE = 0.2  # of every LeakyReLU
MAPPING_RATE = 0.01  # by which the weights of mapping networks were scaled in training (lrmul)


def sizes(resolution: int) -> list[int]:
    """Of the blocks of a generator, in pixels: 4, 8 and so on."""
    return [2**power for power in range(2, int(math.log2(resolution)) + 1)]


def convolve(images: Array, kernel: Array, padding: str | int = "SAME") -> Array:
    """A convolution of stride 1."""
    around = padding if isinstance(padding, str) else [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), around, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def phases(images: Array, kernel: Array) -> Array:
    """A convolution of twice the size, (b, h, w, i) -> (b, h + 1, w + 1, 2, 2, o), whose pixels are not yet in order.

    Every second row of an upsampled image depends on the same two input rows, so one 2 x 2 convolution with a kernel
    (2, 2, i, 2 * 2 * o) finds the four kinds of pixels (even or odd row, even or odd column) at once. It multiplies as
    little as a transposed convolution and has four times as many output channels, of which a GPU is fond.
    """
    found = convolve(images, kernel, padding=1)
    return found.reshape(*found.shape[:3], 2, 2, -1)


def weave(even: Array, odd: Array, axis: int) -> Array:
    """Even and odd pixels along an axis, in turn."""
    both = jnp.stack([even, odd], axis=axis + 1)
    return both.reshape(*even.shape[:axis], 2 * even.shape[axis], *even.shape[axis + 1 :])


def phase_kernel(kernel: np.ndarray, even: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """The kernel (p, p, i, 2 * 2 * o) of all four kinds of pixels from a 3 x 3 kernel (o, i, 3, 3).

    `even` and `odd` are (p, 3): how the p input pixels that such an output pixel sees weigh the kernel's three taps.
    """
    taps = np.stack([even, odd])  # (2 phases, p pixels, 3 taps)
    found = np.einsum("apk,bql,oikl->pqiabo", taps, taps, kernel, optimize=True)
    return found.reshape(*found.shape[:3], -1)


def leaky_relu(values: Array) -> Array:
    return jnp.where(values >= 0, values, SLOPE * values)


def linear(vectors: Array, weight: Array, bias: Array) -> Array:
    return matmul(vectors, weight) + bias


def noises(fixed: Sequence[Array], keys: Array | None) -> list[Array]:
    """The noise of every layer, each (1 or b, h, w, 1): the fixed one (h, w), or fresh from a key for every image.

    Fresh noise is drawn at once for all layers: one small program instead of one per layer.
    """
    if keys is None:
        return [noise[None, :, :, None] for noise in fixed]
    ends = list(accumulate(noise.size for noise in fixed))
    drawn = jax.vmap(lambda key: jax.random.normal(key, (ends[-1],), fixed[0].dtype))(keys)
    starts = [0, *ends[:-1]]
    return [
        drawn[:, start:end].reshape(-1, *noise.shape, 1) for start, end, noise in zip(starts, ends, fixed, strict=True)
    ]


@pytree
class MappingNetwork:
    """z -> w: each vector to length sqrt(n), then layers of LeakyReLU."""

    weights: tuple[Array, ...]  # (in, out)
    biases: tuple[Array, ...]
    gain: float = static(default=1.0)  # of the activation

    def __call__(self, vectors: Array) -> Array:
        vectors = vectors * jax.lax.rsqrt(jnp.mean(vectors**2, axis=-1, keepdims=True) + 1e-8)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            vectors = leaky_relu(linear(vectors, weight, bias)) * self.gain
        return vectors
