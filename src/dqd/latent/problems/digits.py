"""`lsi-digits`: handwritten digits from a small generator of our own, shipped with the package.

The decoder of a variational autoencoder paints 28 x 28 pixels from 16 numbers; a classifier and plain image moments
judge them. `scripts/train_digits.py` trained both on digits of scikit-learn. Others of these, which no network has
seen, are the references of a held-out judge.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.domains.problem import Problem
from dqd.inputs.names import known
from dqd.latent.domain import LatentDomain
from dqd.latent.generators.layers import convolution
from dqd.latent.problems.scores import Score, grid, label
from dqd.latent.scorers.neighbours import Neighbours
from dqd.latent.spaces import Space, Sphere, Whitened
from dqd.latent.witness import Judge, with_held_out
from dqd.safe import load_safetensors
from dqd.types import pytree, replace, static

SIZE = 28
Layers = Sequence[tuple[Array, Array]]  # weight (inputs, outputs) and bias (outputs,)

OBJECTIVE, MEASURES = "digit-3", ("ink", "slant")
RESOLUTION = 100
SCORES = {
    "ink": Score("ink (% of the paper)", 0.0, 45.0),
    "slant": Score("slant (rightwards per height)", -1.2, 1.2),
    "width": Score("width (standard deviation of the ink, pixels)", 2.0, 8.0),
    "height": Score("height (standard deviation of the ink, pixels)", 4.0, 8.0),
    "legibility": Score("log-probability of the likeliest digit", -5.0, 0.0),
    **{f"digit-{d}": Score(f"log-probability of a {d}", -10.0, 0.0) for d in range(10)},
}
STORED = (10.0, 100.0)  # 100: the classifier is certain; 0: it gives the digit a chance of e^-10


@pytree
class Decoder:
    """Latents (b, 16) -> grey images (b, 1, 28, 28). It has no noise."""

    layers: Layers
    latent_shape: tuple[int, ...] = static(default=(16,))
    resolution: int = static(default=SIZE)

    def images(self, latents: Array, key: Array | None) -> Array:
        return jnp.tanh(forward(self.layers, latents) / 2).reshape(-1, 1, SIZE, SIZE)  # 2 sigmoid - 1


@pytree
class Classifier:
    """Log-probabilities of the ten digits, against each other and against "no digit"."""

    layers: Layers
    names: tuple[str, ...] = static(default=(*(f"digit-{d}" for d in range(10)), "legibility"))

    def scores(self, images: Array) -> Array:
        digits = jax.nn.log_softmax(logits(self.layers, ink_of(images)))[:, :10]
        return jnp.column_stack([digits, jnp.max(digits, axis=1)])


@pytree
class Strokes:
    """What can be measured with a ruler, from the moments of the ink: no network that could be deceived."""

    names: tuple[str, ...] = static(default=("ink", "slant", "width", "height"))

    def scores(self, images: Array) -> Array:
        ink = ink_of(images)
        total = jnp.sum(ink, axis=(1, 2)) + 1e-6
        place = jnp.arange(SIZE, dtype=ink.dtype) - (SIZE - 1) / 2
        columns, rows = jnp.sum(ink, axis=1) / total[:, None], jnp.sum(ink, axis=2) / total[:, None]
        x, y = columns @ place, rows @ place  # centre of the ink
        xx, yy = columns @ place**2 - x * x, rows @ place**2 - y * y
        xy = jnp.einsum("bij,i,j->b", ink, place, place) / total - x * y
        slant = -xy / (yy + 1e-6)  # rows count downwards
        width, height = (jnp.sqrt(jnp.maximum(spread, 0) + 1e-6) for spread in (xx, yy))
        return jnp.stack([100 * total / SIZE**2, slant, width, height], axis=1)


def build(
    objective: str = OBJECTIVE,
    measures: Sequence[str] = MEASURES,
    *,
    space: str = "p",
    resolution: int = RESOLUTION,
    judges: Sequence[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
) -> Problem[LatentDomain]:
    """The problem of a map of digits: 16 numbers become an image of 28 x 28 pixels.

    The archive stores 100 + 10 times the objective. For a log-probability, 100 means that the classifier is certain,
    and 0 a chance of e^-10. The networks come with the package.

    Args:
        objective: a score; "digit-3": how surely the classifier reads a 3. SCORES lists all of them with
            their units; a minus in front negates one.
        measures: scores, one for each axis of the grid.
        space: "p" stays within 2 standard deviations of what the generator was trained on, and as near to the mean as
            95 % of that; "free" does not; "sphere" keeps solutions on the sphere of radius sqrt(16).
        resolution: cells along each measure.
        judges: names of held-out judges; by default "neighbours" where a digit is searched; ("none",): nobody.
        weights: a file of other networks that `scripts/train_digits.py` has made.

        >>> problem = build("digit-8", ["width", "-slant"], resolution=20)
        >>> problem.grid.lower, problem.x0.shape, problem.domain.render(problem.x0[None]).shape
        ((2.0, -1.2), (16,), (1, 28, 28, 3))
    """
    tensors = _tensors(Path(__file__).with_name("digits.safetensors") if weights is None else Path(weights))
    chosen = known("space", space, _spaces(tensors))
    domain = LatentDomain(
        chosen,
        Decoder(_layers("decoder", tensors)),
        (Classifier(_layers("classifier", tensors)), Strokes()),
        objective,
        tuple(measures),
        stored=STORED,
        images=256,
    )
    problem = Problem(
        domain,
        grid(domain.measures, SCORES, resolution),
        x0=jnp.ones(chosen.n) if space == "sphere" else jnp.zeros(chosen.n),
        title=f"{domain.objective} by {' and '.join(domain.measures)}",
        labels=(f"100 + 10 x {label(domain.objective, SCORES)}", *(label(name, SCORES) for name in domain.measures)),
        bounds=chosen.bounds,
    )
    return with_held_out(problem, {"neighbours": neighbours}, judges)


def neighbours() -> Judge:
    """The nearest of 700 real digits that neither generator nor classifier has seen.

    It agrees if it gives a digit at least half the chance that the classifier does.
    """
    tensors = load_safetensors(Path(__file__).with_name("digits_judge.safetensors"))
    scale, far = tensors["scale"].tolist()
    scorer = Neighbours(jnp.asarray(tensors["references"]), scale, far)
    return Judge("neighbours", scorer, dict.fromkeys(scorer.names, math.log(2)))


def forward(layers: Layers, vectors: Array) -> Array:
    """Dense layers with SiLU between them."""
    for weight, bias in layers[:-1]:
        vectors = jax.nn.silu(vectors @ weight + bias)
    weight, bias = layers[-1]
    return vectors @ weight + bias


def logits(layers: Layers, ink: Array, convolve: Callable[..., Array] = convolution) -> Array:
    """(b, 28, 28) in [0, 1] -> (b, 11); the last class is "no digit". Convolutions first, then dense layers."""
    x = ink[..., None]
    kernels = sum(weight.ndim == 4 for weight, _ in layers)
    for weight, bias in layers[:kernels]:
        x = jax.nn.silu(convolve(x, weight.astype(x.dtype), 2, len(weight) // 2) + bias)
    return forward(layers[kernels:], x.reshape(len(ink), -1))


def ink_of(images: Array) -> Array:
    """Grey images (b, 1, h, w) in [-1, 1] -> ink (b, h, w) in [0, 1]."""
    return (images[:, 0] + 1) / 2


def _spaces(tensors: dict[str, np.ndarray]) -> dict[str, Space]:
    mean, axes = (jnp.asarray(tensors[f"space.{name}"]) for name in ("mean", "axes"))
    free = Whitened(mean, axes, 1.0, 1.0, None)
    radius = float(tensors["space.radius"][0]) if "space.radius" in tensors else None
    kept = replace(free, bounds=(-2.0, 2.0), radius=radius)
    return {"p": kept, "free": free, "sphere": Sphere(free)}


def _layers(network: str, tensors: dict[str, np.ndarray]) -> Layers:
    count = sum(name.startswith(f"{network}.") for name in tensors) // 2
    numbers = {name: jnp.asarray(tensor, jnp.float32) for name, tensor in tensors.items()}
    return tuple((numbers[f"{network}.{i}.weight"], numbers[f"{network}.{i}.bias"]) for i in range(count))


@functools.cache
def _tensors(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise FileNotFoundError(f"weights: {path}: no such file")
    return load_safetensors(path)
