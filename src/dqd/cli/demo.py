"""`dqd demo`: a first look. Its words, its pictures, and the folder that a next demo may replace."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dqd.cli import finish
from dqd.cli.exits import FAILURE, USAGE, explained, leave
from dqd.cli.searching import search
from dqd.latent import presets as latent
from dqd.paper import presets

if TYPE_CHECKING:
    from dqd.result import Result

DOMAINS = ("arm", "lsi-digits")
PICTURES = ("heatmap.png", "poses.png", "collage.png", "disagreement.png")
FOLDERS = re.compile(r"steps(/\d{9})?")
NAMES = re.compile(
    rf"{FOLDERS.pattern}|steps/\d{{9}}/[a-z]+\.(json|jsonl|safetensors)|config\.json|{'|'.join(PICTURES)}"
)
ITERATIONS, JOINTS = 5_000, 1_000


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
    with explained(USAGE):
        if domain not in DOMAINS:
            raise ValueError(f"--domain: the demo knows arm and lsi-digits, got {domain!r}; see dqd run for others")
        check_folder(out)
    if domain == "lsi-digits":
        _demo_digits(out, iterations)
    iterations = iterations or ITERATIONS
    typer.echo(
        f"An arm of {JOINTS:,} joints looks for a pose for every point in reach, its angles as equal as can be.\n"
        f"CMA-MEGA searches for {iterations:,} iterations; the first seconds go into compilation."
    )
    with explained(FAILURE):
        problem, emitter = presets.make_problem("arm", JOINTS), presets.preset("arm", "cma-mega")
        result = search(problem, emitter, iterations, seed=0)
        save(result, out, domain)
        draw_arm(result, out)
    typer.echo(arm_words(result, out))
    leave(result)


def _demo_digits(out: Path, iterations: int | None) -> NoReturn:
    typer.echo(
        "A small image generator looks for a handwritten 3 of every thickness and every slant.\n"
        "CMA-MEGA (Adam) searches; the first seconds go into compilation."
    )
    with explained(FAILURE):
        problem, emitter = presets.make_problem("lsi-digits"), presets.preset("lsi-digits", latent.ALGORITHM)
        result = search(problem, emitter, iterations or latent.iterations("lsi-digits"), seed=0)
        save(result, out, "lsi-digits")
        found = finish.finish(problem, result, out)
    typer.echo(digits_words(result, finish.words(found), out))
    leave(result)


def arm_words(result: Result, out: Path) -> str:
    disc = 25 * math.pi  # percent of the square around it
    return f"""
Found {len(result.elites):,} poses with {result.evaluations:,} evaluations and {result.gradients:,} gradients,
in {result.seconds:.1f} s and {result.compile_seconds:.1f} s of compilation.
They fill {result.coverage:.1f} % of the map; the disc that the hand can reach covers {disc:.1f} % of it.
An objective of 100 means that all angles are equal: the best pose has {result.best:.4f}, the mean is {result.mean:.4f}.

  heat map   {out / "heatmap.png"}
  poses      {out / "poses.png"}
  record     {out}{os.sep}

Look into every cell: dqd view {out}
Next: dqd run --domain lp-sphere --algorithm cma-mega"""


def digits_words(result: Result, pictures: str, out: Path) -> str:
    return f"""
Found {len(result.elites):,} digits with {result.evaluations:,} evaluations and {result.gradients:,} gradients,
in {result.seconds:.1f} s and {result.compile_seconds:.1f} s of compilation.
They fill {result.coverage:.1f} % of the map. An objective of 100 means that the classifier is certain of a 3:
the best has {result.best:.2f}, the mean is {result.mean:.2f}.

{pictures}
  record         {out}{os.sep}

Look into every cell: dqd view {out}
Next: dqd run --domain lsi-digits --objective digit-8 --measure width --measure slant"""


def draw_arm(result: Result, out: Path) -> None:
    """Heat map and poses."""
    from dqd.figures import draw, panels

    title = f"{len(result.elites):,} poses of an arm"
    result.plot(out / "heatmap.png", title=title, objective="objective (100: angles equal)")
    draw.save(draw.poses(panels.arm_poses(result.archive.arrays(), 4)), out / "poses.png")


def save(result: Result, out: Path, domain: str) -> None:
    """In the place of an older demo, if nothing else has come there during the search."""
    check_folder(out)
    remove(out)
    result.save(out, about={"demo": domain})


def remove(out: Path) -> None:
    """An older demo; last of all what says that it is one."""
    from dqd.storage import durable

    if (out / "steps").exists():
        durable.remove_folder(out / "steps")
    durable.remove_temporary(out)
    for name in (*PICTURES, "config.json"):
        (out / name).unlink(missing_ok=True)


def check_folder(out: Path) -> None:
    """Refuse a folder that holds anything but a demo, which may be replaced."""
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"--out: {out} is not a folder")
    if not out.exists() or not any(out.iterdir()):
        return
    others = sorted(str(path.relative_to(out)) for path in out.rglob("*") if not _is_a_demos(path, out))
    if others:
        more = ", ..." if len(others) > 3 else ""
        found = f"holds files that are not a demo's ({', '.join(others[:3])}{more})"
    elif not _says_demo(out):
        found = "holds a result, or pictures, that no demo has written"
    else:
        return
    raise FileExistsError(f"--out: {out} {found}; choose another folder, or move them away")


def _is_a_demos(path: Path, out: Path) -> bool:
    """Whether a demo writes a file, or a folder, of this name there, or has left it half written."""
    from dqd.storage import durable

    name = path.relative_to(out).as_posix()
    if durable.OURS.fullmatch(name.split("/")[0]):
        return True
    return not path.is_symlink() and bool(NAMES.fullmatch(name)) and path.is_dir() == bool(FOLDERS.fullmatch(name))


def _says_demo(out: Path) -> bool:
    from dqd.safe import load_json

    try:
        return load_json(out / "config.json").get("demo") in DOMAINS
    except (OSError, ValueError, AttributeError):
        return False
