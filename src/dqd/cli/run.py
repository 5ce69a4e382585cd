"""`dqd run` and `dqd resume`: one algorithm on one problem."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dqd.cli import cells as cells_by_name
from dqd.cli import finish, options
from dqd.cli.exits import FAILURE, STOPPED, USAGE, explained, leave
from dqd.cli.searching import precision, search
from dqd.latent import presets as latent
from dqd.paper import presets
from dqd.storage.folder import Folder

if TYPE_CHECKING:
    from dqd.result import Result
    from dqd.tessellations.grid import Grid


def _columns(names: list[str], indent: int) -> str:
    """Names in two columns, for the help."""
    width = max(map(len, names)) + 2
    lines = [f"{names[i]:<{width}}{''.join(names[i + 1 : i + 2])}".rstrip() for i in range(0, len(names), 2)]
    return f"\n{' ' * indent}".join(lines)


HELP = f"""Run one algorithm of the paper on one of its problems, or on a latent space.

The settings are those that produced the published tables. With --out, a heat map is written beside the record. Latent
domains (lsi-...) have options of their own, and write a collage of the images found.

\b
Problems:   {_columns(list(presets.PROBLEMS), indent=12)}
Algorithms: {_columns(list(presets.ALGORITHMS), indent=12)}
"""


def run(
    domain: Annotated[str, typer.Option(metavar="NAME", help="Problem, one of the above.")],
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="Algorithm, one of the above.")] = latent.ALGORITHM,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Numbers in a solution, by default 1000.")] = None,
    resolution: Annotated[
        int | None, typer.Option(min=1, help="Cells along each measure; default 100, lsi: the domain's own.")
    ] = None,
    cells: Annotated[str | None, typer.Option(metavar="KIND:NUMBER", help=cells_by_name.HELP)] = None,
    iterations: Annotated[
        int | None, typer.Option(min=0, help="Iterations; default 10,000, lsi: what suits the device.")
    ] = None,
    seconds: options.Seconds = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all random numbers.")] = 0,
    archive: Annotated[
        Path | None, typer.Option(help="Begin with the elites of a run's folder, or of an exported file.")
    ] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Compute in float64 instead of float32.")] = False,
    solutions: Annotated[str | None, typer.Option(metavar="float16", help="Keep elites in half the memory.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value for a setting; sigma=auto chooses it."),
    ] = None,
    objective: options.Objective = None,
    measure: options.Measures = None,
    judge: options.Judges = None,
    space: options.SpaceName = None,
    generator: options.Generator = None,
    weights: options.Weights = None,
    prompts: options.Prompts = None,
    preview: options.Preview = None,
    fresh_noise: options.FreshNoise = None,
    proper_preprocessing: options.Proper = None,
    text_score: options.TextScore = None,
    dtype: options.Dtype = None,
    images: options.Images = None,
    norm_penalty: options.Penalty = None,
    cutouts: options.CutOuts = None,
    hold: options.Hold = None,
    view: options.Views = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run: a new one, or one to go on with; lsi: runs/DOMAIN unless told."),
    ] = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    given = options.given(locals())
    from dqd.inputs.halves import check_half  # loads JAX

    with explained(USAGE), precision(x64):
        overrides = dict(_assignment(text) for text in set_ or ())
        settings = presets.settings(domain, algorithm) | overrides
        emitter = presets.preset(domain, algorithm, **overrides)
        problem = presets.make_problem(domain, n, resolution, **options.builder_options(given))
        grid = cast("Grid", problem.grid)
        check_half(solutions)
        kept = {**cells_by_name.archive(domain, grid, cells), "solutions": solutions}
    if domain in latent.LATENT and out is None:
        out = _free_folder(domain)
    from dqd.storage.settings import finite  # loads NumPy

    about = {
        "domain": domain,
        "algorithm": algorithm,
        "n": problem.x0.size,
        **({"resolution": grid.shape[0]} if hasattr(grid, "shape") else {}),  # not around centroids
        **({"cells": cells} if cells else {}),
        **({"solutions": solutions} if solutions else {}),
        **({"options": given} if given else {}),
    }
    command = {**about, "x64": x64, "set": overrides}
    if archive is not None:
        command["archive"] = str(archive.resolve())
    with explained(FAILURE), precision(x64):
        result = search(
            *(problem, emitter, latent.iterations(domain) if iterations is None else iterations, seed),
            out=None if out is None else Folder(out, checkpoint_seconds, {"command": command}),
            quiet=quiet,
            archive=archive,
            seconds=seconds,
            **kept,
        )
        whole = result.stopped not in STOPPED  # pictures would keep a signal waiting
        found, searched = finish.finish(problem, result, out, _how(about, result)) if whole else {}, result.provisional
        if as_json:
            chosen = {"chosen": dict(result.chosen)} if result.chosen else {}
            typer.echo(
                json.dumps(finite(about | searched.summary() | {"x64": x64, "settings": settings} | chosen | found))
            )
        elif not quiet:
            typer.echo("\n".join([_table(about, searched, out), *filter(None, [finish.words(found)])]))
    leave(result)


def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run that `dqd run --out DIR` began.")],
    iterations: Annotated[int | None, typer.Option(min=0, help="Iterations in all; default: as begun.")] = None,
    seconds: options.Seconds = None,
    generator: options.Generator = None,
    checkpoint_seconds: options.CheckpointSeconds = 60.0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with a run from its newest checkpoint, to the very result that it would have had undisturbed.

    The same `dqd run --out DIR` command does the same. A finished run is shown again.
    """
    from dqd.storage import record

    with explained(USAGE):
        config = record.read_config(folder)
        if not config.get("command"):
            raise ValueError(
                f"{folder} was not begun by `dqd run`, so the command does not know its function; "
                "call dqd.illuminate again with the same arguments and this folder as `out`"
            )
        begun = _begun(folder, config)
        options.check_generator(folder, begun, generator)
    run(
        **begun | ({} if iterations is None else {"iterations": iterations}),
        out=folder,
        seconds=seconds,
        checkpoint_seconds=checkpoint_seconds,
        as_json=as_json,
        quiet=quiet,
    )


COMMAND: dict[str, type] = {"domain": str, "algorithm": str, "n": int, "x64": bool}
NOT_ALWAYS: dict[str, type] = {"resolution": int, "cells": str, "solutions": str}


def _begun(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `run` that a record names."""
    match config:
        case {"seed": int(seed), "iterations": int(iterations), "command": {"set": dict(changes), **command}}:
            given: Any = command.get("options", {})
            known = isinstance(given, dict) and given.keys() <= set(options.LATENT)
            kinds = COMMAND | {name: kind for name, kind in NOT_ALWAYS.items() if name in command}
            if known and all(isinstance(command.get(name), kind) for name, kind in kinds.items()):
                assignments = [f"{name}={value}" for name, value in changes.items()]
                begun = {name: command[name] for name in kinds} | given
                archive: Any = command.get("archive")
                path = {"archive": Path(archive)} if isinstance(archive, str) else {}
                return begun | path | {"set_": assignments, "seed": seed, "iterations": iterations}
    raise ValueError(
        f"{folder}: config.json does not name a command of `dqd run`: it was changed; "
        "give that command again, with --out and this folder"
    )


def _free_folder(domain: str) -> Path:
    """runs/DOMAIN, or the first of runs/DOMAIN-2, -3, ... that does not exist."""
    place, number = Path("runs") / domain, 1
    while place.exists():
        number += 1
        place = Path("runs") / f"{domain}-{number}"
    return place


def _assignment(text: str) -> tuple[str, Any]:
    """name=value; the value is a number, true, false, or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ValueError(f"--set: expected name=value, such as sigma=0.1, got {text!r}")
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return name, number(value)
    return name, {"true": True, "false": False}.get(value.lower(), value)


# Words ----------------------------------------------------------------------------------------------------------------


def _table(about: dict[str, Any], result: Result, out: Path | None) -> str:
    title = presets.ALGORITHMS[about["algorithm"]].title
    cells = f"{result.archive.num_cells:,} cells"
    reasons = {reason: count for reason, count in result.restart_reasons.items() if count}
    why = ", ".join(reasons if len(reasons) == 1 else (f"{count:,} {reason}" for reason, count in reasons.items()))
    rows = [
        *(("sigma", f"{number:.3g}", f"chosen, along {name}") for name, number in result.chosen.items()),
        ("QD-score", _number(result.qd_score), ""),
        ("coverage", _number(result.coverage), "%"),
        ("best objective", _number(result.best), ""),
        ("mean objective", _number(result.mean), "of the elites"),
        ("iterations", f"{result.iterations:,}", result.stopped or ""),
        ("evaluations", f"{result.evaluations:,}", "with the initial population"),
        ("gradients", f"{result.gradients:,}", ""),
        ("restarts", f"{result.restarts:,}", why),
        ("not finite", f"{result.nonfinite:,}", _why_not_finite(about["domain"], result.nonfinite)),
        ("seconds", f"{result.seconds:.2f}", f"and {result.compile_seconds:.2f} of compilation"),
    ]
    lines = [f"{title} on {about['domain']}, n = {about['n']:,}, {cells}, seed {result.seed}"]
    lines += [f"  {name:<15}{value:>12} {remark}".rstrip() for name, value, remark in rows]
    lines += [f"  record in      {out}"] if out is not None else []
    return "\n".join(lines)


def _how(about: dict[str, Any], result: Result) -> str:
    """How a map was found, for a title."""
    return f"{presets.ALGORITHMS[about['algorithm']].title}, {result.iterations:,} iterations, seed {result.seed}"


def _why_not_finite(domain: str, count: int) -> str:
    return "no text score where cos(image, text) is not above 0" if count and domain == "lsi-stylegan" else ""


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e6 else f"{value:.4g}"
