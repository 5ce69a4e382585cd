"""A picture painted with discs, one over the other; it should look like a spiral."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, normals

SIDE = 16  # pixels
EDGE = 0.05  # how soft a disc's edge is, where the picture goes from -1 to 1


def discs(n: int) -> Function:
    """n / 5 discs of place (2), radius, grey and opacity; measures: how bright the picture is, and how rough."""
    drawn = spiral()

    def score(x: Array) -> tuple[Array, Array]:
        image = painted(x[: n // 5 * 5].reshape(-1, 5))
        rough = jnp.mean(jnp.diff(image, axis=0) ** 2) + jnp.mean(jnp.diff(image, axis=1) ** 2)
        measures = jnp.stack([jnp.mean(image), jnp.sqrt(rough + 1e-6)])
        return 100 / (1 + jnp.mean((image - drawn) ** 2) / np.var(drawn)), measures

    return Function(score, (0.1, 0.0), (0.9, 0.28), normals(3300, n))


def painted(each: Array) -> Array:
    """Discs over grey, the last on top, (SIDE, SIDE): 0 is black, 1 white."""
    across, up = pixels()
    x, y, size, grey, opacity = each.T[:, :, None, None]
    distance = jnp.sqrt((across - 1.2 * jnp.tanh(x)) ** 2 + (up - 1.2 * jnp.tanh(y)) ** 2 + 1e-6)
    covers = jax.nn.sigmoid(opacity + 1) * jax.nn.sigmoid((0.35 * jnp.exp(0.7 * jnp.tanh(size)) - distance) / EDGE)
    picture = jnp.full((SIDE, SIDE), 0.5)
    for cover, light in zip(covers, jax.nn.sigmoid(2 * grey), strict=True):
        picture = picture * (1 - cover) + light * cover
    return picture


def pixels() -> tuple[np.ndarray, np.ndarray]:
    side = (np.arange(SIDE) + 0.5) * 2 / SIDE - 1
    across, up = np.meshgrid(side, side)
    return across, up


def spiral() -> np.ndarray:
    across, up = pixels()
    return 0.5 + 0.5 * np.cos(2 * np.pi * np.hypot(across, up) + np.arctan2(up, across))
