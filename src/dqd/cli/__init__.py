"""The command line. Thin: names become presets, results words and pictures.

One file per kind of command, all listed here. Nothing heavy is imported before a command needs it, so that `--help`
answers at once.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Annotated

import typer

from dqd import __version__
from dqd.cli import (
    benchmark,
    compare,
    demo,
    doctor,
    files,
    metrics,
    optimize,
    plot,
    render,
    reproduce,
    run,
    searching,
    streams,
    view,
)
from dqd.cli.exits import EXIT_CODES, FAILURE

# LAPACK and XLA each bring a thread pool. Two pools on the same cores make the eigen-decompositions of CMA-ME many
# times slower, so LAPACK gets one thread, unless the user says otherwise. It must be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

app = typer.Typer(
    name="dqd",
    help="Quality diversity with gradients: the best solution for every combination of measures.",
    epilog=EXIT_CODES,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich would take longer to import than all the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

command = partial(app.command, epilog=EXIT_CODES)
command(short_help="A first look: a map of arm poses, with pictures.")(demo.demo)
command(help=run.HELP, short_help="Run one algorithm on one problem.")(run.run)
command(short_help="See runs in the browser, and what is in every cell.")(view.view)
command(short_help="A figure of a run: its map, or how it went.")(plot.plot)
command(short_help="A picture of every elite, for the explorer.")(render.render)
command(short_help="What runs have reached, with intervals and tests.")(compare.compare)
command(short_help="What else archives are worth: areas, CQD, Vendi, soft QD.")(metrics.metrics)
command(short_help="Go on with a run that was stopped.")(run.resume)
command(short_help="One solution by Adam: the objective alone, no map.")(optimize.optimize)
command(help=reproduce.HELP, short_help="The tables of the paper, ours beside theirs.")(reproduce.reproduce)
command(short_help="Algorithms on many functions, at equal budgets.")(benchmark.benchmark)
command(short_help="The archive of a run as one file for other tools.")(files.export)
command(short_help="Does everything work here, and what is missing?")(doctor.doctor)
command(help=files.CONVERT_HELP, short_help="Checkpoints of StyleGAN and CLIP to safetensors.")(files.convert)
command(short_help="Download the networks of a domain.")(files.fetch)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dqd {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    searching.process_is_ours = True
    streams.protect()
    try:
        app()
    except SystemExit as end:
        if (why := streams.lost()) and not end.code:
            typer.echo(f"dqd: error: the output could not be written ({why})", err=True)
            sys.exit(FAILURE)
        raise
