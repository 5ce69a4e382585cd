"""`lsi-faces`: a map of faces, chosen by the names of scores.

On a CPU the search looks at a preview of each face; at the end the full network draws and scores every elite anew,
and only those numbers count. On a GPU the full network is used throughout.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from dqd.compiler import flags
from dqd.domains.problem import Problem
from dqd.inputs.names import check_known
from dqd.latent.domain import LatentDomain, by_device
from dqd.latent.generators import mobile_stylegan
from dqd.latent.generators.mobile_stylegan import FULL, STYLE, MobileStyleGAN, mapping
from dqd.latent.generators.preview import COMPONENTS
from dqd.latent.problems.scores import Score, grid, label
from dqd.latent.scorers import face_parser
from dqd.latent.scorers.age_gender import AgeAndGender, age_shapes, gender_shapes
from dqd.latent.scorers.face_parser import FaceParser
from dqd.latent.spaces import Identity, Mapped, Space, Whitened
from dqd.latent.weights import face_files, files
from dqd.types import PyTree, replace

# Matrix products by Triton make XLA (seen with JAX 0.11.2) abort while it compiles these networks for a GPU.
flags.add_flag(flags.NO_TRITON_PRODUCTS)

SCORES = {  # ranges: about the 1 % and 99 % quantiles of 400 random faces
    "age": Score("predicted age (years)", 0.0, 75.0),
    "gender": Score("gender score (log-odds)", -36.0, 14.0),
    "hair-area": Score("hair (% of the frame)", 0.0, 50.0),
    "hair-redness": Score("hair: nearness to copper red (%)", 30.0, 90.0),
    "hair-darkness": Score("darkness of hair (%)", 15.0, 85.0),
    "glasses": Score("glasses (% of the frame)", 0.0, 8.0),
    "hat": Score("hat (% of the frame)", 0.0, 32.0),
}
OBJECTIVE, MEASURES = "hair-redness", ("age", "hair-area")
RESOLUTION = 25
PREVIEW = 256  # pixels: ages 0.97 correlated with those of the full images; with 128, 0.87
SPACES = ("p", "w", "z")
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
        scorers(dtype, folder),
        objective,
        tuple(measures),
        images=by_device(cpu=1, gpu=36),
    )
    searched = domain if pixels == FULL else _previewed(domain, pixels, folder)
    return Problem(
        domain=searched,
        grid=grid(measures, SCORES, resolution),
        x0=jnp.zeros(domain.space.n),
        title="MobileStyleGAN faces" + (f", searched by a preview of {pixels} pixels" if pixels != FULL else ""),
        labels=tuple(label(name, SCORES) for name in (objective, *measures)),
        bounds=domain.space.bounds,
        final=None if pixels == FULL else domain,
    )


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


def scorers(dtype: str = "float32", source: Path | None = None) -> tuple[AgeAndGender, FaceParser]:
    age, gender = _tree("age", age_shapes(), source), _tree("gender", gender_shapes(), source)
    return AgeAndGender(age, gender), FaceParser(_tree("parser", face_parser.shapes(), source), dtype=dtype)


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
