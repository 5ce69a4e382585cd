"""Options that several commands share, most of them for latent domains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

CheckpointSeconds = Annotated[float, typer.Option(min=0, help="Seconds between two checkpoints.")]
Seconds = Annotated[float | None, typer.Option(min=0.001, help="Stop after so many seconds, to go on another time.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")]

Objective = Annotated[
    str | None, typer.Option(metavar="NAME", help="lsi: the score (or prompt) to maximise; -NAME minimises it.")
]
Measures = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="lsi: a score (or prompt) to spread over; repeatable.")
]
SpaceName = Annotated[str | None, typer.Option(metavar="NAME", help="lsi: what is searched, such as p, w or sphere.")]
Weights = Annotated[Path | None, typer.Option(metavar="DIR", help="lsi: folder of the networks.")]
Prompts = Annotated[str | None, typer.Option(metavar="NAME", help="lsi-stylegan: a prompt set of the paper.")]
Preview = Annotated[
    bool | None, typer.Option("--preview/--full", help="lsi-faces: search with the preview or the full network.")
]
FreshNoise = Annotated[
    bool | None, typer.Option("--fresh-noise/--fixed-noise", help="lsi-stylegan: noise for every solution, or for all.")
]
Proper = Annotated[
    bool | None, typer.Option("--proper-preprocessing/--paper-preprocessing", help="lsi-stylegan: what CLIP is shown.")
]
Dtype = Annotated[str | None, typer.Option(metavar="NAME", help="lsi: float32, bfloat16 or float16 for the networks.")]
Images = Annotated[int | None, typer.Option(min=1, help="lsi: images per pass, which bounds memory.")]
Penalty = Annotated[float | None, typer.Option(min=0, help="lsi: times the mean square of a solution, to subtract.")]
CutOuts = Annotated[int | None, typer.Option(min=1, help="lsi: judge an image by so many random crops of it.")]


LATENT = (
    *("objective", "measure", "space", "weights", "prompts", "preview", "fresh_noise", "proper_preprocessing", "dtype"),
    *("images", "norm_penalty", "cutouts"),
)


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of a command's arguments, the latent options that were given: as plain values, which JSON can hold."""
    found = {name: arguments[name] for name in LATENT if arguments.get(name) is not None}
    return {name: str(value) if isinstance(value, Path) else value for name, value in found.items()}


def builder_options(options: dict[str, Any]) -> dict[str, Any]:
    """The same by the names of `presets.make_problem`."""
    renamed = {"measure": "measures"}
    return {renamed.get(name, name): value for name, value in options.items()}
