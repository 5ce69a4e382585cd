"""`--cells`: in what a search keeps its elites, as a word and a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dqd.inputs.names import check_known
from dqd.latent.presets import LATENT

if TYPE_CHECKING:
    from dqd.tessellations.grid import Grid

KINDS = {  # and what their number is
    "cvt": "cells around centroids",
    "dns": "elites at most, those far from fitter ones",
    "novelty": "how far apart elites lie",
    "unbounded": "cells along each measure, whose range is found out",
    "sliding": "cells along each measure, narrow where measures crowd",
}
ANY_SCALE = ("unbounded", "sliding")
HELP = "Instead of a grid: " + ", ".join(f"{kind}:NUMBER ({words})" for kind, words in KINDS.items()) + "."


def archive(domain: str, grid: Grid, text: str | None) -> dict[str, Any]:
    """The options of `illuminate` for one of the kinds. All but "cvt" are measured in the problem's grid."""
    if text is None:
        return {}
    kind, _, number = text.partition(":")
    check_known("cells", kind, tuple(KINDS))
    if domain in LATENT and kind not in ANY_SCALE:
        raise ValueError(f"--cells: the measures of {domain} are of different scales, which distances would mix")
    from dqd.archives import DNS, Novelty, SlidingBoundaries, UnboundedGrid
    from dqd.tessellations.cvt import CVT

    k = grid.num_measures
    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "cvt": lambda: {"tessellation": CVT.uniform(grid.lower, grid.upper, _count(text, number))},
        "dns": lambda: {"tessellation": DNS(k, _count(text, number)), "result_archive": grid},
        "novelty": lambda: {
            "tessellation": Novelty(k, _distance(text, number), local_competition=True),
            "result_archive": grid,
        },
        "unbounded": lambda: {"tessellation": UnboundedGrid((_count(text, number),) * k), "result_archive": grid},
        "sliding": lambda: {
            "tessellation": SlidingBoundaries((_count(text, number),) * k, grid.lower, grid.upper),
            "result_archive": grid,
        },
    }
    return makers[kind]()


def _count(text: str, number: str) -> int:
    if not number.isdecimal():
        raise ValueError(
            f"--cells: expected a whole number after the colon, such as {text.partition(':')[0]}:1000, got {text!r}"
        )
    return int(number)


def _distance(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ValueError(f"--cells: expected a distance after the colon, such as novelty:0.1, got {text!r}") from None
