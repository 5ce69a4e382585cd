"""CLIP (Radford et al. 2021): how well an image and a text agree. Image and text tower of the ViT family.

Attention heads are 64 wide in every CLIP of OpenAI's; of others the number is part of their files. Norms, softmax and
features are computed in float32, the rest in the weights' own type.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from dqd.latent.scorers.preprocess import properly
from dqd.latent.scorers.text import Reader, features_of, unit
from dqd.latent.scorers.tokenizer import Tokenizer
from dqd.types import pytree, static

HEAD_WIDTH = 64
EPSILON = 1e-5


def quick_gelu(values: Array) -> Array:
    return values * jax.nn.sigmoid(1.702 * values)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "quick_gelu": quick_gelu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_pytorch_tanh": functools.partial(jax.nn.gelu, approximate=True),
}


@pytree
class Norm:
    """Layer norm."""

    scale: Array
    shift: Array
    epsilon: float = static(default=EPSILON)

    def __call__(self, values: Array) -> Array:
        exact = values.astype(self.scale.dtype)
        mean = jnp.mean(exact, axis=-1, keepdims=True)
        variance = jnp.mean((exact - mean) ** 2, axis=-1, keepdims=True)
        return ((exact - mean) * jax.lax.rsqrt(variance + self.epsilon) * self.scale + self.shift).astype(values.dtype)


@pytree
class Dense:
    weight: Array  # (in, out)
    bias: Array

    def __call__(self, values: Array) -> Array:
        return values @ self.weight + self.bias


@pytree
class Transformer:
    """Every leaf has the layers as its first axis: the layers are scanned, so the program stays small."""

    norm1: Norm
    attention: Dense  # query, key and value at once
    out: Dense
    norm2: Norm
    up: Dense
    down: Dense
    activation: str = static(default="quick_gelu")
    heads: int | None = static(default=None)  # None: each 64 wide

    def __call__(self, tokens: Array, mask: Array | None = None) -> Array:
        """(b, t, width) -> the same. `mask` (t, t) is True where a row may look at a column."""

        def layer(tokens: Array, one: Transformer) -> tuple[Array, None]:
            heads = self.heads or tokens.shape[-1] // HEAD_WIDTH
            tokens = tokens + one.out(attend(*by_head(one.attention(one.norm1(tokens)), heads), mask))
            activated = ACTIVATIONS[self.activation](one.up(one.norm2(tokens)))
            return tokens + one.down(activated), None

        return jax.lax.scan(layer, tokens, self)[0]


def by_head(joined: Array, heads: int) -> tuple[Array, Array, Array]:
    """(b, t, 3 * width), heads side by side -> query, key and value, each (b, t, heads, width / heads)."""
    b, t, _ = joined.shape
    query, key, value = jnp.moveaxis(joined.reshape(b, t, 3, heads, -1), 2, 0)
    return query, key, value


def attend(query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    """(b, q, heads, d) and twice (b, t, heads, d) -> (b, q, heads * d)."""
    logits = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.promote_types(query.dtype, jnp.float32))
    logits = logits / math.sqrt(query.shape[-1])
    logits = logits if mask is None else jnp.where(mask, logits, -jnp.inf)
    shares = jax.nn.softmax(logits, axis=-1).astype(value.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value)
    return mixed.reshape(*mixed.shape[:2], -1)


@pytree
class ImageTower:
    """Images (b, 3, s, s), ready for it -> features (b, f)."""

    patches: Array  # (patch * patch * 3, width)
    class_token: Array  # (width,)
    positions: Array  # (1 + number of patches, width)
    norm_before: Norm
    transformer: Transformer
    norm_after: Norm
    projection: Array  # (width, f)

    @property
    def resolution(self) -> int:
        return self._patch * math.isqrt(len(self.positions) - 1)

    @property
    def _patch(self) -> int:
        return math.isqrt(len(self.patches) // 3)

    def prepare(self, images: Array) -> Array:
        return properly(images, self.resolution)

    def __call__(self, images: Array) -> Array:
        tokens = in_patches(images.astype(self.patches.dtype), self._patch) @ self.patches
        first = jnp.broadcast_to(self.class_token, (len(images), 1, tokens.shape[-1]))
        tokens = self.norm_before(jnp.concatenate([first, tokens], axis=1) + self.positions)
        tokens = self.transformer(tokens)
        return project(self.norm_after(tokens[:, 0]), self.projection)


def in_patches(images: Array, patch: int) -> Array:
    """(b, 3, s, s) -> (b, number of patches, patch * patch * 3)."""
    b, side = len(images), images.shape[-1] // patch
    cut = images.reshape(b, 3, side, patch, side, patch)
    return cut.transpose(0, 2, 4, 3, 5, 1).reshape(b, side * side, -1)


@pytree
class TextTower:
    """Token numbers (b, t) -> features (b, f), read where the end-of-text token, the largest number, stands."""

    tokens: Array  # (vocabulary, width)
    positions: Array  # (t, width)
    transformer: Transformer
    norm_after: Norm
    projection: Array

    def __call__(self, numbers: Array) -> Array:
        t = numbers.shape[1]
        causal = jnp.tril(jnp.ones((t, t), bool))
        tokens = self.transformer(self.tokens[numbers] + self.positions[:t], causal)
        ends = tokens[jnp.arange(len(numbers)), jnp.argmax(numbers, axis=1)]
        return project(self.norm_after(ends), self.projection)


@pytree
class CLIP:
    """Both towers."""

    image: ImageTower
    text: TextTower
    logit_scale: Array  # a logarithm: 100 is the published exp(logit_scale)

    def logits(self, images: Array, numbers: Array) -> Array:
        """Prepared images (b, 3, s, s) and token numbers (p, t) -> (b, p)."""
        cosines = jnp.matmul(unit(self.image(images)), unit(self.text(numbers)).T, precision="highest")
        return jnp.exp(self.logit_scale) * cosines

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """Texts to features."""
        if len(tokenizer) > len(self.text.tokens):
            raise ValueError(
                f"tokenizer: {len(tokenizer):,} tokens, but the text tower knows {len(self.text.tokens):,}"
            )
        return lambda texts: features_of(self.text, jnp.asarray(tokenizer.batch(texts, len(self.text.positions))))


def project(features: Array, projection: Array) -> Array:
    exact = jnp.promote_types(features.dtype, jnp.float32)
    return jnp.matmul(features.astype(exact), projection.astype(exact), precision="highest")
