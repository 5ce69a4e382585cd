"""How well an image fits a text, by a text-image model: the paper's loss, the cosine, the angle, or one text against
another.

| kind | score | better |
|---|---|---|
| paper | 1 / cos(image, text), as Fontaine & Nikolaidis (2021) had it | smaller |
| cosine | 100 cos(image, text) | larger |
| angle | the spherical distance between image and text, in degrees | smaller |
| contrast | log-odds of a first text against a second, as the model was trained to tell texts apart | larger |

A prompt of two texts, "a young face" / "an old face", is always a contrast: what both have in common cancels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from dqd.inputs.names import check_known
from dqd.latent.scorers.preprocess import as_the_paper
from dqd.types import pytree, static


class Kind(NamedTuple):
    """What a kind of score means where it is searched."""

    sign: str  # before the objective: "-" where smaller is better
    stored: tuple[float, float]  # scale and offset of the raw objective
    range: tuple[float, float]  # of a measure


KINDS = {
    "paper": Kind("-", (10.0, 100.0), (0.0, 6.0)),  # 10 (10 - L)
    "cosine": Kind("", (1.0, 0.0), (0.0, 50.0)),
    "angle": Kind("-", (1.0, 90.0), (60.0, 100.0)),  # degrees that are nearer than a right angle
    "contrast": Kind("", (1.0, 0.0), (-10.0, 10.0)),
}
CHOICES = ("paper", "cosine", "angle")
BETWEEN = re.compile(r"\s+/\s+")
SURE = 100.0  # exp(logit_scale) of CLIP


class Tower(Protocol):
    """The image half of a text-image model."""

    @property
    def resolution(self) -> int: ...

    def prepare(self, images: Array) -> Array:
        """Images in [-1, 1] as the model was trained on."""
        ...

    def __call__(self, images: Array) -> Array:
        """Features (b, f) of prepared images."""
        ...


class Reader(Protocol):
    """A text tower with its tokenizer: texts become features."""

    def __call__(self, texts: Sequence[str]) -> Array: ...


def texts_of(prompt: str) -> tuple[str, ...]:
    """The one text of a prompt, or the two that a stroke stands between.

    >>> texts_of('"a young face" / "an old face"'), texts_of("either/or")
    (('a young face', 'an old face'), ('either/or',))
    """
    parts = BETWEEN.split(prompt)
    if len(parts) > 2:
        raise ValueError(f"prompt: expected one text, or two with a stroke between them, got {prompt!r}")
    return tuple(part.strip().strip('"').strip() if len(parts) == 2 else part for part in parts)


def kind_of(prompt: str, chosen: str) -> str:
    check_known("text score", chosen, CHOICES)
    return "contrast" if len(texts_of(prompt)) == 2 else chosen


@pytree
class PromptScorer:
    """A score for every prompt.

    Where the cosine is not above 0 the paper's formula would turn round, and call the worst match the best: L is
    infinite there. Such an image is not kept, and counted as not finite. The other kinds have no such place.

    Args:
        tower: of images.
        texts: (number of texts, f), of length 1, in the order of the prompts; of a contrast two.
        names: the prompts.
        proper: show the model what it was trained on, not what the paper did.
        kinds: of each prompt; none: all as in the paper.
        scale: of log-odds, the model's own.
    """

    tower: Tower
    texts: Array
    names: tuple[str, ...] = static()
    proper: bool = static(default=False)
    kinds: tuple[str, ...] = static(default=())
    scale: Any = SURE

    def scores(self, images: Array) -> Array:
        cosines, columns, at = self.cosines(images), [], 0
        for kind in self.kinds or ("paper",) * len(self.names):
            first, second = cosines[:, at], cosines[:, at + 1] if kind == "contrast" else None
            columns.append(SCORES[kind](self, first, second))
            at += 1 if second is None else 2
        return jnp.stack(columns, axis=1)

    def cosines(self, images: Array) -> Array:
        """(b, 3, h, w) in [-1, 1] -> (b, number of texts)"""
        shown = self.tower.prepare(images) if self.proper else as_the_paper(images, self.tower.resolution)
        return jnp.matmul(unit(self.tower(shown)), self.texts.T, precision="highest")


SCORES: dict[str, Callable[[PromptScorer, Array, Any], Array]] = {
    "paper": lambda _, cosine, __: jnp.where(cosine > 0, 1 / jnp.where(cosine > 0, cosine, 1), jnp.inf),
    "cosine": lambda _, cosine, __: 100 * cosine,
    "angle": lambda _, cosine, __: jnp.degrees(jnp.arccos(jnp.clip(cosine, -1 + 1e-6, 1 - 1e-6))),
    "contrast": lambda self, cosine, other: self.scale * (cosine - other),
}


def scorer(
    tower: Tower,
    reader: Reader,
    prompts: Sequence[str],
    *,
    kind: str = "paper",
    proper: bool = False,
    scale: Any = SURE,
) -> PromptScorer:
    """A scorer of these prompts; the text tower has done its work then and is not kept."""
    kinds = tuple(kind_of(prompt, kind) for prompt in prompts)
    texts = [text for prompt in prompts for text in texts_of(prompt)]
    for text in texts:
        if not text.strip() or text.startswith("-"):
            raise ValueError(f"prompt: expected words that do not begin with a minus, got {text!r}")
    return PromptScorer(tower, reader(texts), tuple(prompts), proper, kinds, scale)


def unit(features: Array) -> Array:
    return features / jnp.linalg.norm(features, axis=-1, keepdims=True)


features_of = jax.jit(lambda tower, *inputs: unit(tower(*inputs)))
