"""Generators and scorers small enough to check by hand."""

import jax
import jax.numpy as jnp

from dqd.latent import Identity, LatentDomain
from dqd.types import pytree, static


@pytree
class Painter:
    """Latents of 4 numbers become images of 6 x 6 pixels; `strength` times noise is added when keys are given."""

    weights: jax.Array  # (4, channels * 36)
    strength: float = 0.1
    channels: int = static(default=3)
    latent_shape = (4,)
    resolution = 6

    def images(self, latents, key):
        images = jnp.tanh(latents @ self.weights).reshape(-1, self.channels, 6, 6)
        if key is None:
            return images
        noise = jax.vmap(lambda one: jax.random.normal(one, images.shape[1:]))(key)
        return images + self.strength * noise


@pytree
class Light:
    """The mean brightness of the upper and of the lower half, and the contrast."""

    names: tuple[str, ...] = static(default=("upper", "lower", "contrast"))

    def scores(self, images):
        rows = images.mean(axis=(1, 3))  # (b, h)
        half = rows.shape[1] // 2
        return jnp.stack([rows[:, :half].mean(1), rows[:, half:].mean(1), images.var(axis=(1, 2, 3))], axis=1)


@pytree
class Never:
    """A scorer that must not be called when none of its names is wanted."""

    names: tuple[str, ...] = static(default=("never",))

    def scores(self, images):
        raise AssertionError("called although not needed")


def domain(**options) -> LatentDomain:
    weights = jax.random.normal(jax.random.key(0), (4, 3 * 36))
    options = {"objective": "contrast", "measures": ("upper", "lower")} | options
    return LatentDomain(Identity(4), Painter(weights), (Light(), Never()), **options)


def solutions(count: int) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (count, 4))


@jax.jit
def evaluate(domain, solutions):
    return domain.evaluate(solutions)
