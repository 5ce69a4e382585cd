"""`dqd plot`: a figure of runs, as `dqd.plot` draws it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.inputs.names import METRICS, check_known

if TYPE_CHECKING:
    from dqd.saved.archive import SavedArchive

MAPS = ("map", "pairs", "parallel")
LINES = ("curves", "ccdf")


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, folders of runs, exported archives.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture: .png, .pdf, .svg.")],
    kind: Annotated[
        str, typer.Option(metavar="|".join((*MAPS, *LINES)), help="What to draw; a map as suits the measures.")
    ] = "map",
    labels: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name of a measure; once for each, in their order.")
    ] = None,
    metric: Annotated[str, typer.Option(metavar="|".join(METRICS), help="What curves show.")] = "qd_score",
    against: Annotated[
        str, typer.Option(metavar="iteration|evaluations|seconds", help="What curves go against.")
    ] = "iteration",
    field: Annotated[
        str | None, typer.Option(metavar="NAME", help="A field of the run's own that the colours show.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Above the picture.")] = None,
    cmap: Annotated[str | None, typer.Option(metavar="NAME", help="Colours, by a name that matplotlib knows.")] = None,
    vmin: Annotated[float | None, typer.Option(help="Objective at the lower end of the colours.")] = None,
    vmax: Annotated[float | None, typer.Option(help="Objective at the upper end of the colours.")] = None,
) -> None:
    """Draw the map of a run, of several side by side, or how runs went.

    Curves and ccdf have a line for each RUN. A folder of several runs, or a run of several seeds, is one line: their
    mean with a 95 % interval.
    """
    with explained(USAGE):
        check_known("kind", kind, (*MAPS, *LINES))
        check_known("metric", metric, METRICS)
        groups = {str(place): _archives(place) for place in runs}
    with explained(FAILURE, ValueError):
        from dqd.figures import draw

        curves, colours = {"metric": metric, "against": against}, {"vmin": vmin, "vmax": vmax, "field": field}
        given = {"labels": labels, "title": title, "cmap": cmap, **(curves if kind == "curves" else colours)}
        options = {name: value for name, value in given.items() if value is not None}
        draw.save(_drawn(kind, groups, options), out)
    typer.echo(f"picture: {out}")


def _archives(place: Path) -> dict[str, SavedArchive]:
    """What lies at or below a place, by name."""
    from dqd.explorer.places import find
    from dqd.saved.load import load

    if not place.exists():
        return {str(place): load(place)}  # one seed of a run, or an error that says what is wrong
    found = {each.name: load(each.path) for each in find(place)}
    if not found:
        raise FileNotFoundError(f"{place}: there is no run and no exported archive in it")
    return found


def _drawn(kind: str, groups: dict[str, dict[str, SavedArchive]], options: dict[str, Any]) -> Any:
    from dqd.figures import plot as plots

    if kind in LINES:
        lines: Any = {name: list(archives.values()) for name, archives in groups.items()}
        runs = lines if len(lines) > 1 else next(iter(lines.values()))
        return (plots.curves if kind == "curves" else plots.ccdf)(runs, **options)
    archives = {name: each for group in groups.values() for name, each in group.items()}
    if len(archives) > 1 and kind == "map":
        return plots.maps(archives, **options)
    if len(archives) > 1:
        raise ValueError(f"--kind {kind}: expected one run, got {len(archives)}; a map shows several side by side")
    draws = {"map": plots.archive, "pairs": plots.pairs, "parallel": plots.parallel}
    return draws[kind](next(iter(archives.values())), **options)
