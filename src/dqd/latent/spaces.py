"""Spaces: what the numbers of a solution mean to a generator.

Gradients find the holes of a scorer soon when they may go anywhere. A space that holds only what the generator was
trained on is the best guard: `Whitened` (principal components within a few standard deviations), or `Sphere`.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import matmul, pytree, replace, static


class Space(Protocol):
    """A frozen pytree that turns solutions into latents."""

    @property
    def n(self) -> int:
        """Numbers in a solution."""
        ...

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where solutions should stay, for the search to obey."""
        ...

    def latents(self, solutions: Array) -> Array:
        """(b, n) -> (b, *latent_shape)"""
        ...


class Network(Protocol):
    """A frozen pytree that maps one batch of vectors to another, such as the mapping network of a StyleGAN."""

    def __call__(self, vectors: Array) -> Array: ...


@pytree
class Identity:
    """Solutions are the latents themselves ("w"): w = x. Free, and unguarded.

    Args:
        n: numbers of a latent.
        bounds: (lower, upper) of every number, in the units of latents; None: anywhere.
        radius: greatest length of a latent; longer solutions stand for the point of that length. None: any.
        shape: of a latent, where that is no vector.

        >>> Identity(3).latents(jnp.array([[1.0, 2.0, 3.0]])).tolist()
        [[1.0, 2.0, 3.0]]
        >>> Identity(4, radius=2.0, shape=(2, 2)).latents(jnp.array([[2.0, 2.0, 2.0, 2.0]])).round(2).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]
    """

    n: int = static()
    bounds: tuple[float, float] | None = static(default=None)
    radius: float | None = static(default=None)
    shape: tuple[int, ...] | None = static(default=None)

    def latents(self, solutions: Array) -> Array:
        return _shaped(_within(solutions, self.radius), self.shape)


@pytree
class Mapped:
    """Solutions are the input of a mapping network ("z"): w = network(x).

    Networks of the StyleGAN family first bring x to length sqrt(n), so only its direction counts.

    Args:
        network: a frozen pytree, called with (b, n).
        n: numbers of a solution; x ~ N(0, I) is what the network was trained on.
        bounds: (lower, upper) of every number, in standard deviations; None: anywhere.

        >>> Mapped(jax.tree_util.Partial(jnp.tanh), 2).latents(jnp.zeros((1, 2))).tolist()
        [[0.0, 0.0]]
    """

    network: Network
    n: int = static()
    bounds: tuple[float, float] | None = static(default=None)

    def latents(self, solutions: Array) -> Array:
        return self.network(solutions)


@pytree
class Extended:
    """A latent for every layer of the generator ("w+"), one after the other in the solution: n = layers * size.

    It reaches images that no single latent makes, and many that are none. The search has `layers` times the numbers.

    Args:
        layers: of the generator.
        size: numbers of a latent.
        bounds: (lower, upper) of every number, in the units of latents; None: anywhere.

        >>> space = Extended(layers=2, size=3)
        >>> space.n, space.latents(jnp.arange(6.0)[None]).tolist()
        (6, [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]])
    """

    layers: int = static()
    size: int = static()
    bounds: tuple[float, float] | None = static(default=None)

    @property
    def n(self) -> int:
        return self.layers * self.size

    def latents(self, solutions: Array) -> Array:
        return solutions.reshape(-1, self.layers, self.size)


@pytree
class Whitened:
    """Principal components in units of their standard deviation ("p"), after Zhu et al. 2020.

    Mapping networks end with a LeakyReLU, which bends the cloud of latents. p = w for w >= 0 and w / slope below undoes
    it; there the cloud is nearly a Gaussian, of which the first components are kept:

        w = LeakyReLU(mean + x @ axes)        x ~ N(0, I) over what the generator was trained on

    A slope of 1 leaves latents as they are. Bounds alone leave the corners of a box, which lie far outside of the
    cloud: its points have a length of about sqrt(n), the corners one of 2 sqrt(n). With a `radius`, longer solutions
    stand for the point of that length in their direction.

    `Whitened.fit` makes one from a sample of latents of any shape, by a singular value decomposition. To use it costs
    one product of (b, n) and (n, d).

    Args:
        mean: (d,) of the cloud, before the LeakyReLU.
        axes: (n, d), principal directions as long as their standard deviations.
        explained: share of the variance that the n kept components hold.
        slope: of the LeakyReLU below 0.
        bounds: (lower, upper) of every number, in standard deviations; None: anywhere.
        radius: greatest length of a solution, in standard deviations; None: any.
        shape: of a latent, where that is no vector; d is its product.
    """

    mean: Array
    axes: Array
    explained: float
    slope: float = static(default=0.2)
    bounds: tuple[float, float] | None = static(default=(-2.0, 2.0))
    radius: float | None = static(default=None)
    shape: tuple[int, ...] | None = static(default=None)

    @staticmethod
    def fit(
        latents: Any, components: int, *, slope: float = 0.2, bound: float | None = 2.0, within: float | None = None
    ) -> Whitened:
        """The space of a sample of latents, by its first principal components.

        Args:
            latents: (m, d) or (m, *shape), more rows than components; thousands, where they are cheap to make.
            components: n, the numbers of a solution. Look at `explained` of what you get.
            slope: of the LeakyReLU that the latents came out of; 1 if of none.
            bound: the greatest number of a solution, in standard deviations; None: any.
            within: the share of the sample that the radius of the space holds, such as 0.95; None: no radius.

            >>> sample = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 1.0, 0.1]
            >>> space = Whitened.fit(sample, components=2, slope=1.0)
            >>> np.abs(space.axes).round(1).tolist(), round(space.explained, 2)
            ([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 1.0)
        """
        sample = np.asarray(latents, np.float64)
        whole, sample = sample.shape[1:], sample.reshape(len(sample), -1)
        if sample.shape[1] < 1 or not 1 <= components <= min(sample.shape[1], len(sample) - 1):
            raise ValueError(
                f"Whitened.fit: {components} components need latents (more than {components}, at least {components}), "
                f"got {np.shape(latents)}"
            )
        sample = np.where(sample >= 0, sample, sample / slope)
        mean = sample.mean(axis=0)
        _, lengths, directions = np.linalg.svd(sample - mean, full_matrices=False)  # the widest first
        axes = directions[:components] * (lengths[:components, None] / math.sqrt(len(sample) - 1))
        largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=1)[:, None], axis=1)
        axes = axes * np.where(largest < 0, -1, 1)  # signs do not depend on the library
        space = Whitened(
            jnp.asarray(mean, jnp.float32),
            jnp.asarray(axes, jnp.float32),
            float(np.sum(lengths[:components] ** 2) / np.sum(lengths**2)),
            slope,
            None if bound is None else (-bound, bound),
            shape=whole if len(whole) > 1 else None,
        )
        if within is None:
            return space
        found = (sample - mean) @ axes.T / np.sum(axes**2, axis=1)
        return replace(space, radius=float(np.quantile(np.linalg.norm(found, axis=1), within)))

    @property
    def n(self) -> int:
        return self.axes.shape[0]

    def latents(self, solutions: Array) -> Array:
        p = self.mean + matmul(_within(solutions, self.radius), self.axes)
        return _shaped(jax.nn.leaky_relu(p, self.slope), self.shape)

    def solutions(self, latents: Array) -> Array:
        """The nearest solutions of given latents: what lies outside the kept components is lost."""
        latents = latents.reshape(len(latents), -1)
        p = jnp.where(latents >= 0, latents, latents / self.slope)
        return matmul(p - self.mean, self.axes.T) / jnp.sum(self.axes**2, axis=1)


@pytree
class Sphere:
    """Another space on the sphere of radius sqrt(n), where nearly all of N(0, I) lies in high dimension.

        latents = space(sqrt(n) x / |x|)

    Solutions may lie anywhere but at 0; only their direction counts, and they need no bounds. Start at `jnp.ones(n)`,
    which lies on the sphere.

    Args:
        space: one whose solutions are N(0, I) over what the generator was trained on: `Whitened`, `Mapped`, or
            `Identity` for a generator that is given noise.

        >>> Sphere(Identity(4)).latents(jnp.array([[0.0, 5.0, 0.0, 0.0]])).round(3).tolist()
        [[0.0, 2.0, 0.0, 0.0]]
    """

    space: Space

    @property
    def n(self) -> int:
        return self.space.n

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None

    def latents(self, solutions: Array) -> Array:
        return self.space.latents(solutions * (math.sqrt(self.n) / _length(solutions)))


def _within(solutions: Array, radius: float | None) -> Array:
    """Those that are longer than the radius, made as short."""
    return solutions if radius is None else solutions * jnp.minimum(1, radius / _length(solutions))


def _shaped(latents: Array, shape: tuple[int, ...] | None) -> Array:
    return latents if shape is None else latents.reshape(-1, *shape)


def _length(vectors: Array) -> Array:
    return jnp.sqrt(jnp.sum(vectors**2, axis=1, keepdims=True) + 1e-12)  # 1e-12: a finite slope at 0
