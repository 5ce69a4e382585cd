"""What is fitted to the generator once, when it is fetched: the whitened space, the layers of the previews, and what
random faces look like to a network that tells faces apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.generators.layers import area_means, haar, resample
from dqd.latent.generators.mobile_stylegan import PREVIEWS, STYLE, features, mapping, preview, synthesis

SAMPLES = 10_000  # styles for the principal components
COMPONENTS = 64  # they hold 88 % of the variance
FACES = 32  # full images for the layers of the previews
SEED = 2021
OTHERS = 256  # random faces to which faces are compared
AT_ONCE = 8


def styles(weights: Any, count: int, seed: int = SEED) -> np.ndarray:
    """Random styles w (count, 512), as the generator was trained on."""
    z = np.random.default_rng(seed).standard_normal((count, STYLE), np.float32)
    return np.asarray(mapping(weights)(jnp.asarray(z)))


def fit_previews(weights: Any, w: np.ndarray, say: Callable[[str], None]) -> dict[int, dict[str, np.ndarray]]:
    """For each preview the 1 x 1 layer that comes nearest to the full image, shrunk, in least squares."""
    products: dict[int, list[Any]] = {pixels: [0.0, 0.0] for pixels in PREVIEWS}
    for number, pairs in enumerate(_pairs(weights, w), start=1):
        for pixels, (x, y) in pairs.items():
            products[pixels][0] += x.T @ x
            products[pixels][1] += x.T @ y
        if number % 8 == 0:
            say(f"preview: {number} of {len(w)} faces")
    return {pixels: _layer(*both) for pixels, both in products.items()}


def _pairs(weights: Any, w: np.ndarray) -> Iterator[dict[int, tuple[np.ndarray, np.ndarray]]]:
    for style in w:
        found = _features_and_targets(weights, style[None])
        yield {pixels: (np.asarray(x, np.float64), np.asarray(y, np.float64)) for pixels, (x, y) in found.items()}


@jax.jit
def _features_and_targets(weights: Any, w: Array) -> dict[int, tuple[Array, Array]]:
    """For each preview, features with a 1 appended (pixels, c + 1) and wavelets of the image wanted (pixels, 12)."""
    image = jnp.clip(synthesis(weights, w), -1, 1)
    found = {}
    for pixels, levels in PREVIEWS.items():
        x = features(weights, w, levels)[0]
        means = area_means(image.shape[-1], pixels)
        wanted = haar(resample(image, means, means))[0]
        rows = jnp.concatenate([x, jnp.ones_like(x[:1])]).reshape(len(x) + 1, -1).T
        found[pixels] = (rows, wanted.reshape(len(wanted), -1).T)
    return found


def _layer(squares: np.ndarray, products: np.ndarray) -> dict[str, np.ndarray]:
    ridge = 1e-6 * np.trace(squares) / len(squares)
    solved = np.linalg.solve(squares + ridge * np.eye(len(squares)), products)
    return {"weight": solved[:-1].T.astype(np.float32), "bias": solved[-1].astype(np.float32)}


def describe(weights: Any, layer: Any, network: Any, look: Callable[[Any, Array], Array]) -> np.ndarray:
    """What a network sees in previews of random faces: (256, its numbers)."""

    @jax.jit
    def seen(weights: Any, layer: Any, network: Any, w: Array) -> Array:
        return look(network, jnp.clip(preview(weights, layer, w, PREVIEWS[256]), -1, 1))

    w = styles(weights, OTHERS, SEED + 1)
    parts = [seen(weights, layer, network, w[i : i + AT_ONCE]) for i in range(0, OTHERS, AT_ONCE)]
    return np.concatenate([np.asarray(part) for part in parts])
