"""What follows a search of a latent domain: elites judged again, and pictures."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqd.archives.archive import Archive
    from dqd.domains.problem import Problem
    from dqd.result import Result

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)  # a finished run is shown there all the same
COLLAGE, HEATMAP, RESCORED = "collage.png", "heatmap.png", "rescored.safetensors"


def finish(problem: Problem[Any], result: Result, out: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Judge the elites once more where scores were provisional, draw the pictures; figures for the table and JSON."""
    figures: dict[str, Any] = {}
    archive, judge = result.archive, problem.domain
    if problem.final is not None and len(archive):
        archive, judge = rescore(problem.final, problem.salts, archive, say), problem.final
        metrics = archive.metrics
        figures["rescored"] = {
            "cells": len(archive),
            **{name: float(getattr(metrics, name)) for name in ("qd_score", "coverage", "best", "mean")},
        }
    if out is not None and len(archive):
        try:
            pictures(problem, archive, judge, out)
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise
            say(f"the pictures are not written: {error.strerror}: {out}")
        figures["pictures"] = [str(out / name) for name in (COLLAGE, HEATMAP) if (out / name).exists()]
    return figures


def rescore(judge: Any, salts: Sequence[int], archive: Archive, say: Callable[[str], None]) -> Archive:
    from dqd.latent import reevaluate

    def told(done: int, total: int) -> None:
        if done == total or done * 10 // total > (done - judge.chunk) * 10 // total:  # every tenth
            say(f"judged again: {done:,} of {total:,} elites")

    return reevaluate(archive, judge, salts, say=told)


def pictures(problem: Problem[Any], archive: Archive, judge: Any, out: Path) -> None:
    """Collage and heat map; the re-scored archive where there is one."""
    from dqd.figures import collage, draw, panels
    from dqd.storage.durable import make_folder, replace_file

    arrays = archive.arrays()
    make_folder(out)
    if judge is problem.final:
        replace_file(out / RESCORED, arrays)
    if len(problem.labels) > 3:
        return
    x_label, y_label = (*problem.labels[1:], "")[:2]
    panel = panels.heatmap(arrays, x_label=x_label, y_label=y_label, value_label=problem.labels[0])
    draw.save(draw.heatmap(panel, title=problem.title), out / HEATMAP)
    if len(problem.labels) == 3:
        figure = collage.collage(arrays, judge.render, labels=problem.labels[1:], title=problem.title)
        draw.save(figure, out / COLLAGE, dpi=int(figure.dpi))


def words(figures: dict[str, Any]) -> str:
    """Lines for the table."""
    lines = []
    if rescored := figures.get("rescored"):
        lines.append("judged again, which is what counts:")
        lines += [f"  {name.replace('_', '-'):<15}{_number(value):>12}" for name, value in rescored.items()]
    lines += [f"  picture        {path}" for path in figures.get("pictures", ())]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
