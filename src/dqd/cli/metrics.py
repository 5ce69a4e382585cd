"""`dqd metrics`: what archives are worth by other measures than the QD-score."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqd.cli.compare import FORMATS, printed
from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.inputs.names import check_known

if TYPE_CHECKING:
    from dqd.saved.archive import SavedArchive

COLUMNS = ("archive", "elites", "qd_score", "coverage", "best", "area", "cqd", "vendi", "quality_vendi", "soft_qd")
NAN = float("nan")


def metrics(
    places: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, or exported archives.")],
    minimum: Annotated[
        float | None, typer.Option(help="Objective that is worth nothing; default: the offset of the QD-score.")
    ] = None,
    maximum: Annotated[
        float | None, typer.Option(help="Objective that is worth 1 for the CQD score; default: the best of all.")
    ] = None,
    bandwidth: Annotated[
        float, typer.Option(help="Of the soft QD-score: how far an elite shines, as a share of every range.")
    ] = 0.05,
    format_: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print the table.")] = (
        "table"
    ),
) -> None:
    """Print the metrics of dqd.metrics for some archives, all by the same scales.

    area is the QD-score AUC divided by the evaluations, of runs alone. cqd has 1,000 targets and 5 penalties, and is
    divided by their product. A dash stands where a metric is not defined.
    """
    from dqd.saved.load import load

    with explained(USAGE):
        check_known("format", format_, FORMATS)
        if not bandwidth > 0:
            raise ValueError(f"--bandwidth: expected a number above 0, got {bandwidth}")
    with explained(FAILURE):
        archives = {str(place): load(place) for place in places}
    with explained(USAGE):
        least = min(archive.qd_score_offset for archive in archives.values()) if minimum is None else minimum
        found = max(archive.best for archive in archives.values())
        most = (found if math.isfinite(found) else least + 1) if maximum is None else maximum
        if not most > least:
            raise ValueError(f"--minimum, --maximum: expected minimum below maximum, got {least} and {most}")
        rows = [_row(name, archive, least, most, bandwidth) for name, archive in archives.items()]
    typer.echo(printed(format_, COLUMNS, rows))


def _row(name: str, archive: SavedArchive, least: float, most: float, bandwidth: float) -> dict[str, Any]:
    from dataclasses import replace

    from dqd import metrics as of

    above = replace(archive, qd_score_offset=least)
    targets, penalties = 1000, 5
    negative = len(archive) > 0 and bool((archive.objective < least).any())
    return {
        "archive": name,
        "elites": len(archive),
        **{metric: float(getattr(archive, metric)) for metric in ("qd_score", "coverage", "best")},
        "area": of.qd_score_auc(archive, normalize=True) if archive.metrics else NAN,
        "cqd": of.cqd_score(archive, targets, penalties, minimum=least, maximum=most) / (targets * penalties),
        "vendi": of.vendi_score(archive),
        "quality_vendi": NAN if negative else of.quality_vendi_score(above),
        "soft_qd": of.soft_qd_score(above, bandwidth),
    }
