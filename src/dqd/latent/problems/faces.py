"""`lsi-faces`: a map of faces, chosen by the names of scores.

On a CPU the search looks at a preview of each face; at the end the full network draws and scores every elite anew,
and only those numbers count. On a GPU the full network is used throughout.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from dqd.compiler import flags
from dqd.domains.problem import Problem
from dqd.inputs.names import check_known
from dqd.latent.domain import LatentDomain, Scorer, by_device
from dqd.latent.generators import mobile_stylegan
from dqd.latent.generators.mobile_stylegan import FULL, STYLE, MobileStyleGAN, mapping
from dqd.latent.generators.preview import COMPONENTS, OTHERS
from dqd.latent.problems.scores import Score, grid, label
from dqd.latent.scorers import face_parser, faceres
from dqd.latent.scorers.age_gender import AgeAndGender, age_shapes, gender_shapes
from dqd.latent.scorers.face_parser import FaceParser
from dqd.latent.scorers.faceres import SecondAge
from dqd.latent.spaces import Identity, Mapped, Space, Whitened
from dqd.latent.views import seen_by
from dqd.latent.weights import face_files, files
from dqd.latent.witness import Judge, with_held_out
from dqd.types import PyTree, replace

flags.for_networks()

SCORES = {  # ranges: about the 1 % and 99 % quantiles of 400 random faces
    "age": Score("predicted age (years)", 0.0, 75.0),
    "gender": Score("gender score (log-odds)", -36.0, 14.0),
    "hair-area": Score("hair (% of the frame)", 0.0, 50.0),
    "hair-redness": Score("hair: nearness to copper red (%)", 30.0, 90.0),
    "hair-darkness": Score("darkness of hair (%)", 15.0, 85.0),
    "glasses": Score("glasses (% of the frame)", 0.0, 8.0),
    "hat": Score("hat (% of the frame)", 0.0, 32.0),
    "hair-to-skin": Score("hair: redder than the skin (%)", -60.0, 60.0),
    "hair-to-background": Score("hair: redder than the background (%)", -60.0, 100.0),
    "identity": Score("how unlike random faces (degrees)", 42.0, 66.0),
}
OBJECTIVE, MEASURES = "hair-redness", ("age", "hair-area")
RESOLUTION = 25
PREVIEW = 256  # pixels: ages 0.97 correlated with those of the full images; with 128, 0.87
SPACES = ("p", "w", "z")
YEARS = 10.0  # apart, both age networks still agree: on random faces the mean difference is 7
TRUNCATION = 0.7  # of the length of a typical latent: all of "p" lies within. Further out, long searches find noise


def build(
    *,
    objective: str = OBJECTIVE,
    measures: Sequence[str] = MEASURES,
    space: str = "p",
    resolution: int = RESOLUTION,
    preview: bool | int | None = None,
    dtype: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    judges: Sequence[str] | None = None,
    views: Sequence[str] = (),
) -> Problem[LatentDomain]:
    """The map of faces with the best `objective` for all combinations of `measures`.

        problem = build(objective="-age", measures=("hair-area", "glasses"))

    With a preview the scores of the search are provisional: `problem.judged(result.archive)` is what counts. It draws
    every elite in full, which on two cores takes nearly as long as a search of 50 iterations (docs/latent.md).

    Args:
        objective, measures: names of scores, see SCORES for their units; a minus in front, such as "-age", negates one.
        space: "p", 64 principal components in standard deviations, whitened and guarded; "w" and "z", 512 numbers, are
            free, and their elites often fool the scorers.
        resolution: cells along each measure.
        preview: search with a preview of 256 pixels (True), or of 128; False: with the full network. Default: on a CPU.
        dtype: of the networks; default float32 on a CPU, bfloat16 on a GPU.
        weights: their folder; default: where `dqd fetch faces` put them.
        views: looks at an image whose mean counts, besides the image as it is: "flip", "crop", "noise", "balance" (of
            white). Each is another pass of the scorers.
        judges: names of held-out judges; by default "faceres", a second age network, where an age is searched and it
            was fetched; ("none",): nobody. Who searches by `identity`, which that network sees, has no such judge.
    """
    for kind, name in (("objective", objective), *(("measure", name) for name in measures)):
        check_known(kind, name.removeprefix("-"), SCORES)
    check_known("space", space, SPACES)
    folder = None if weights is None else Path(weights)
    pixels = _pixels(by_device(cpu=True, gpu=False) if preview is None else preview)
    dtype = dtype or by_device(cpu="float32", gpu="bfloat16")
    full = generator(dtype=dtype, source=folder)
    domain = LatentDomain(
        make_space(space, full, folder),
        full,
        seen_by(scorers(dtype, folder, {name.removeprefix("-") for name in (objective, *measures)}), views),
        objective,
        tuple(measures),
        images=by_device(cpu=1, gpu=36),
    )
    searched = domain if pixels == FULL else _previewed(domain, pixels, folder)
    problem = Problem(
        domain=searched,
        grid=grid(measures, SCORES, resolution),
        x0=jnp.zeros(domain.space.n),
        title=f"Faces: {objective} by {' and '.join(measures)}"
        + (f", searched by a preview of {pixels} pixels" if pixels != FULL else ""),
        labels=tuple(label(name, SCORES) for name in (objective, *measures)),
        bounds=domain.space.bounds,
        final=None if pixels == FULL else domain,
    )
    return with_held_out(problem, _judges(domain, folder, judges), judges)


def _judges(domain: LatentDomain, source: Path | None, asked: Sequence[str] | None) -> dict[str, Callable[[], Judge]]:
    """Those that there are. The second age network is none where it was searched by, or never fetched."""
    searched = any("identity" in scorer.names for scorer in domain.scorers)
    if searched and asked and "faceres" in asked:
        raise ValueError("judges: faceres is what `identity` looks with, so a search by that has seen it; ask nobody")
    missing = asked is None and not face_files.there("faceres", source)
    return {} if searched or missing else {"faceres": lambda: second_age(source)}


def second_age(source: Path | None = None) -> Judge:
    """The held-out judge of ages."""
    return Judge("faceres", SecondAge(_tree("faceres", faceres.shapes(), source)), {"age": YEARS})


def _pixels(preview: bool | int) -> int:
    pixels = FULL if preview is False else PREVIEW if preview is True else preview
    if pixels not in (FULL, *mobile_stylegan.PREVIEWS):
        raise ValueError(f"preview: expected True, False, 128 or 256 pixels, got {preview!r}")
    return pixels


def _previewed(domain: LatentDomain, pixels: int, source: Path | None) -> LatentDomain:
    layer = _tree(f"preview{pixels}", mobile_stylegan.preview_shapes(pixels), source)
    return replace(domain, generator=replace(domain.generator, layer=layer, pixels=pixels))


# Parts ----------------------------------------------------------------------------------------------------------------


def generator(*, dtype: str = "float32", source: Path | None = None) -> MobileStyleGAN:
    return MobileStyleGAN(_tree("generator", mobile_stylegan.shapes(), source), dtype=dtype)


def scorers(dtype: str = "float32", source: Path | None = None, wanted: Collection[str] = ()) -> tuple[Scorer, ...]:
    """All that judge faces; how unlike others a face is only if that is wanted."""
    age, gender = _tree("age", age_shapes(), source), _tree("gender", gender_shapes(), source)
    usual = AgeAndGender(age, gender), FaceParser(_tree("parser", face_parser.shapes(), source), dtype=dtype)
    if "identity" not in wanted:
        return usual
    others = _tree("others", {"descriptors": (OTHERS, faceres.CHANNELS[-1])}, source)["descriptors"]
    return *usual, faceres.Identity(_tree("faceres", faceres.shapes(), source), others)


def make_space(name: str, network: MobileStyleGAN, source: Path | None = None) -> Space:
    if name == "w":
        return Identity(STYLE)
    if name == "z":
        return Mapped(mapping(network.weights), STYLE)
    shapes = {"mean": (STYLE,), "axes": (COMPONENTS, STYLE), "explained": (1,)}
    arrays = _tree("space", shapes, source)
    radius = TRUNCATION * math.sqrt(COMPONENTS)
    return Whitened(arrays["mean"], arrays["axes"], float(arrays["explained"][0]), radius=radius)


def _tree(name: str, shapes: files.Shapes, source: Path | None) -> PyTree:
    return jax.tree.map(jnp.asarray, face_files.read(name, shapes, source))
