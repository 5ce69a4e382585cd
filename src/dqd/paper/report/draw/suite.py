"""Which figures every suite has, and their writing.

What is missing is said in the panel that lacks it; a figure without any data is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from dqd.figures.draw import STYLE, save
from dqd.paper.layout import picture_name
from dqd.paper.report.collect import SuiteData
from dqd.paper.report.draw.archives import archives, archives_large, near_optimum, sphere_archives
from dqd.paper.report.draw.curves import cumulative, curves, curves_logarithmic
from dqd.paper.report.draw.domains import arm_examples, lp_examples

FIGURES_OF: dict[str, list[Callable[[SuiteData], Figure | None]]] = {
    "table1": [curves, archives, near_optimum, cumulative, lp_examples, arm_examples],
    "million": [curves_logarithmic],
    "normalization": [sphere_archives],
    "operators": [curves],
    "resolution": [archives_large],
    "precision": [near_optimum],
    "annealing": [curves, archives, cumulative],
    "high-dimensional": [curves],
}


def draw_figures(suite: SuiteData, out: Path) -> list[Path]:
    """Draw every figure that the suite has the data for."""
    written = []
    for draw in FIGURES_OF.get(suite.name, []):
        with matplotlib.rc_context(STYLE):
            figure = draw(suite)
            if figure is not None:
                written.append(save(figure, out / picture_name(suite.name, draw.__name__)))
    return written
