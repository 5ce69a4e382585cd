"""SigLIP (Zhai et al. 2023): a text-image model like CLIP, trained to tell pairs that belong together one by one.

Images have no class token: a learned query attends to all patches. Texts are read in both directions, filled up to the
full length, and understood by their last token.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from dqd.latent.scorers.clip import ACTIVATIONS, Dense, Norm, Transformer, attend, by_head, in_patches, project
from dqd.latent.scorers.preprocess import as_siglip
from dqd.latent.scorers.text import Reader, features_of
from dqd.latent.scorers.unigram import Unigram
from dqd.types import pytree, static


@pytree
class Pooling:
    """Tokens (b, t, width) -> (b, width), by one query for all images."""

    probe: Array  # (width,)
    attention: Dense  # query, key and value at once
    out: Dense
    norm: Norm
    up: Dense
    down: Dense
    activation: str = static()
    heads: int = static()

    def __call__(self, tokens: Array) -> Array:
        query, _, _ = by_head(self.attention(self.probe[None, None]), self.heads)
        _, key, value = by_head(self.attention(tokens), self.heads)
        queries = jnp.broadcast_to(query, (len(tokens), *query.shape[1:]))
        found = self.out(attend(queries, key, value))[:, 0]
        return found + self.down(ACTIVATIONS[self.activation](self.up(self.norm(found))))


@pytree
class ImageTower:
    """Images (b, 3, s, s), ready for it -> features (b, f)."""

    patches: Dense  # from patch * patch * 3
    positions: Array  # (number of patches, width)
    transformer: Transformer
    norm_after: Norm
    pooling: Pooling

    @property
    def resolution(self) -> int:
        return self._patch * math.isqrt(len(self.positions))

    @property
    def _patch(self) -> int:
        return math.isqrt(len(self.patches.weight) // 3)

    def prepare(self, images: Array) -> Array:
        return as_siglip(images, self.resolution)

    def __call__(self, images: Array) -> Array:
        cut = in_patches(images.astype(self.positions.dtype), self._patch)
        tokens = self.transformer(self.patches(cut) + self.positions)
        return self.pooling(self.norm_after(tokens)).astype(self.norm_after.scale.dtype)


@pytree
class TextTower:
    """Token numbers (b, t), filled up -> features (b, f)."""

    tokens: Array  # (vocabulary, width)
    positions: Array  # (t, width)
    transformer: Transformer
    norm_after: Norm
    head: Dense

    def __call__(self, numbers: Array) -> Array:
        tokens = self.transformer(self.tokens[numbers] + self.positions)
        return project(self.norm_after(tokens[:, -1]), self.head.weight) + self.head.bias


@pytree
class SigLIP:
    """Both towers. The bias of its log-odds is left out: it is the same for all texts."""

    image: ImageTower
    text: TextTower
    logit_scale: Array

    def reader(self, tokenizer: Unigram) -> Reader:
        """Texts to features."""
        if len(tokenizer) > len(self.text.tokens):
            raise ValueError(
                f"tokenizer: {len(tokenizer):,} tokens, but the text tower knows {len(self.text.tokens):,}"
            )
        return lambda texts: features_of(self.text, jnp.asarray(tokenizer.batch(texts, len(self.text.positions))))
