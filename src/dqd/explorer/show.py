"""`result.show()`: the page of one archive, in a notebook or in a file that any browser opens."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dqd.console.saying import say
from dqd.explorer import describe, page
from dqd.figures.frame import Page
from dqd.saved import words

if TYPE_CHECKING:
    from dqd.saved.archived import Archived


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
