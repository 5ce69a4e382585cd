"""`dqd benchmark`: algorithms on many functions at equal budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqd.cli.exits import FAILURE, STOPPED, USAGE, explained, saying

MARKS = (5_000, 20_000, 80_000)
BEYOND = 100_000  # evaluations: so that who needs a quarter more than the last mark is still seen to arrive
QUICK = {"seeds": 2, "evaluations": 1_800, "n": 20}


def benchmark(
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="seen|unseen", help="Which functions; may be repeated. Default: both suites."),
    ] = None,
    algorithms: Annotated[
        str, typer.Option(metavar="A,B,...", help="Names with commas between.")
    ] = "auto,targeting,cma-mega,cma-mega-tuned",
    only: Annotated[str, typer.Option(metavar="F,G,...", help="Some functions of the suites.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, side by side where they can be.")] = 10,
    evaluations: Annotated[int, typer.Option(min=1_000, help="Of every run.")] = BEYOND,
    jacobian_cost: Annotated[
        float | None,
        typer.Option(min=1, help="Evaluations that a jacobian costs, that of its point included; default: 3 + 2k."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A taste: n = 20, 2 seeds, 1,800 evaluations.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the page; what is there already is not run again.")] = Path(
        "runs/benchmark"
    ),
) -> None:
    """Run algorithms on many functions at equal numbers of evaluations, and write one page with tables and curves.

    The functions of the suite seen were looked at while algorithms of this library were made, those of unseen were not.
    CMA-MEGA takes part twice: with its sigma chosen by the library, and (cma-mega-tuned) at the best of six for every
    function and every number of evaluations.
    """
    from dqd.paper.report.stats import library

    with explained(USAGE):
        library("scipy.stats")
        from dqd.benchmark.run import SUITES, Benchmark, run
        from dqd.compiler import cache, flags

        flags.add_flag(flags.NO_TRITON_PRODUCTS)  # trying them out would take longer than the rest of compilation

        n = 100
        if quick:
            seeds, evaluations, n = QUICK["seeds"], QUICK["evaluations"], QUICK["n"]
        named, some = ([name for name in names.split(",") if name] for names in (algorithms, only))
        wanted = Benchmark(suite or list(SUITES), named, out, seeds, evaluations, n, some)
    marks = [mark for mark in MARKS if mark <= evaluations] or [evaluations]
    say = saying(quiet=False)
    with explained(FAILURE):
        cache.enable()
        try:
            entries = run(wanted, marks, say)
        except KeyboardInterrupt:
            say("dqd: interrupted; the same command goes on where it stopped")
            raise typer.Exit(STOPPED["interrupted"]) from None
        from dqd.benchmark.page import write_page

        typer.echo(f"Page: {write_page(entries, marks, out, jacobian_cost)}")
