"""The command line: `dqd demo`, `dqd run`, `dqd reproduce`. Thin: names become presets, results words and pictures.

Nothing heavy is imported before a command needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dqd import __version__
from dqd.experiments import presets, suites

if TYPE_CHECKING:
    from dqd.result import Result

# LAPACK and XLA each bring a thread pool. Two pools on the same cores make the eigen-decompositions of CMA-ME many
# times slower, so LAPACK gets one thread, unless the user says otherwise. It must be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

FAILURE, USAGE, INTERRUPTED = 1, 2, 130
EXIT_CODES = """\b
Exit codes: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted
(after the first Ctrl-C, what was found so far is still shown and saved).
"""
DEMO_ITERATIONS, DEMO_JOINTS = 5_000, 1_000
DEMO_FILES = ("config.json", "metrics.jsonl", "archive.safetensors", "heatmap.png", "poses.png")

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


def main() -> None:
    app()


def _columns(names: list[str], indent: int) -> str:
    """Names in two columns, for the help."""
    width = max(map(len, names)) + 2
    lines = [f"{names[i]:<{width}}{''.join(names[i + 1 : i + 2])}".rstrip() for i in range(0, len(names), 2)]
    return f"\n{' ' * indent}".join(lines)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dqd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# Commands -------------------------------------------------------------------------------------------------------------


@app.command(epilog=EXIT_CODES, short_help="A first look: a map of arm poses, with pictures.")
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and the record; an older demo in it is replaced.")
    ] = Path("runs/demo"),
    iterations: Annotated[int, typer.Option(min=1, help="How long to search.")] = DEMO_ITERATIONS,
) -> None:
    """Let an arm of 1000 joints find a pose for every point it can reach, and draw what was found."""
    with _explained(USAGE):
        _check_demo_folder(out)
    typer.echo(
        f"An arm of {DEMO_JOINTS:,} joints looks for a pose for every point in reach, its angles as equal as can be.\n"
        f"CMA-MEGA searches for {iterations:,} iterations; the first seconds go into compilation."
    )
    with _explained(FAILURE):
        result = _illuminate("arm", "cma-mega", DEMO_JOINTS, 100, iterations, seed=0)
        for name in DEMO_FILES:
            (out / name).unlink(missing_ok=True)
        result.save(out)
        _draw_demo(result, out)
    typer.echo(_demo_words(result, out))
    _leave(result)


RUN_HELP = f"""Run one algorithm of the paper on one of its problems.

The settings are those that produced the published tables.

\b
Problems:   {"  ".join(presets.DOMAINS)}
Algorithms: {_columns(list(presets.ALGORITHMS), indent=12)}
"""


@app.command(epilog=EXIT_CODES, help=RUN_HELP, short_help="Run one algorithm on one problem.")
def run(
    domain: Annotated[str, typer.Option(metavar="NAME", help="Problem, one of the above.")],
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="Algorithm, one of the above.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Numbers in a solution.")] = 1000,
    resolution: Annotated[int, typer.Option(min=1, help="Cells along each measure.")] = 100,
    iterations: Annotated[int, typer.Option(min=0, help="Iterations.")] = presets.ITERATIONS,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all random numbers.")] = 0,
    x64: Annotated[bool, typer.Option("--x64", help="Compute in float64 instead of float32.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value for a setting of the algorithm; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="New folder for the record of the run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")] = False,
) -> None:
    with _explained(USAGE):
        overrides = dict(_assignment(text) for text in set_ or ())
        settings = presets.settings(domain, algorithm) | overrides
        presets.make_domain(domain, n).grid(resolution)
        presets.preset(domain, algorithm, **overrides)
        if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FileExistsError(f"--out: {out} already exists and is not an empty folder; choose another name")
    about = {"domain": domain, "algorithm": algorithm, "n": n, "resolution": resolution}
    with _explained(FAILURE), _precision(x64):
        result = _illuminate(domain, algorithm, n, resolution, iterations, seed, overrides, out=out, quiet=quiet)
        if as_json:
            typer.echo(json.dumps(_finite(about | result.summary() | {"x64": x64, "settings": settings})))
        elif not quiet:
            typer.echo(_table(about, result, out))
    _leave(result)


REPRODUCE_HELP = f"""Run every trial behind a table of the paper and compare with what was published.

Trials that are there already are not run again, so an interrupted suite goes on where it stopped.

\b
Suites: {"  ".join(suites.names())}
"""


@app.command(epilog=EXIT_CODES, help=REPRODUCE_HELP, short_help="The tables of the paper, ours beside theirs.")
def reproduce(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="One of the above.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Trials per cell instead of the paper's.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Iterations instead of the paper's.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A taste: 2 trials of 1,000 iterations.")] = False,
    device: Annotated[str, typer.Option(metavar="auto|cpu|gpu", help="Where to compute.")] = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes on a CPU; default: one per core.")] = None,
    trial_index: Annotated[
        int | None, typer.Option(min=0, help="Run this trial of every cell only, as a task of a Slurm array does.")
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
    from dqd import cache
    from dqd.experiments import launch
    from dqd.interop.executor import check_address

    with _explained(USAGE):
        if device not in ("auto", "cpu", "gpu"):
            raise ValueError(f"--device: expected auto, cpu or gpu, got {device!r}")
        if cluster is not None:
            check_address(cluster, insecure, name="--cluster")
        wanted = suites.suite(suite)
    if quick:
        trials, iterations = trials or 2, iterations or 1000
    folder = out or Path("runs/reproduce") / (f"{suite}-quick" if quick else suite)
    with _explained(FAILURE):
        cache.enable()
        complete = launch.reproduce(
            wanted.resized(trials, iterations),
            folder,
            device=device,
            jobs=jobs,
            trial_index=trial_index,
            cluster=cluster,
            insecure=insecure,
            say=lambda line: typer.echo(line, err=True),
        )
        if complete or trial_index is None:
            from dqd.report.suite_report import write_report

            typer.echo(f"Report: {write_report(folder)}")


# Searching ------------------------------------------------------------------------------------------------------------


def _illuminate(
    domain: str,
    algorithm: str,
    n: int,
    resolution: int,
    iterations: int,
    seed: int,
    overrides: dict[str, Any] | None = None,
    *,
    out: Path | None = None,
    quiet: bool = False,
) -> Result:
    import jax

    from dqd import cache
    from dqd.run import illuminate

    cache.enable()
    problem = presets.make_domain(domain, n)
    emitter = presets.preset(domain, algorithm, **(overrides or {}))
    return illuminate(
        problem,
        emitter,
        problem.grid(resolution),
        x0=jax.numpy.zeros(n),
        iterations=iterations,
        seed=seed,
        out=out,
        progress=not quiet,
    )


@contextlib.contextmanager
def _precision(x64: bool) -> Iterator[None]:
    """float64 while the run lasts and its figures are read. Without --x64, whatever JAX is set to."""
    import jax

    with jax.enable_x64(True) if x64 else contextlib.nullcontext():
        yield


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
    cells = f"{about['resolution']} x {about['resolution']} cells"
    reasons = {reason: count for reason, count in result.restart_reasons.items() if count}
    why = ", ".join(reasons if len(reasons) == 1 else (f"{count:,} {reason}" for reason, count in reasons.items()))
    rows = [
        ("QD-score", _number(result.qd_score), ""),
        ("coverage", _number(result.coverage), "%"),
        ("best objective", _number(result.best), ""),
        ("mean objective", _number(result.mean), "of the elites"),
        ("iterations", f"{result.iterations:,}", "interrupted" if result.stopped == "interrupted" else ""),
        ("evaluations", f"{result.evaluations:,}", "with the initial population"),
        ("gradients", f"{result.gradients:,}", ""),
        ("restarts", f"{result.restarts:,}", why),
        ("not finite", f"{result.nonfinite:,}", ""),
        ("seconds", f"{result.seconds:.2f}", f"and {result.compile_seconds:.2f} of compilation"),
    ]
    lines = [f"{title} on {about['domain']}, n = {about['n']:,}, {cells}, seed {result.seed}"]
    lines += [f"  {name:<15}{value:>12} {remark}".rstrip() for name, value, remark in rows]
    lines += [f"  record in      {out}"] if out is not None else []
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e6 else f"{value:.4g}"


def _demo_words(result: Result, out: Path) -> str:
    disc = 25 * math.pi  # percent of the square around it
    return f"""
Found {len(result.elites):,} poses with {result.evaluations:,} evaluations and {result.gradients:,} gradients,
in {result.seconds:.1f} s and {result.compile_seconds:.1f} s of compilation.
They fill {result.coverage:.1f} % of the map; the disc that the hand can reach covers {disc:.1f} % of it.
An objective of 100 means that all angles are equal: the best pose has {result.best:.4f}, the mean is {result.mean:.4f}.

  heat map   {out / "heatmap.png"}
  poses      {out / "poses.png"}
  record     {out}{os.sep}

Next: dqd run --domain lp-sphere --algorithm cma-mega"""


def _draw_demo(result: Result, out: Path) -> None:
    from dqd import record
    from dqd.report import draw, panels

    arrays = record.read(out).arrays
    panel = panels.heatmap(arrays, x_label="hand, x", y_label="hand, y", value_label="objective (100: angles equal)")
    draw.save(draw.heatmap(panel, title=f"{len(result.elites):,} poses of an arm"), out / "heatmap.png")
    draw.save(draw.poses(panels.arm_poses(arrays, 4)), out / "poses.png")


def _check_demo_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"--out: {out} is not a folder")
    other = sorted(path.name for path in out.iterdir() if path.name not in DEMO_FILES) if out.exists() else []
    if other:
        raise FileExistsError(
            f"--out: {out} holds files that are not a demo's ({', '.join(other[:3])}); choose another folder"
        )


def _finite(value: Any) -> Any:
    """JSON knows no infinity: null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Leaving --------------------------------------------------------------------------------------------------------------


def _leave(result: Result) -> NoReturn:
    raise typer.Exit(INTERRUPTED if result.stopped == "interrupted" else 0)


@contextlib.contextmanager
def _explained(code: int) -> Iterator[None]:
    """Errors and warnings of the library in one line each. DQD_TRACEBACK=1 shows where an error comes from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"dqd: warning: {message}", err=True)
        try:
            yield
        except (ValueError, TypeError, OSError, RuntimeError, MemoryError, ImportError) as error:
            if os.environ.get("DQD_TRACEBACK") or isinstance(error, typer.Exit):
                raise
            sys.stdout.flush()
            words = str(error).strip() or type(error).__name__
            typer.echo(f"dqd: error: {words.splitlines()[0]}", err=True)
            raise typer.Exit(code) from None
