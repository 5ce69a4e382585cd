"""A judge of digits without a gradient that anybody has followed: the nearest real ones.

An image is centred, set upright and brought to one size, then compared with real digits that neither generator nor
classifier has seen, drawn thin, usual and bold. What is far from all of them is no digit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.ndimage import map_coordinates

from dqd.types import matmul, pytree, static

SIDE = 14  # pixels of an image that is compared
SPREAD = (5.6, 4.0)  # standard deviation of the ink down and across, in pixels of 28, after normalisation
STRETCH = (0.6, 2.0)  # a 1 is narrow, and stays so
NEAREST = 3  # of each digit, whose mean distance counts


@pytree
class Neighbours:
    """Log-probabilities of the ten digits, against each other and against "no digit".

        p(digit) ~ exp(-distance to its nearest / scale)        p(no digit) ~ exp(-far / scale)

    Args:
        references: (10, m, 196), bytes: normalised drawings of every digit.
        scale: of squared distances.
        far: the squared distance at which a picture is as likely no digit at all.
    """

    references: Array
    scale: float
    far: float
    names: tuple[str, ...] = static(default=(*(f"digit-{d}" for d in range(10)), "legibility"))

    def scores(self, images: Array) -> Array:
        distances = self.distances((images[:, 0] + 1) / 2)
        far = jnp.full((len(distances), 1), self.far, distances.dtype)
        digits = jax.nn.log_softmax(-jnp.concatenate([distances, far], axis=1) / self.scale)[:, :10]
        return jnp.column_stack([digits, jnp.max(digits, axis=1)])

    def distances(self, ink: Array) -> Array:
        """Mean squared distance to the nearest of each digit: (b, 28, 28) in [0, 1] -> (b, 10)."""
        digits, count, pixels = self.references.shape
        real = self.references.reshape(-1, pixels).astype(ink.dtype) / 255
        seen = normalised(ink)
        squares = jnp.sum(seen**2, 1)[:, None] - 2 * matmul(seen, real.T) + jnp.sum(real**2, 1)
        nearest = -jax.lax.top_k(-squares.reshape(-1, digits, count), NEAREST)[0]
        return jnp.mean(jnp.maximum(nearest, 0), axis=-1)


def normalised(ink: Array) -> Array:
    """Images (b, h, w) in [0, 1] -> (b, 196): centred, upright, of one size; strokes keep their proportion to it."""
    return jax.vmap(_normalised)(ink).reshape(len(ink), -1)


def _normalised(ink: Array) -> Array:
    rows, columns = (jnp.arange(size, dtype=ink.dtype) for size in ink.shape)
    shares = ink / (jnp.sum(ink) + 1e-6)
    down, across = jnp.sum(shares, axis=1), jnp.sum(shares, axis=0)
    y, x = down @ rows, across @ columns  # centre of the ink
    rows, columns = rows - y, columns - x
    height, width, both = down @ rows**2, across @ columns**2, rows @ shares @ columns
    lean = both / (height + 1e-3)
    spreads = (jnp.sqrt(jnp.maximum(spread, 0) + 1e-3) for spread in (height, width - lean * both))
    tall, wide = (jnp.clip(want / got, *STRETCH) for want, got in zip(SPREAD, spreads, strict=True))
    place = 2 * (jnp.arange(SIDE, dtype=ink.dtype) - (SIDE - 1) / 2)

    def at(down: float, across: float) -> Array:
        row, column = jnp.meshgrid((place + down) / tall, (place + across) / wide, indexing="ij")
        return map_coordinates(ink, [row + y, column + lean * row + x], order=1, mode="constant")

    return (at(-0.5, -0.5) + at(-0.5, 0.5) + at(0.5, -0.5) + at(0.5, 0.5)) / 4
