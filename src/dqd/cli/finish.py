"""What follows a search: what counts in the end, and pictures of it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqd.console.saying import say
from dqd.inputs.names import METRICS

if TYPE_CHECKING:
    from dqd.archives.archive import Archive
    from dqd.domains.problem import Problem
    from dqd.result import Result

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)  # a finished run is shown there all the same
COLLAGE, HEATMAP, RESCORED = "collage.png", "heatmap.png", "rescored.safetensors"


def finish(problem: Problem[Any], result: Result, out: Path | None) -> dict[str, Any]:
    """Draw the pictures of what counts; what the table and JSON then say."""
    found: dict[str, Any] = {}
    archive = result.archive
    if result.judged is not None:
        found["rescored"] = {"cells": len(archive), **{name: getattr(result, name) for name in METRICS}}
    if out is not None and len(archive):
        try:
            pictures(problem, archive, problem.final or problem.domain, out)
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise
            say(f"the pictures are not written: {error.strerror}: {out}")
        found["pictures"] = [str(out / name) for name in (COLLAGE, HEATMAP) if (out / name).exists()]
    return found


def pictures(problem: Problem[Any], archive: Archive, judge: Any, out: Path) -> None:
    """Heat map, and a collage where solutions are images; the re-scored archive where there is one."""
    from dqd.figures import draw, plot
    from dqd.storage.durable import make_folder, replace_file

    make_folder(out)
    if judge is problem.final:
        replace_file(out / RESCORED, archive.arrays())
    objective, *labels = problem.labels
    archive.plot(out / HEATMAP, labels=labels, objective=objective, title=problem.title)
    if len(labels) == 2 and hasattr(judge, "render"):
        draw.save(plot.collage(archive, judge.render, labels=labels, title=problem.title), out / COLLAGE)


def words(found: dict[str, Any]) -> str:
    """Lines for the table."""
    lines = []
    if rescored := found.get("rescored"):
        lines.append("judged again, which is what counts:")
        lines += [f"  {name.replace('_', '-'):<15}{_number(value):>12}" for name, value in rescored.items()]
    lines += [f"  picture        {path}" for path in found.get("pictures", ())]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
