"""Draws the figures of a suite, in the style of `draw`: `write_figures(folder, out)`.

An algorithm has the same colour, dashes and marker in every figure. What is missing is said in the panel that lacks it;
a figure without any data is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.ticker import MultipleLocator

from dqd.figures.draw import COLORS, EMPTY, STYLE, heatmap, save
from dqd.figures.panels import HeatMap, Poses
from dqd.paper.report import suite_panels as panels
from dqd.paper.report.ceilings import LIMIT
from dqd.paper.report.collect import SuiteData, read_suite

PAGE = 7.2  # inches, two columns of a page and the gap between them
FAINT = "#666666"
Options = dict[str, Any]


@dataclass(frozen=True)
class Look:
    """How an algorithm is drawn."""

    color: str
    dashes: str | tuple[float, tuple[float, ...]]
    marker: str
    hollow: bool = False


_DASH, _DOT, _DASH_DOT = (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2))
# Told apart by colour-blind readers too: the two nearest are 20 apart in CIELAB under protan-, deuter- and tritanopia
# (Machado et al. 2009), and 37 in full colour. A variant has the colour of its algorithm.
LOOKS = {
    "map-elites": Look("#999999", "-", "o"),
    "map-elites-line": Look("#000000", _DASH, "s"),
    "cma-me": Look("#56b4e9", "-", "^"),
    "og-map-elites": Look("#e69f00", "-", "v"),
    "og-map-elites-line": Look("#994f88", _DASH, "D"),
    "omg-mega": Look("#0a7d4f", "-", "P"),
    "cma-mega": Look("#2a52be", "-", "X"),
    "cma-mega-adam": Look("#cc3311", _DASH, "*"),
    "og-map-elites-independent.paper-budget": Look("#e69f00", _DOT, "v", hollow=True),
    "og-map-elites-independent.released-budget": Look("#e69f00", _DASH_DOT, "<", hollow=True),
    "og-map-elites-line-independent.paper-budget": Look("#994f88", _DOT, "D", hollow=True),
    "og-map-elites-line-independent.released-budget": Look("#994f88", _DASH_DOT, "d", hollow=True),
}
OTHER = Look("#444444", _DOT, ".")


def write_figures(folder: Path, out: Path) -> list[Path]:
    """Draw every figure that the suite in `folder` has the data for, as `<suite>-<figure>.png`."""
    return draw_figures(read_suite(folder), out)


def draw_figures(suite: SuiteData, out: Path) -> list[Path]:
    """The same for a suite that has been read."""
    written = []
    for draw in FIGURES_OF.get(suite.name, []):
        with matplotlib.rc_context(STYLE):
            figure = draw(suite)
            if figure is not None:
                written.append(save(figure, Path(out) / f"{suite.name}-{draw.__name__.replace('_', '-')}.png"))
    return written


# Means over trials ----------------------------------------------------------------------------------------------------


def curves(suite: SuiteData) -> Figure | None:
    """QD-score against iteration, one panel per domain."""
    figure, axes = _lines(panels.curves(suite), "iteration", "QD-score")
    last = max(cell.iterations for cell in suite.cells)
    for each in axes:
        each.set_xlim(0, last)
        each.set_xticks([0, last / 2, last])
        each.xaxis.set_major_formatter("{x:,.0f}")
        each.get_xticklabels()[-1].set_horizontalalignment("right")  # away from the next panel's zero
    return figure


def curves_logarithmic(suite: SuiteData) -> Figure | None:
    """The same with a logarithmic axis of iterations."""
    figure, axes = _lines(panels.curves(suite), "iteration", "QD-score", scale=np.log)
    for each in axes:
        each.set_xscale("log")
        first = min(int(cell.steps[0]) for cell in suite.cells if len(cell.steps))
        each.set_xlim(first, max(cell.iterations for cell in suite.cells))
    return figure


def cumulative(suite: SuiteData) -> Figure | None:
    """Percent of cells with an objective of at least t, one panel per domain."""
    figure, axes = _lines(panels.cumulative(suite), "t", "cells with objective ≥ t, %")
    for each in axes:
        each.set_xlim(0, 100)
    return figure


def _lines(
    domains: Sequence[panels.Lines], x_label: str, y_label: str, scale: Callable[..., np.ndarray] = np.asarray
) -> tuple[Figure | None, list[Axes]]:
    """Panels side by side with one vertical axis and one legend; nothing if there is no line."""
    if not any(panel.lines for panel in domains):
        return None, []
    figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
    axes = list(figure.subplots(1, len(domains), sharey=True, squeeze=False)[0])
    bottom, top = _range(domains)
    for each, panel in zip(axes, domains, strict=True):
        _panel(each, panel, scale)
        _below(each, x_label, [*_cut(panel, bottom), *_missing(panel.missing)])
    axes[0].set_ylabel(y_label)
    axes[0].set_ylim(bottom, top)
    axes[0].yaxis.set_major_locator(MultipleLocator(20))
    _legend(figure, domains)
    return figure, axes


def _panel(axes: Axes, panel: panels.Lines, scale: Callable[..., np.ndarray]) -> None:
    axes.set_title(panel.title)
    _plain(axes)
    for i, line in enumerate(panel.lines):
        style = _style(line.key)
        marks = _marks(scale(line.x), (i + 0.5) / len(panel.lines))
        axes.fill_between(line.x, line.low, line.high, color=style["color"], alpha=0.25, linewidth=0)
        axes.plot(line.x, line.mean, markevery=marks, **style)
    if panel.bound is not None and panel.bound < 100:
        axes.axhline(panel.bound, color=FAINT, linewidth=0.7, linestyle=_DOT)
        place: Options = {"xy": (1, panel.bound), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(f"upper bound {panel.bound:.4g}", xytext=(0, 1.5), ha="right", fontsize=6, color=FAINT, **place)


def _style(key: str) -> Options:
    look = LOOKS.get(key, OTHER)
    face = "white" if look.hollow else look.color
    line = {"color": look.color, "linestyle": look.dashes, "linewidth": 1.1}
    return line | {"marker": look.marker, "markersize": 3.8, "markerfacecolor": face, "markeredgewidth": 0.5}


def _marks(x: np.ndarray, shift: float, count: int = 5) -> list[int]:
    """Where a line gets its markers, evenly on the axis; shifted, so that markers of near lines do not meet."""
    places = x[0] + (x[-1] - x[0]) * (np.arange(count) + shift) / count
    return sorted({min(int(i), len(x) - 1) for i in np.searchsorted(x, places)})


def _range(domains: Sequence[panels.Lines]) -> tuple[float, float]:
    """From 0, or a little below where scores are negative, to the highest bound."""
    lines = [line for panel in domains for line in panel.lines]
    lowest = min(float(line.mean.min()) for line in lines)
    top = max([float(line.mean.max()) for line in lines] + [panel.bound or 0.0 for panel in domains])
    return max(min(0.0, lowest), -0.06 * top) - 0.02 * top, 1.05 * top  # room for the markers on the axis


def _cut(panel: panels.Lines, bottom: float) -> list[str]:
    """Which lines leave the panel, and how far."""
    fallen = [line for line in panel.lines if line.mean.min() < bottom]
    return [f"{line.name} falls to {_number(line.mean.min())}" for line in fallen]


def _missing(sentences: Sequence[str]) -> list[str]:
    """What a panel lacks, in a few lines."""
    more = [f"and {len(sentences) - 3} more"] if len(sentences) > 4 else []
    return [*sentences[: 3 if more else 4], *more]


def _legend(figure: Figure, domains: Sequence[panels.Lines]) -> None:
    names = {line.key: line.name for panel in domains for line in panel.lines}
    order = sorted(names, key=lambda key: list(LOOKS).index(key) if key in LOOKS else len(LOOKS))  # the paper's
    handles = [Line2D([], [], label=names[key], **_style(key)) for key in order]
    width = 0.5 + 0.055 * max(map(len, names.values()))  # inches: the line, and about that much for a letter
    look: Options = {"frameon": False, "fontsize": 7, "title_fontsize": 7, "handlelength": 3.6}
    columns = min(4, int(PAGE / width))
    figure.legend(handles=handles, title=_about(domains), loc="outside lower center", ncols=columns, **look)


def _about(domains: Sequence[panels.Lines]) -> str:
    trials = [line.trials for panel in domains for line in panel.lines]
    if max(trials) == 1:
        return "one trial each: no interval"
    count = f"{max(trials)}" if min(trials) == max(trials) else f"{min(trials)} to {max(trials)}"
    return f"mean over {count} trials, shaded: its 95 % bootstrap interval"


# Archives -------------------------------------------------------------------------------------------------------------


def archives(suite: SuiteData) -> Figure | None:
    """The archives of every algorithm (rows) on every domain (columns)."""
    return _archives(panels.archives(suite), size=1.12)


def archives_large(suite: SuiteData) -> Figure | None:
    """The same in panels of more than 500 pixels: one for each of 500 x 500 cells."""
    return _archives(panels.archives(suite), size=2.6)


def sphere_archives(suite: SuiteData) -> Figure | None:
    """The archives of every algorithm on the sphere, side by side."""
    return _archives(panels.archives(suite, ["lp-sphere"]).turned(), size=1.4)


def _archives(panel: panels.Archives, size: float) -> Figure | None:
    """`size` is the width of one archive in inches."""
    if not panel.maps:
        return None
    rows, columns = len(panel.rows), len(panel.columns)
    layout = ConstrainedLayoutEngine(w_pad=0.025, h_pad=0.025, wspace=0.02, hspace=0.02)
    figure = Figure(figsize=(columns * size + 0.9, rows * size + 0.6), layout=layout)
    grid = figure.subplots(rows, columns, squeeze=False)
    images = [_archive(grid[place], each) for place, each in panel.maps.items()]
    below = any(np.nanmin(each.matrix, initial=0) < 0 for each in panel.maps.values())
    shape: Options = {"aspect": 28, "fraction": 0.046, "pad": 0.03, "shrink": min(0.9, 3.5 / rows / size)}
    bar = figure.colorbar(images[0], ax=grid, extend="min" if below else "neither", label="objective", **shape)
    bar.outline.set_linewidth(0.6)
    _label(grid, panel)
    figure.supxlabel("measure 0 to the right, measure 1 upward, in the same range", fontsize=7)
    return figure


def _archive(axes: Axes, panel: HeatMap) -> AxesImage:
    axes.set_facecolor(EMPTY)
    place: Options = {"origin": "lower", "extent": panel.extent, "aspect": "auto", "interpolation": "nearest"}
    return axes.imshow(panel.matrix, cmap=COLORS, vmin=0, vmax=100, **place)


def _label(grid: np.ndarray, panel: panels.Archives) -> None:
    """Names of rows and columns, notes, and numbers below the lowest row."""
    extents = {column: each.extent for (_, column), each in panel.maps.items()}
    for (row, column), axes in np.ndenumerate(grid):
        axes.set_box_aspect(1)
        axes.set(xticks=[], yticks=[])
        if row == 0:
            axes.set_title(panel.columns[column], fontsize=7.5)
        if column == 0:
            axes.set_ylabel(panel.rows[row], fontsize=7)
        if row == len(grid) - 1 and column in extents:
            _ends(axes, *extents[column][:2])
        if (row, column) in panel.notes:
            _note(axes, panel.notes[row, column], corner=(row, column) in panel.maps)


def _note(axes: Axes, note: str, corner: bool) -> None:
    x, y, size = (0.03, 0.04, 6) if corner else (0.5, 0.5, 8)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.text(x, y, note, transform=axes.transAxes, ha="left" if corner else "center", fontsize=size, bbox=box)


def _ends(axes: Axes, left: float, right: float) -> None:
    """Numbers at both ends of the axis, within its width: those of neighbours do not meet."""
    axes.set_xlim(left, right)
    axes.set_xticks([left, right], [_number(left), _number(right)])
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")


def near_optimum(suite: SuiteData) -> Figure | None:
    """The arm archive of CMA-MEGA (Adam), in colours for the last digits below 100."""
    panel = panels.near_optimum(suite)
    if panel is None:
        return None
    figure = heatmap(panel.nines, title=f"{panel.name} on the arm", limits=(3, 6))
    bar = figure.axes[0].images[0].colorbar
    assert bar is not None
    bar.set_ticks([3, 4, 5, 6], labels=["99.999", "99.9999", "99.99999", "99.999999"])
    source = "computed in float64 from the joint angles" if panel.recomputed else "as stored"
    step = f"search in {panel.precision}, with steps of {panel.step:.0e} next to 100".replace("e-0", "e-")
    remark = f"objective {source};\n{step}: {panel.at_optimum:.2g} % of the elites count as 100"
    figure.supxlabel(remark, fontsize=6, color=FAINT)
    return figure


# The domains explained ------------------------------------------------------------------------------------------------


def lp_examples(_: SuiteData) -> Figure:
    """Why the linear projection is hard: random solutions have nearly equal measures, and large steps fold back."""
    figure = Figure(figsize=(PAGE, 2.1), layout="constrained")
    density, value, slope = figure.subplots(1, 3)
    _bates(density)
    for axes, function, name in ((value, panels.clip, "clip(x)"), (slope, panels.clip_slope, "derivative of clip(x)")):
        for low, high in ((-8, -LIMIT - 1e-9), (-LIMIT, LIMIT), (LIMIT + 1e-9, 8)):  # apart: it jumps between them
            x = np.linspace(low, high, 200)
            axes.plot(x, function(x), color=LOOKS["cma-mega"].color, linewidth=1.3)
        axes.set(xlim=(-8, 8), xlabel="x", title=name)
        axes.set_xticks([-8, -LIMIT, 0, LIMIT, 8])
        axes.xaxis.set_major_formatter("{x:g}")
        _plain(axes)
    return figure


def _bates(axes: Axes) -> None:
    x = np.linspace(0, 1, 1001)
    for n, color, dashes in zip((1, 2, 5, 20), (0.0, 0.3, 0.55, 0.75), ("-", _DASH, _DASH_DOT, _DOT), strict=True):
        shade = matplotlib.colormaps[COLORS](color)
        axes.plot(x, panels.bates(n, x), color=shade, linestyle=dashes, linewidth=1.3, label=f"n = {n}")
    axes.legend(loc="upper right", frameon=False, fontsize=7, handlelength=2.4)
    axes.set(xlim=(0, 1), ylim=(0, None), title="Mean of n uniform numbers", xlabel="mean", ylabel="density (Bates)")
    axes.set_xticks([0, 0.5, 1])
    axes.xaxis.set_major_formatter("{x:g}")
    _plain(axes)


def arm_examples(_: SuiteData) -> Figure:
    """Arms of 7 joints: an optimal one, one that is not, and many optimal ones."""
    figure = Figure(figsize=(PAGE, 2.65), layout="constrained")
    examples = panels.example_arms()
    for axes, (name, poses) in zip(figure.subplots(1, len(examples)), examples.items(), strict=True):
        _arms(axes, poses)
        axes.set(title=name, xlabel=f"objective {poses.objective.min():.4g}")
    return figure


def _arms(axes: Axes, poses: Poses) -> None:
    many = len(poses.joints) > 1
    axes.add_patch(Circle((0, 0), poses.reach, facecolor="#f6f6f6", edgecolor="#bbbbbb", linewidth=0.6))
    for i, joints in enumerate(poses.joints):
        shade = matplotlib.colormaps[COLORS](0.9 * i / max(1, len(poses.joints) - 1))
        axes.plot(*joints.T, "-o", color=shade, linewidth=1 if many else 2, markersize=1.5 if many else 3.5)
        axes.plot(*joints[-1], "o", color="#d55e00", markersize=3.5 if many else 6, markeredgecolor="white", zorder=3)
    axes.plot(0, 0, "s", color="#222222", markersize=4.5, zorder=3)
    edge = 1.05 * poses.reach
    axes.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


# Helpers --------------------------------------------------------------------------------------------------------------


def _plain(axes: Axes) -> None:
    axes.grid(color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _below(axes: Axes, label: str, remarks: Sequence[str]) -> None:
    """The axis' name, and remarks in small print under it."""
    name = axes.set_xlabel(label)
    place: Options = {"xy": (0.5, 0), "xycoords": name, "xytext": (0, -3), "textcoords": "offset points"}
    axes.annotate("\n".join(remarks), ha="center", va="top", fontsize=6, color=FAINT, **place)


def _number(value: float) -> str:
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")


FIGURES_OF: dict[str, list[Callable[[SuiteData], Figure | None]]] = {
    "table1": [curves, archives, near_optimum, cumulative, lp_examples, arm_examples],
    "million": [curves_logarithmic],
    "normalization": [sphere_archives],
    "operators": [curves],
    "resolution": [archives_large],
    "precision": [near_optimum],
}
