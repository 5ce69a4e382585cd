"""`dqd optimize`: the objective alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqd.cli import options
from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.latent import presets as latent
from dqd.paper import presets


def optimize(
    domain: Annotated[str, typer.Option(metavar="NAME", help="Problem, as in dqd run.")],
    iterations: Annotated[int, typer.Option(min=1, help="Steps of Adam.")] = 500,
    learning_rate: Annotated[float, typer.Option(min=1e-9, help="Of Adam.")] = 0.01,
    objective: options.Objective = None,
    measure: options.Measures = None,
    space: options.SpaceName = None,
    generator: options.Generator = None,
    weights: options.Weights = None,
    prompts: options.Prompts = None,
    preview: options.Preview = None,
    proper_preprocessing: options.Proper = None,
    dtype: options.Dtype = None,
    norm_penalty: options.Penalty = None,
    cutouts: options.CutOuts = None,
    view: options.Views = None,
    out: Annotated[Path, typer.Option(help="lsi: the picture to write.")] = Path("runs/optimized.png"),
) -> None:
    """Climb the objective from the start of the search by plain gradient ascent: the paper's baseline in latent spaces.

    The measures are only reported. For lsi domains the image found is written.
    """
    from dqd.latent.ascent import ascend

    given = options.given(locals())
    with explained(USAGE):
        if domain in latent.LATENT:
            from dqd.figures import collage

            collage.check_image_name(out)
        problem = presets.make_problem(domain, **options.builder_options(given))
    with explained(FAILURE):
        found = ascend(problem, iterations, learning_rate=learning_rate, say=_say_best)
        how = f"{iterations:,} steps of Adam" + ("" if problem.final is None else ", judged again")
        typer.echo(f"best objective {found.objective:.4f} after {how} ({problem.labels[0]})")
        for label, value in zip(problem.labels[1:], found.measures, strict=True):
            typer.echo(f"  {label}: {value:.4f}")
        if domain in latent.LATENT:
            out.parent.mkdir(parents=True, exist_ok=True)
            collage.save_image((problem.final or problem.domain).render(found.solution[None])[0], str(out))
            typer.echo(f"  picture: {out}")


def _say_best(done: int, best: float) -> None:
    typer.echo(f"step {done:,}: best {best:.4f}", err=True)
