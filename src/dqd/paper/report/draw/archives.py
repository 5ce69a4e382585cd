"""Archives as heat maps: those of every algorithm and domain side by side (the paper's `fig:results`,
`fig:cmame_extra_results` and `fig:ablation_norm_gradients`), and the last digits of the arm's."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dqd.figures.draw import COLORS, EMPTY, heatmap, new_axes
from dqd.figures.panels import HeatMap
from dqd.paper.report import panels
from dqd.paper.report.collect import SuiteData
from dqd.paper.report.draw.looks import FAINT, Options, number


def archives(suite: SuiteData) -> Figure | None:
    """The archives of every algorithm (rows) on every domain (columns): `fig:results`."""
    return _archives(panels.archives(suite), size=1.12)


def archives_large(suite: SuiteData) -> Figure | None:
    """The same in panels of more than 500 pixels, one for each of 500 x 500 cells: `fig:cmame_extra_results`."""
    return _archives(panels.archives(suite), size=2.6)


def sphere_archives(suite: SuiteData) -> Figure | None:
    """The archives of every algorithm on the sphere, side by side: `fig:ablation_norm_gradients`."""
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
    axes.set_xticks([left, right], [number(left), number(right)])
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")


def near_optimum(suite: SuiteData) -> Figure | None:
    """The arm archive of CMA-MEGA (Adam), in colours for the last digits below 100."""
    panel = panels.near_optimum(suite)
    if panel is None:
        return None
    axes = new_axes()
    heatmap(panel.nines, axes, title=f"{panel.name} on the arm", vmin=3, vmax=6)
    figure, bar = axes.get_figure(root=True), axes.images[0].colorbar
    assert figure is not None
    assert bar is not None
    bar.set_ticks([3, 4, 5, 6], labels=["99.999", "99.9999", "99.99999", "99.999999"])
    source = "computed in float64 from the joint angles" if panel.recomputed else "as stored"
    step = f"search in {panel.precision}, with steps of {panel.step:.0e} next to 100".replace("e-0", "e-")
    remark = f"objective {source};\n{step}: {panel.at_optimum:.2g} % of the elites count as 100"
    figure.supxlabel(remark, fontsize=6, color=FAINT)
    return figure
