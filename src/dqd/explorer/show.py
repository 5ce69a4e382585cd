"""`result.show()`: the page of one archive, in a notebook or in a file that any browser opens."""

from __future__ import annotations

import html
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dqd.console.saying import say
from dqd.explorer import describe, page
from dqd.saved import words
from dqd.storage.durable import make_folder, replace_file

if TYPE_CHECKING:
    from dqd.saved.archived import Archived


@dataclass(frozen=True, repr=False)
class Page:
    """The explorer with one archive in it. Notebooks display it; `save` writes it for others to open."""

    content: bytes
    height: int = 820  # pixels of the frame in a notebook

    @property
    def size(self) -> str:
        return f"{max(len(self.content) / 1e6, 0.1):.1f} MB"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML file, which needs no server and no network."""
        make_folder(Path(path).parent)
        replace_file(Path(path), lambda aside: aside.write_bytes(self.content))
        return Path(path)

    def _repr_html_(self) -> str:
        """In a frame of its own, which may run the page's scripts and save files, and nothing else."""
        may = 'sandbox="allow-scripts allow-downloads" allow="clipboard-write"'
        look = "width:100%;border:1px solid #8886;border-radius:6px"
        return (
            f'<iframe title="dqd explorer" {may} height="{self.height}" style="{look}" '
            f'srcdoc="{html.escape(self.content.decode())}"></iframe>'
            f'<p style="margin:4px 0;opacity:.75">{self.size} in this notebook</p>'
        )

    def __repr__(self) -> str:
        return f"Page({self.size})"


def show(source: Archived, *, solutions: bool = True, height: int = 820) -> Page:
    """The explorer's page of a result or an archive, live or saved, with all of its elites in it.

    Notebooks display it; elsewhere it is also written to a temporary file, and said how to open it.

    Args:
        source: what to look at.
        solutions: whether the page holds the solutions too, which may be large.
        height: of the frame in a notebook, in pixels.

    >>> archive = dqd.Archive.empty(dqd.Grid([0, 0], [1, 1], [4, 4]), 2)
    >>> archive, _ = archive.add(jnp.ones((1, 2)), dqd.Evaluation(jnp.array([3.0]), jnp.array([[0.1, 0.9]])))
    >>> dqd.show(archive, height=600).height
    600
    """
    archive = source.to_numpy(solutions=solutions)
    arrays = describe.elites(archive)
    if solutions and archive.solutions is not None:
        arrays["solutions"] = archive.solutions
    run = describe.alone(archive, type(source).__name__)
    if not solutions:
        run["archive"]["numbers"] = None
    about = {"run": run, "curves": describe.curves(archive.metrics, archive.timings), "views": []}
    made = Page(page.build(words.finite(about), arrays), height)
    if not in_notebook():
        path = made.save(Path(tempfile.mkdtemp(prefix="dqd-")) / "page.html")
        say(f"dqd: {made.size} in {path}; open it in a browser: {path.as_uri()}")
    return made


def in_notebook() -> bool:
    """Whether what a cell returns is displayed: by Jupyter, VS Code and their like, or by marimo."""
    ipython, marimo = sys.modules.get("IPython"), sys.modules.get("marimo")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None or bool(marimo and marimo.running_in_notebook())
