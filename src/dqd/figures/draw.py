"""Drawing panels with matplotlib, in one style. Figures are objects of their own: no pyplot, no display needed."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from dqd.figures.panels import HeatMap, Poses
from dqd.storage.durable import make_folder, replace_file

COLORS = "viridis"  # even in lightness, and safe for colour-blind readers
EMPTY = "#ececec"
WIDTH = 3.5  # inches, one column of a page
DPI = 200
LETTERS = 36  # of a line beside a map
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.formatter.useoffset": False,  # 99.998 on an axis, not 0.8 + 99.99
    "axes.edgecolor": "#444444",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


def heatmap(
    panel: HeatMap,
    *,
    title: str | None = None,
    limits: tuple[float, float] | None = None,
    colors: str = COLORS,
) -> Figure:
    """The archive in colours; an archive of one measure is drawn as steps.

    `limits` is the objective at both ends of the colour scale: by default that of the worst and of the best elite. A
    few elites far below all others do not count there: they would take most of the colours.
    """
    low, high = _limits(panel.matrix) if limits is None else limits
    with matplotlib.rc_context(STYLE):
        if panel.num_measures == 1:
            return _steps(panel, title)
        figure = Figure(figsize=(WIDTH, 0.84 * WIDTH), layout="constrained")
        axes = figure.add_subplot()
        axes.set_facecolor(EMPTY)
        image = axes.imshow(
            panel.matrix,
            origin="lower",
            extent=panel.extent,
            aspect="auto",
            interpolation="nearest",
            cmap=colors,
            vmin=low,
            vmax=high,
        )
        axes.set_box_aspect(1)
        beside = axes.inset_axes((1.04, 0, 0.05, 1))
        bar = figure.colorbar(image, cax=beside, extend=_extend(panel.matrix, low, high))
        bar.outline.set_linewidth(0.6)
        bar.set_label(words(panel.value_label), parse_math=False)
        name(axes, panel.x_label, panel.y_label, title)
    return figure


def poses(panel: Poses, *, title: str | None = None, columns: int = 2, colors: str = COLORS) -> Figure:
    """Arms side by side, each from its base to its hand within the circle it can reach."""
    count = len(panel.joints)
    columns = min(columns, count)
    rows = -(-count // columns)
    with matplotlib.rc_context(STYLE):
        height = WIDTH * (rows / columns + 0.04 * rows + 0.08 * bool(title))  # a line of text above each row
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        for i, (joints, objective) in enumerate(zip(panel.joints, panel.objective, strict=True)):
            _arm(figure.add_subplot(rows, columns, i + 1), joints, float(objective), panel.reach, colors)
        if title:
            figure.suptitle(title, fontsize=9)
    return figure


def save(figure: Figure, path: str | os.PathLike[str], *, dpi: int = DPI) -> Path:
    """Write a figure; the ending of the name says in which format."""
    target = Path(path)
    formats = figure.canvas.get_supported_filetypes()
    if target.suffix.lstrip(".").lower() not in formats:
        raise ValueError(f"{target}: a picture's name must end in one of: {', '.join(f'.{name}' for name in formats)}")
    make_folder(target.parent)
    replace_file(target, lambda aside: figure.savefig(aside, dpi=dpi, bbox_inches="tight", pad_inches=0.05))
    return target


def _steps(panel: HeatMap, title: str | None) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.6 * WIDTH), layout="constrained")
    axes = figure.add_subplot()
    values = panel.matrix[0]
    edges = np.linspace(panel.extent[0], panel.extent[1], values.size + 1)
    axes.stairs(values, edges, baseline=None, color=matplotlib.colormaps[COLORS](0.25), linewidth=1.2)
    axes.set_xlim(edges[0], edges[-1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    name(axes, panel.x_label, panel.value_label, title)
    return figure


def _arm(axes: Axes, joints: np.ndarray, objective: float, reach: float, colors: str) -> None:
    axes.add_patch(Circle((0, 0), reach, facecolor="#f6f6f6", edgecolor="#bbbbbb", linewidth=0.6))
    links = np.stack([joints[:-1], joints[1:]], axis=1)
    along = np.linspace(0, 0.9, len(links))  # the very light end of the scale would vanish on the disc
    axes.add_collection(
        LineCollection(list(links), array=along, cmap=colors, clim=(0, 1), linewidth=2.2, capstyle="round")
    )
    axes.plot(*joints[0], "s", color="#222222", markersize=4.5)
    axes.plot(*joints[-1], "o", color="#d55e00", markersize=6, markeredgecolor="white", markeredgewidth=0.8)
    axes.set_xlim(-1.05 * reach, 1.05 * reach)
    axes.set_ylim(-1.05 * reach, 1.05 * reach)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(f"objective {objective:.6g}", fontsize=8, color="#444444", pad=3)


def _limits(matrix: np.ndarray) -> tuple[float, float]:
    values = matrix[np.isfinite(matrix)]
    if values.size == 0:
        return 0.0, 1.0
    hundredth, quarter, three_quarters = np.quantile(values, [0.01, 0.25, 0.75])
    fence = quarter - 3 * (three_quarters - quarter)  # below it a value is "far out" (Tukey 1977)
    low, high = float(values[values >= min(fence, hundredth)].min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _extend(matrix: np.ndarray, low: float, high: float) -> str:
    below, above = bool(np.nanmin(matrix, initial=low) < low), bool(np.nanmax(matrix, initial=high) > high)
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[below, above]


def name(axes: Axes, x_label: str, y_label: str, title: str | None) -> None:
    """Label the axes, and give them a title."""
    axes.set_xlabel(words(x_label), parse_math=False)  # anyone's words: a $ is a $
    axes.set_ylabel(words(y_label), parse_math=False)
    if title:
        axes.set_title(words(title), parse_math=False)


def words(text: str) -> str:
    """In lines short enough for a map to stand beside them."""
    return textwrap.fill(text, LETTERS)
