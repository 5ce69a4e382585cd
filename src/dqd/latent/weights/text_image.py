"""Text-image models by their folder: what `dqd convert` has written, CLIP or SigLIP, with its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from jax import Array

from dqd.inputs.names import known
from dqd.latent.scorers.text import Reader, Tower
from dqd.latent.scorers.tokenizer import Tokenizer
from dqd.latent.scorers.unigram import Unigram
from dqd.latent.weights import clip_weights, files, siglip_weights

FILE = "clip.safetensors"  # of either kind


class Model(Protocol):
    """Both towers of a text-image model."""

    @property
    def image(self) -> Tower: ...

    @property
    def logit_scale(self) -> Array: ...

    def reader(self, tokenizer: Any) -> Reader: ...


MODELS: dict[str, tuple[Callable[..., Model], Callable[[Path], Any]]] = {
    "clip": (clip_weights.load, Tokenizer.load),
    "siglip": (siglip_weights.load, Unigram.load),
}


def load(directory: str | os.PathLike[str], dtype: str) -> tuple[Model, Any]:
    """A model and its tokenizer."""
    folder = Path(directory)
    if not (folder / FILE).is_file():
        raise FileNotFoundError(f"{folder} has no {FILE}; `dqd convert SOURCE --to {folder}` makes it of a checkpoint")
    kind = files.metadata(folder / FILE).get("kind", "clip")
    model, tokenizer = known("kind of text-image model", kind, MODELS)
    return model(folder / FILE, dtype), tokenizer(folder)
