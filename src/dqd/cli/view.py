"""`dqd view`: runs in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqd.cli.exits import FAILURE, USAGE, explained


def view(
    place: Annotated[
        Path, typer.Argument(metavar="[FOLDER|RUN|FILE]", help="Folder of runs, one run, or an exported archive.")
    ] = Path("runs"),
    host: Annotated[str, typer.Option(help="Address to listen on; beyond your own, others can connect.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; default 8765, or a free one.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
) -> None:
    """Open an explorer in the browser: every run below a folder, live or finished, and what is in every cell.

    It only reads. It listens on this machine alone, and only the browser that opens the link is let in.
    """
    with explained(USAGE):
        if not place.exists():
            raise FileNotFoundError(f"{place}: there is no such folder, run or file; give one, or make one: dqd demo")
        try:
            from dqd.explorer.server import serve
        except ImportError as error:
            raise ImportError(f"dqd view needs {error.name}: pip install 'dqd[view]'") from None
    with explained(FAILURE):
        serve(place, host, port, browser=not no_browser, say=typer.echo)
