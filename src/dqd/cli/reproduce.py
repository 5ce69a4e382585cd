"""`dqd reproduce`: the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqd.cli.exits import FAILURE, STOPPED, USAGE, explained, saying
from dqd.paper import suites

HELP = f"""Run every trial behind a table of the paper and compare with what was published.

Trials that are there already are not run again, so an interrupted suite goes on where it stopped.

\b
Suites: {"  ".join(suites.names())}
"""


def reproduce(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="One of the above.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Trials per entry instead of the paper's.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Iterations instead of the paper's.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A taste: 2 trials of 1,000 iterations.")] = False,
    device: Annotated[str, typer.Option(metavar="auto|cpu|gpu", help="Where to compute.")] = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes on a CPU; default: one per core.")] = None,
    trial_index: Annotated[
        int | None, typer.Option(min=0, help="Run this trial of every entry only, as a task of a Slurm array does.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run trials on a Dask cluster that sees the same files: tls://host:8786."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow tcp:// to a cluster that is not on this machine.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the trials; default: runs/reproduce/SUITE.")] = None,
) -> None:
    from dqd.compiler import cache
    from dqd.paper import launch
    from dqd.workers.address import check_address

    with explained(USAGE):
        if device not in ("auto", "cpu", "gpu"):
            raise ValueError(f"--device: expected auto, cpu or gpu, got {device!r}")
        if cluster is not None:
            check_address(cluster, insecure, name="--cluster")
        if quick:
            trials, iterations = trials or 2, iterations or 1000
        wanted = suites.suite(suite).resized(trials, iterations)
        last = max(entry.trials for entry in wanted.entries) - 1
        if trial_index is not None and trial_index > last:
            raise ValueError(f"--trial-index: the trials of {suite} are 0 to {last}, got {trial_index}")
        if device == "gpu" and not launch.accelerator():
            raise ValueError("--device gpu: JAX sees no accelerator; --device cpu runs processes on the cores instead")
    folder = out or Path("runs/reproduce") / (f"{suite}-quick" if quick else suite)
    say = saying(quiet=False)
    with explained(FAILURE):
        cache.enable()
        try:
            complete = launch.reproduce(
                wanted,
                folder,
                device=device,
                jobs=jobs,
                trial_index=trial_index,
                cluster=cluster,
                insecure=insecure,
                say=say,
            )
        except KeyboardInterrupt:
            say("dqd: interrupted; the same command goes on where it stopped")
            raise typer.Exit(STOPPED["interrupted"]) from None
        if not complete:
            say("dqd: other trials are still missing; the report is written when all are there")
            return
        from dqd.paper.report.write import write_report

        typer.echo(f"Report: {write_report(folder)}")
