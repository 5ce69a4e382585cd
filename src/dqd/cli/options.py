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
Judges = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="lsi: a judge that no search sees, asked at the end; repeatable; none: nobody."),
]
SpaceName = Annotated[str | None, typer.Option(metavar="NAME", help="lsi: what is searched, such as p, w or sphere.")]
Generator = Annotated[
    str | None, typer.Option(metavar="MODULE:NAME", help="lsi-own: your function that returns a problem; it is run.")
]
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
Hold = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=LOW:HIGH", help="lsi: keep only images whose score lies within a range; repeatable."),
]
Views = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="lsi-faces: a view to judge by, too: flip, crop, noise, balance; repeatable."),
]
CutOuts = Annotated[int | None, typer.Option(min=1, help="lsi: judge an image by so many random crops of it.")]


LATENT = (
    *("objective", "measure", "judge", "space", "weights", "prompts", "preview", "fresh_noise"),
    *("generator", "proper_preprocessing", "dtype", "images", "norm_penalty", "cutouts", "hold", "view"),
)


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of a command's arguments, the latent options that were given: as plain values, which JSON can hold."""
    found = {name: arguments[name] for name in LATENT if arguments.get(name) is not None}
    return {name: str(value) if isinstance(value, Path) else value for name, value in found.items()}


def check_generator(run: Path, begun: Mapping[str, Any], given: str | None) -> None:
    """A run that names a function is somebody's wish to have it run: only whoever names it, too, lets it."""
    named = begun.get("generator")
    if named and named != given:
        raise ValueError(
            f"{run} was made by the function {named!r}, which would be run now; if you know it, say so: "
            f"--generator {named}"
        )


def builder_options(options: dict[str, Any]) -> dict[str, Any]:
    """The same by the names of `presets.make_problem`."""
    renamed = {"measure": "measures", "judge": "judges", "view": "views"}
    ranges = {"hold": dict(map(_range, options["hold"]))} if "hold" in options else {}
    return {renamed.get(name, name): value for name, value in {**options, **ranges}.items()}


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """NAME=LOW:HIGH."""
    name, _, ends = text.partition("=")
    try:
        lower, upper = map(float, ends.split(":"))
    except ValueError:
        raise ValueError(f"--hold: expected NAME=LOW:HIGH, such as glasses=0:1, got {text!r}") from None
    return name, (lower, upper)
