"""What follows a search: pictures of what counts in the end, and the words for it. All numbers are the library's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqd.console.saying import say
from dqd.inputs.names import METRICS
from dqd.storage.durable import READ_ONLY

if TYPE_CHECKING:
    from dqd.domains.problem import Problem
    from dqd.result import Result

COLLAGE, HEATMAP, DOUBTS = "collage.png", "heatmap.png", "disagreement.png"
PICTURES = (COLLAGE, HEATMAP, DOUBTS)


def finish(problem: Problem[Any], result: Result, out: Path | None, subtitle: str = "") -> dict[str, Any]:
    """Draw the pictures of what counts; what the table and JSON then say."""
    found: dict[str, Any] = {}
    if problem.judges:
        found["rescored"] = {"cells": len(result.archive), **{name: getattr(result, name) for name in METRICS}}
    if result.agreement is not None:
        found |= result.agreement.summary()
    if out is not None and len(result.archive):
        try:
            pictures(problem, result, out, subtitle)
        except OSError as error:
            if error.errno not in READ_ONLY:  # a finished run is shown there all the same
                raise
            say(f"the pictures are not written: {error.strerror}: {out}")
        found["pictures"] = [str(out / name) for name in PICTURES if (out / name).exists()]
    return found


def pictures(problem: Problem[Any], result: Result, out: Path, subtitle: str = "") -> None:
    """Heat map; a map of the judges' disagreement where there are any; a collage where solutions are images."""
    from dqd.figures import draw, plot
    from dqd.saved.agreement import DISAGREEMENT
    from dqd.storage.durable import make_folder

    make_folder(out)
    archive, (objective, *labels) = result.archive, problem.labels
    title = "\n".join(filter(None, (problem.title, subtitle, trust(result))))
    archive.plot(out / HEATMAP, labels=labels, objective=objective, title=title)
    if result.agreement is not None:
        archive.plot(out / DOUBTS, labels=labels, title=title, field=DISAGREEMENT, cmap="magma_r", vmin=0, vmax=2)
    judge = problem.final or problem.domain
    if len(labels) == 2 and hasattr(judge, "render"):
        draw.save(plot.collage(archive, judge.render, labels=labels, title=title), out / COLLAGE)


def trust(result: Result) -> str:
    """How far held-out judges agree, for a title."""
    asked = result.agreement
    if asked is None:
        return ""
    names = " and ".join(dict.fromkeys(opinion.judge for opinion in asked.opinions))
    return f"QD-score {result.qd_score:.1f}, trusted {asked.qd_score:.1f}: {asked.share:.0f} % agreed by {names}"


def words(found: dict[str, Any]) -> str:
    """Lines for the table."""
    lines = []
    if rescored := found.get("rescored"):
        lines.append("judged again, which is what counts:")
        lines += [f"  {name.replace('_', '-'):<15}{_number(value):>12}" for name, value in rescored.items()]
    if opinions := found.get("opinions"):
        lines.append("by held-out judges, which no search has seen:")
        lines.append(f"  {'trusted':<15}{found['trusted_qd_score']:>12.2f} QD-score of the elites that all agree with")
        lines.append(f"  {'agreement':<15}{found['agreement']:>12.2f} % of the elites")
        lines += [f"  {opinion['judge']} on {opinion['score']}: {_opinion(opinion)}" for opinion in opinions]
    lines += [f"  picture        {path}" for path in found.get("pictures", ())]
    return "\n".join(lines)


def _opinion(told: dict[str, Any]) -> str:
    close = "" if told["correlation"] is None else f", correlation {told['correlation']:.2f}"
    apart = "" if told["mean_difference"] is None else f", {told['mean_difference']:.3g} apart on average"
    return f"agrees with {told['agreement']:.1f} % (within {told['tolerance']:.3g}){close}{apart}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
