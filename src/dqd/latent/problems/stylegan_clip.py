"""The paper's latent space illumination: StyleGAN makes faces, CLIP says how well they fit three prompts.

    problem = build("elon", weights="weights/ffhq")
    dqd.illuminate(problem.domain, dqd.cma_mega_adam(0.002, 0.002), problem.grid, x0=problem.x0)

For a prompt the paper's loss is L = 1 / cos(image, text). The archive stores 10 (10 - L) of the objective's prompt, and
the measures are the L of the other prompts, on [0, 6]. `scorers.text` has other scores.
`docs/how-to/stylegan-and-clip.md` says which files are needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.compiler import flags
from dqd.domains.problem import Problem
from dqd.inputs.names import check_known, known
from dqd.latent.calibration import RANDOM, calibrated
from dqd.latent.domain import LatentDomain, by_device
from dqd.latent.generators import stylegan, stylegan2
from dqd.latent.judgement import with_judges
from dqd.latent.scorers.text import KINDS, PromptScorer, kind_of, scorer
from dqd.latent.spaces import Extended, Identity, Mapped, Space, Sphere, Whitened
from dqd.latent.weights import files, text_image
from dqd.latent.witness import NOBODY, held_out
from dqd.tessellations.grid import Grid

flags.for_networks()


@dataclass(frozen=True)
class Prompts:
    objective: str
    measures: tuple[str, ...]


BLONDE, CHILD = "A woman with long blonde hair.", "A small child."
PROMPTS = {  # letter by letter as in the authors' code, typing error included
    "elon": Prompts("Elon Musk with short hair.", ("An man with blue eyes.", "A person with red hair.")),
    "beyonce": Prompts("A photo of Beyonce", (BLONDE, CHILD)),
    "lopez": Prompts("A photo of Jennifer Lopez", (BLONDE, CHILD)),
    "lopez-frowning": Prompts("A photo of Jennifer Lopez", (BLONDE, "A frowning person")),
}
SPACES = ("w", "z", "w+", "p", "sphere")
GENERATOR_FILE = "generator.safetensors"
LOADERS: dict[str, Callable[[Path, str], Generator]] = {"stylegan1": stylegan.load, "stylegan2": stylegan2.load}
DTYPES = ("float32", "bfloat16", "float16")

MOST_IMAGES = 37  # per pass on a GPU, as the authors had it
COMPONENTS, SAMPLES = 64, 10_000  # of space "p"

Generator = stylegan.StyleGAN | stylegan2.StyleGAN2


def build(
    prompts: str = "elon",
    *,
    objective: str | None = None,
    measures: Sequence[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    space: str = "w",
    resolution: int = 200,
    fresh_noise: bool = False,
    proper_preprocessing: bool = False,
    text_score: str = "paper",
    judges: Sequence[str | os.PathLike[str]] = (),
    dtype: str | None = None,
) -> Problem[LatentDomain]:
    """The problem of a prompt set, or of other prompts, with the weights of a directory that `dqd convert` filled.

    Args:
        prompts: a set of the paper; `objective` and `measures` replace its prompts.
        space: "w" as in the paper, "z", "w+" (a latent per layer), or guarded: "p" (whitened), "sphere".
        fresh_noise: draw the generator's noise anew for every solution, as the paper did. Scores are then a matter of
            luck, and `problem.judged` asks again with eight other draws. By default the noise is the same for all.
        proper_preprocessing: show CLIP images as it was trained on, not as the paper did.
        text_score: how a text is scored: "paper", "cosine" or "angle". A prompt of two texts, such as
            '"a young face" / "an old face"', is scored by how much better the first one fits.
        judges: directories of other text-image models, held out of the search.
        dtype: float32, bfloat16 or float16; default float32 on a CPU and bfloat16 on a GPU.
    """
    wanted = known("prompt set", prompts, PROMPTS)
    objective = wanted.objective if objective is None else objective
    wanted = Prompts(objective, tuple(wanted.measures if measures is None else measures))
    check_known("space", space, SPACES)
    if weights is None:
        raise ValueError(
            "weights: lsi-stylegan needs those of StyleGAN and CLIP, which you bring yourself; "
            "fill a directory with `dqd convert` and name it (docs/how-to/stylegan-and-clip.md)"
        )
    dtype = dtype or by_device(cpu="float32", gpu="bfloat16")
    check_known("dtype", dtype, DTYPES)
    generator, model, tokenizer = load(weights, dtype)
    held_out = {} if list(judges) == [NOBODY] else {Path(place).name: text_image.load(place, dtype) for place in judges}
    return assemble(
        generator,
        model,
        tokenizer,
        wanted,
        space=space,
        resolution=resolution,
        fresh_noise=fresh_noise,
        proper_preprocessing=proper_preprocessing,
        text_score=text_score,
        judges=held_out,
    )


def load(directory: str | os.PathLike[str], dtype: str) -> tuple[Generator, text_image.Model, Any]:
    """Generator, text-image model and tokenizer of a directory."""
    directory = Path(directory)
    missing = [name for name in (GENERATOR_FILE, text_image.FILE) if not (directory / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"weights: {directory} has no {' and no '.join(missing)}; "
            f"`dqd convert CHECKPOINT --to {directory}` makes them from a StyleGAN checkpoint and a CLIP directory"
        )
    path = directory / GENERATOR_FILE
    kind = files.metadata(path).get("kind", "stylegan1")
    return (
        known("kind of generator", kind, LOADERS)(path, dtype),
        *text_image.load(directory, dtype),
    )


def assemble(
    generator: Generator,
    model: text_image.Model,
    tokenizer: Any,
    prompts: Prompts,
    *,
    space: str = "w",
    resolution: int = 200,
    fresh_noise: bool = False,
    proper_preprocessing: bool = False,
    text_score: str = "paper",
    judges: Mapping[str, tuple[text_image.Model, Any]] | None = None,
) -> Problem[LatentDomain]:
    """The problem of networks at hand; judges by name, each a model with its tokenizer."""
    place = make_space(space, generator)
    texts = tuple(dict.fromkeys((prompts.objective, *prompts.measures)))
    kinds = {prompt: KINDS[kind_of(prompt, text_score)] for prompt in texts}

    def judging(model: text_image.Model, tokenizer: Any) -> PromptScorer:
        scale = jnp.exp(model.logit_scale)
        options: Any = {"kind": text_score, "proper": proper_preprocessing, "scale": scale}
        return scorer(model.image, model.reader(tokenizer), texts, **options)

    domain = LatentDomain(
        place,
        generator,
        (judging(model, tokenizer),),
        f"{kinds[prompts.objective].sign}{prompts.objective}",
        prompts.measures,
        stored=kinds[prompts.objective].stored,
        images=by_device(cpu=4, gpu=MOST_IMAGES),
        fresh=fresh_noise,
    )
    lower, upper = zip(*(kinds[prompt].range for prompt in prompts.measures), strict=True)
    problem = Problem(
        domain,
        Grid(lower, upper, (resolution,) * len(lower)),
        x0=jnp.ones(place.n) if space == "sphere" else jnp.zeros(place.n),
        title=f"StyleGAN and CLIP: {prompts.objective}",
        labels=(prompts.objective, *prompts.measures),
        bounds=place.bounds,
    )
    held = [calibrated(name, judging(*other), domain, _some(generator)) for name, other in (judges or {}).items()]
    return held_out(with_judges(problem), *held)


def _some(generator: Generator) -> Array:
    """Random latents, as the generator was trained on where its mapping network is there."""
    z = jax.random.normal(jax.random.key(1), (RANDOM, generator.latent_shape[0]))
    return z if generator.mapping is None else generator.mapping(z)


def make_space(name: str, generator: Generator) -> Space:
    """A space by name."""
    (size,) = generator.latent_shape
    if name == "w":
        return Identity(size)
    if name == "w+":
        return Extended(generator.num_layers, size)
    if generator.mapping is None:
        raise ValueError(f"space: {name!r} needs the mapping network, which these weights do not hold; choose w or w+")
    if name == "p":
        z = jax.random.normal(jax.random.key(0), (SAMPLES, size))
        return Whitened.fit(generator.mapping(z), min(COMPONENTS, size))
    mapped = Mapped(generator.mapping, size)
    return Sphere(mapped) if name == "sphere" else mapped
