"""The command line. Thin: names become presets, results words and pictures.

Nothing heavy is imported before a command needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dqd import __version__, demo_cli, latent_cli
from dqd.experiments import latent, presets, suites

if TYPE_CHECKING:
    from dqd.domains.problem import Problem
    from dqd.emitters import Emitter
    from dqd.result import Result

# LAPACK and XLA each bring a thread pool. Two pools on the same cores make the eigen-decompositions of CMA-ME many
# times slower, so LAPACK gets one thread, unless the user says otherwise. It must be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

FAILURE, USAGE = 1, 2
STOPPED = {"interrupted": 130, "terminated": 143}
EXIT_CODES = """\b
Exit codes: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted, 143 terminated
(after the first signal, what was found so far is still shown and saved).
"""
DEMO_ITERATIONS, DEMO_JOINTS = 5_000, 1_000

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


_process_is_ours = False


def main() -> None:
    global _process_is_ours
    _process_is_ours = True
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


CheckpointSeconds = Annotated[float, typer.Option(min=0, help="Seconds between two checkpoints.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")]

# Commands -------------------------------------------------------------------------------------------------------------


@app.command(epilog=EXIT_CODES, short_help="A first look: a map of arm poses, with pictures.")
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and the record; an older demo in it is replaced.")
    ] = Path("runs/demo"),
    iterations: Annotated[int | None, typer.Option(min=1, help="How long to search.")] = None,
    domain: Annotated[str, typer.Option(metavar="arm|lsi-digits", help="What to search.")] = "arm",
) -> None:
    """Let an arm of 1000 joints find a pose for every point it can reach, and draw what was found.

    With lsi-digits: let a small image generator find a handwritten 3 for every thickness and slant.
    """
    with _explained(USAGE):
        if domain not in ("arm", "lsi-digits"):
            raise ValueError(f"--domain: the demo knows arm and lsi-digits, got {domain!r}; see dqd run for others")
        demo_cli.check_folder(out)
    if domain == "lsi-digits":
        _demo_digits(out, iterations)
    iterations = iterations or DEMO_ITERATIONS
    typer.echo(
        f"An arm of {DEMO_JOINTS:,} joints looks for a pose for every point in reach, its angles as equal as can be.\n"
        f"CMA-MEGA searches for {iterations:,} iterations; the first seconds go into compilation."
    )
    with _explained(FAILURE):
        problem, emitter = presets.make_problem("arm", DEMO_JOINTS), presets.preset("arm", "cma-mega")
        result = _illuminate(problem, emitter, iterations, seed=0)
        demo_cli.remove(out)
        result.save(out)
        demo_cli.draw_arm(result, out)
    typer.echo(demo_cli.arm_words(result, out))
    _leave(result)


RUN_HELP = f"""Run one algorithm of the paper on one of its problems, or on a latent space.

The settings are those that produced the published tables. Latent domains (lsi-...) have options of their own, and
write a collage of the images found.

\b
Problems:   {_columns(list(presets.PROBLEMS), indent=12)}
Algorithms: {_columns(list(presets.ALGORITHMS), indent=12)}
"""


@app.command(epilog=EXIT_CODES, help=RUN_HELP, short_help="Run one algorithm on one problem.")
def run(
    domain: Annotated[str, typer.Option(metavar="NAME", help="Problem, one of the above.")],
    algorithm: Annotated[str, typer.Option(metavar="NAME", help="Algorithm, one of the above.")] = latent.ALGORITHM,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Numbers in a solution, by default 1000.")] = None,
    resolution: Annotated[
        int | None, typer.Option(min=1, help="Cells along each measure; default 100, lsi: the domain's own.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=0, help="Iterations; default 10,000, lsi: what suits the device.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all random numbers.")] = 0,
    x64: Annotated[bool, typer.Option("--x64", help="Compute in float64 instead of float32.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value for a setting of the algorithm; repeatable."),
    ] = None,
    objective: latent_cli.Objective = None,
    measure: latent_cli.Measures = None,
    space: latent_cli.SpaceName = None,
    weights: latent_cli.Weights = None,
    prompts: latent_cli.Prompts = None,
    preview: latent_cli.Preview = None,
    fresh_noise: latent_cli.FreshNoise = None,
    proper_preprocessing: latent_cli.Proper = None,
    dtype: latent_cli.Dtype = None,
    images: latent_cli.Images = None,
    norm_penalty: latent_cli.Penalty = None,
    cutouts: latent_cli.CutOuts = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run: a new one, or one to go on with; lsi: runs/DOMAIN unless told."),
    ] = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    options = latent_cli.given(
        objective=objective,
        measure=measure,
        space=space,
        weights=weights,
        prompts=prompts,
        preview=preview,
        fresh_noise=fresh_noise,
        proper_preprocessing=proper_preprocessing,
        dtype=dtype,
        images=images,
        norm_penalty=norm_penalty,
        cutouts=cutouts,
    )
    with _explained(USAGE), _precision(x64):
        overrides = dict(_assignment(text) for text in set_ or ())
        settings = presets.settings(domain, algorithm) | overrides
        emitter = presets.preset(domain, algorithm, **overrides)
        problem = presets.make_problem(domain, n, resolution, **latent_cli.builder_options(options))
    if domain in latent.LATENT and out is None:
        out = latent_cli.free_folder(domain)
    about = {
        "domain": domain,
        "algorithm": algorithm,
        "n": problem.x0.size,
        "resolution": problem.grid.shape[0],
        **({"options": options} if options else {}),
    }
    pace = latent.pace(domain)
    with _explained(FAILURE), _precision(x64):
        result = _illuminate(
            *(problem, emitter, pace.iterations if iterations is None else iterations, seed),
            out=out,
            quiet=quiet,
            chunk=pace.chunk,
            checkpoint_seconds=checkpoint_seconds,
            about={"command": {**about, "x64": x64, "set": overrides}},
        )
        whole = domain in latent.LATENT and result.stopped not in STOPPED  # judging again would keep a signal waiting
        figures = latent_cli.finish(problem, result, out, _say(quiet)) if whole else {}
        if as_json:
            typer.echo(json.dumps(_finite(about | result.summary() | {"x64": x64, "settings": settings} | figures)))
        elif not quiet:
            typer.echo("\n".join([_table(about, result, out), *filter(None, [latent_cli.words(figures)])]))
    _leave(result)


@app.command(epilog=EXIT_CODES, short_help="Go on with a run that was stopped.")
def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run that `dqd run --out DIR` began.")],
    iterations: Annotated[int | None, typer.Option(min=0, help="Iterations in all; default: as begun.")] = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run from its newest checkpoint, to the very result that it would have had undisturbed.

    The same `dqd run --out DIR` command does the same. A finished run is shown again.
    """
    from dqd import record

    with _explained(USAGE):
        config = record.read_config(folder)
        command = config.get("command")
        if not command:
            raise ValueError(
                f"{folder} was not begun by `dqd run`, so the command does not know its function; "
                "call dqd.illuminate again with the same arguments and this folder as `out`"
            )
    run(
        **{name: command[name] for name in ("domain", "algorithm", "n", "resolution", "x64")},
        **command.get("options", {}),
        set_=[f"{name}={value}" for name, value in command["set"].items()],
        iterations=config["iterations"] if iterations is None else iterations,
        seed=config["seed"],
        out=folder,
        checkpoint_seconds=checkpoint_seconds,
        as_json=as_json,
        quiet=quiet,
    )


@app.command(epilog=EXIT_CODES, short_help="One solution by Adam: the objective alone, no map.")
def optimize(
    domain: Annotated[str, typer.Option(metavar="NAME", help="Problem, as in dqd run.")],
    iterations: Annotated[int, typer.Option(min=1, help="Steps of Adam.")] = 500,
    learning_rate: Annotated[float, typer.Option(min=1e-9, help="Of Adam.")] = 0.01,
    objective: latent_cli.Objective = None,
    measure: latent_cli.Measures = None,
    space: latent_cli.SpaceName = None,
    weights: latent_cli.Weights = None,
    prompts: latent_cli.Prompts = None,
    out: Annotated[Path, typer.Option(help="lsi: the picture to write.")] = Path("runs/optimized.png"),
) -> None:
    """Climb the objective from the start of the search by plain gradient ascent: the paper's baseline in latent spaces.

    The measures are only reported. For lsi domains the image found is written.
    """
    from dqd.experiments.optimize import ascend

    options = latent_cli.given(objective=objective, measure=measure, space=space, weights=weights, prompts=prompts)
    with _explained(USAGE):
        problem = presets.make_problem(domain, **latent_cli.builder_options(options))
    with _explained(FAILURE):
        found = ascend(problem, iterations, learning_rate=learning_rate, say=_say_best)
        typer.echo(f"best objective {found.objective:.4f} after {iterations:,} steps of Adam ({problem.labels[0]})")
        for label, value in zip(problem.labels[1:], found.measures, strict=True):
            typer.echo(f"  {label}: {value:.4f}")
        if domain in latent.LATENT:
            from dqd.report import collage

            out.parent.mkdir(parents=True, exist_ok=True)
            collage.save_image((problem.final or problem.domain).render(found.solution[None])[0], str(out))
            typer.echo(f"  picture: {out}")


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


@app.command(epilog=EXIT_CODES, short_help="The archive of a run as one file for other tools.")
def export(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or a file that was exported.")],
    to: Annotated[Path, typer.Option(metavar="FILE", help="New file: .parquet, .csv, .npz or .safetensors.")],
    no_solutions: Annotated[bool, typer.Option("--no-solutions", help="Leave the solutions out.")] = False,
) -> None:
    """Write the elites of a run to one file, with the grid they lie in.

    dqd.load reads all four kinds; pandas reads Parquet, and CSV with comment="#".
    """
    from dqd.exchange import load

    with _explained(USAGE):
        if to.exists():
            raise FileExistsError(f"--to: {to} already exists; choose another name")
    with _explained(FAILURE):
        archive = load(source)
        archive.save(to, solutions=not no_solutions)
    typer.echo(f"{len(archive):,} elites, {to.stat().st_size:,} bytes: {to}")


CONVERT_HELP = """Turn a checkpoint into the safetensors that lsi-stylegan reads.

\b
SOURCE is one of
  StyleGAN      state dict of the public PyTorch port (g_mapping.*, g_synthesis.*)
  StyleGAN2     checkpoint of the common PyTorch port (g_ema)
  CLIP          Hugging Face directory with the model and its tokenizer
docs/how-to/stylegan-and-clip.md says where they come from.
"""


@app.command(epilog=EXIT_CODES, help=CONVERT_HELP, short_help="Checkpoints of StyleGAN and CLIP to safetensors.")
def convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="File or directory.")],
    to: Annotated[Path, typer.Option(help="Directory to write to; the same for generator and CLIP.")],
    kind: Annotated[
        str | None, typer.Option(metavar="stylegan1|stylegan2|clip", help="What it is, if its names do not tell.")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--i-trust-this-file", help="Unpickle it for real: code in it is run, in a process of its own."),
    ] = False,
) -> None:
    with _explained(FAILURE):
        from dqd.domains.latent.convert import convert as write

        for path in write(source, to, kind, trust=trust):
            typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


@app.command(epilog=EXIT_CODES, short_help="Download the networks of a domain.")
def fetch(
    what: Annotated[str, typer.Argument(metavar="faces", help="The networks of lsi-faces, about 100 MB.")],
    half: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also copy them there in 16 bits, to carry elsewhere.")
    ] = None,
) -> None:
    """Download pinned packages, check them, and keep their networks in the cache. Nothing of theirs is run."""
    from dqd.domains.latent.faces.fetch import fetch

    with _explained(USAGE):
        if what != "faces":
            raise ValueError(f"unknown networks {what!r}. Known: faces")
    with _explained(FAILURE):
        fetch(lambda line: typer.echo(line, err=True), half)


# Searching ------------------------------------------------------------------------------------------------------------


def _illuminate(
    problem: Problem[Any], emitter: Emitter, iterations: int, seed: int, *, quiet: bool = False, **options: Any
) -> Result:
    from dqd import cache
    from dqd.progress import Interrupt
    from dqd.run import Terminated, illuminate

    Interrupt.abrupt = _process_is_ours
    cache.enable()
    settings: dict[str, Any] = {
        "x0": problem.x0,
        "bounds": problem.bounds,
        "initial_sigma": problem.initial_sigma,
        "iterations": iterations,
        "seed": seed,
        "progress": not quiet,
    }
    try:
        return illuminate(problem.domain, emitter, problem.grid, **settings, **options)
    except Terminated as end:
        return end.result


def _demo_digits(out: Path, iterations: int | None) -> NoReturn:
    typer.echo(
        "A small image generator looks for a handwritten 3 of every thickness and every slant.\n"
        "CMA-MEGA (Adam) searches; the first seconds go into compilation."
    )
    with _explained(FAILURE):
        problem, emitter = presets.make_problem("lsi-digits"), presets.preset("lsi-digits", latent.ALGORITHM)
        result = _illuminate(problem, emitter, iterations or latent.pace("lsi-digits").iterations, seed=0)
        demo_cli.remove(out)
        result.save(out)
        figures = latent_cli.finish(problem, result, out, _say(False))
    typer.echo(demo_cli.digits_words(result, latent_cli.words(figures), out))
    _leave(result)


def _say(quiet: bool) -> Callable[[str], None]:
    return (lambda line: None) if quiet else (lambda line: typer.echo(line, err=True))


def _say_best(done: int, best: float) -> None:
    typer.echo(f"step {done:,}: best {best:.4f}", err=True)


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
        ("iterations", f"{result.iterations:,}", result.stopped or ""),
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


def _finite(value: Any) -> Any:
    """JSON knows no infinity: null."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Leaving --------------------------------------------------------------------------------------------------------------


def _leave(result: Result) -> NoReturn:
    raise typer.Exit(STOPPED.get(result.stopped or "", 0))


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
            from dqd.describe import SettingsChangedError

            sys.stdout.flush()
            words = str(error).strip() or type(error).__name__
            typer.echo(f"dqd: error: {words.splitlines()[0]}", err=True)
            raise typer.Exit(USAGE if isinstance(error, FileExistsError | SettingsChangedError) else code) from None
