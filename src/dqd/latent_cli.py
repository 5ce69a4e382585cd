"""What the command line has for latent domains: their options, and what follows a search (re-scoring, pictures)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dqd.archives.archive import Archive
    from dqd.domains.problem import Problem
    from dqd.result import Result

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

COLLAGE, HEATMAP, RESCORED = "collage.png", "heatmap.png", "rescored.safetensors"


def given(**options: Any) -> dict[str, Any]:
    """Options that were given, as plain values: what `run` takes, and what JSON can hold."""
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in options.items() if value is not None
    }


def builder_options(options: dict[str, Any]) -> dict[str, Any]:
    """The same by the names of `presets.make_problem`."""
    renamed = {"measure": "measures", "images": "chunk"}
    return {renamed.get(name, name): value for name, value in options.items()}


def free_folder(domain: str) -> Path:
    """runs/DOMAIN, or the first of runs/DOMAIN-2, -3, ... that does not exist."""
    place, number = Path("runs") / domain, 1
    while place.exists():
        number += 1
        place = Path("runs") / f"{domain}-{number}"
    return place


# After a search -------------------------------------------------------------------------------------------------------


def finish(problem: Problem[Any], result: Result, out: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Judge the elites once more where scores were provisional, draw the pictures; figures for the table and JSON."""
    figures: dict[str, Any] = {}
    archive, judge = result.archive, problem.domain
    if problem.final is not None and len(archive):
        archive, judge = rescore(problem.final, problem.salts, archive, say), problem.final
        metrics = archive.metrics
        figures["rescored"] = {
            "cells": len(archive),
            **{name: float(getattr(metrics, name)) for name in ("qd_score", "coverage", "best", "mean")},
        }
    if out is not None and len(archive):
        pictures(problem, archive, judge, out)
        figures["pictures"] = [str(out / name) for name in (COLLAGE, HEATMAP) if (out / name).exists()]
    return figures


def rescore(judge: Any, salts: Sequence[int], archive: Archive, say: Callable[[str], None]) -> Archive:
    from dqd.domains.latent import reevaluate

    def told(done: int, total: int) -> None:
        if done == total or done * 10 // total > (done - judge.chunk) * 10 // total:  # every tenth
            say(f"judged again: {done:,} of {total:,} elites")

    return reevaluate(archive, judge, salts, say=told)


def pictures(problem: Problem[Any], archive: Archive, judge: Any, out: Path) -> None:
    """Collage and heat map; the re-scored archive where there is one."""
    from safetensors.numpy import save_file

    from dqd.report import collage, draw, panels
    from dqd.result import archive_arrays

    arrays = archive_arrays(archive)
    out.mkdir(parents=True, exist_ok=True)
    if judge is problem.final:
        save_file(arrays, out / RESCORED)
    if len(problem.labels) > 3:
        return
    x_label, y_label = (*problem.labels[1:], "")[:2]
    panel = panels.heatmap(arrays, x_label=x_label, y_label=y_label, value_label=problem.labels[0])
    draw.save(draw.heatmap(panel, title=problem.title), out / HEATMAP)
    if len(problem.labels) == 3:
        figure = collage.collage(arrays, judge.render, labels=problem.labels[1:], title=problem.title)
        draw.save(figure, out / COLLAGE, dpi=int(figure.dpi))


def words(figures: dict[str, Any]) -> str:
    """Lines for the table."""
    lines = []
    if rescored := figures.get("rescored"):
        lines.append("judged again, which is what counts:")
        lines += [f"  {name.replace('_', '-'):<15}{_number(value):>12}" for name, value in rescored.items()]
    lines += [f"  picture        {path}" for path in figures.get("pictures", ())]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
