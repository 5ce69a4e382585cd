"""Drawing panels with matplotlib, in one style. Figures are objects of their own: no pyplot, no display needed."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from dqd.figures.lines import Line
from dqd.figures.panels import HeatMap, Pairs, Parallel, Poses
from dqd.storage.durable import make_folder, replace_file

COLORS = "viridis"  # even in lightness, and safe for colour-blind readers
EMPTY = "#ececec"
WIDTH = 3.5  # inches, one column of a page
DPI = 200
SCREEN_DPI = 130  # of a picture in a notebook
LINES = (
    "#2a52be",
    "#cc3311",
    "#0a7d4f",
    "#e69f00",
    "#994f88",
    "#56b4e9",
    "#000000",
)  # told apart by colour-blind readers
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
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


class Picture(Figure):
    """A figure without a window that notebooks display all the same; its files have no needless margins."""

    def savefig(self, fname: Any, **options: Any) -> None:
        super().savefig(fname, **{"bbox_inches": "tight", "pad_inches": 0.05, **options})

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=SCREEN_DPI)
        return content.getvalue()


class PictureAxes(Axes):
    """Axes that notebooks display: as the picture they are in."""

    def _repr_png_(self) -> bytes:
        picture = self.get_figure(root=True)
        assert isinstance(picture, Picture)
        return picture._repr_png_()


def new_axes(width: float = WIDTH, height: float = 0.84 * WIDTH, dpi: float = DPI) -> Axes:
    """Axes in a picture of their own; sizes in inches."""
    figure = Picture(figsize=(width, height), layout="constrained", dpi=dpi)
    return figure.add_subplot(axes_class=PictureAxes)


def heatmap(
    panel: HeatMap,
    axes: Axes,
    *,
    title: str | None = None,
    cmap: Any = COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
) -> None:
    """The archive in colours; an archive of one measure is drawn as steps.

    `vmin` and `vmax` are the objective at both ends of the colour scale: by default that of the worst and of the best
    elite. A few elites far below all others do not count there: they would take most of the colours.
    """
    low, high = limits(panel.matrix, vmin, vmax)
    if panel.num_measures == 1:
        _steps(panel, axes, cmap)
        axes.set_ylim(vmin, vmax)
        _mark(panel, axes)
        name(axes, panel.x_label, panel.value_label, title)
        return
    axes.set_facecolor(EMPTY)
    place: Any = {"origin": "lower", "extent": panel.extent, "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(panel.matrix, cmap=cmap, vmin=low, vmax=high, **place)
    axes.set_box_aspect(1)
    if colorbar:
        bar(axes.inset_axes((1.04, 0, 0.05, 1)), image, panel.value_label, _extend(panel.matrix, low, high))
    _mark(panel, axes)
    name(axes, panel.x_label, panel.y_label, title)


def _mark(panel: HeatMap, axes: Axes) -> None:
    for axis, marks in ((axes.xaxis, panel.x_marks), (axes.yaxis, panel.y_marks)):
        if marks:
            axis.set_ticks([place for place, _ in marks], [words(text) for _, text in marks], parse_math=False)


def bar(axes: Axes, image: ScalarMappable, label: str, extend: str = "neither") -> None:
    """The colours and what they mean, in axes of their own."""
    drawn = axes.figure.colorbar(image, cax=axes, extend=extend)
    drawn.outline.set_linewidth(0.6)
    drawn.set_label(words(label), parse_math=False)


def pairs(
    panel: Pairs,
    axes: Axes,
    *,
    title: str | None = None,
    cmap: Any = COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
) -> None:
    """A map for every two measures, in a triangle below the diagonal; all in the same colours."""
    values = np.concatenate([each.matrix.ravel() for each in panel.maps.values()])
    low, high = limits(values, vmin, vmax)
    count, gap = len(panel.labels) - 1, 0.05
    side = (1 - gap * (count - 1)) / count
    axes.axis("off")
    axes.set_box_aspect(1)
    for (row, column), each in panel.maps.items():
        place = (column * (side + gap), 1 - row * side - (row - 1) * gap, side, side)
        small = axes.inset_axes(place)
        heatmap(each, small, cmap=cmap, vmin=low, vmax=high, colorbar=False)
        _only_at_the_edge(small, bottom=row == count, left=column == 0)
    image = axes.child_axes[0].images[0]
    bar(axes.inset_axes((0.97, 1 - 0.42, 0.03, 0.42)), image, panel.value_label, _extend(values, low, high))
    if title:
        axes.set_title(words(title), parse_math=False)


def _only_at_the_edge(axes: Axes, *, bottom: bool, left: bool) -> None:
    """Labels where no other panel stands below, or to the left; few of them, so that those of neighbours never meet."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3, prune="both"))
    axes.tick_params(labelbottom=bottom, labelleft=left)
    if not bottom:
        axes.set_xlabel("")
    if not left:
        axes.set_ylabel("")


def maps(
    panels: Mapping[str, HeatMap],
    axes: Axes,
    *,
    title: str | None = None,
    cmap: Any = COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
) -> None:
    """Archives side by side, each with its name above, all in the same colours."""
    values = np.concatenate([each.matrix.ravel() for each in panels.values()])
    low, high = limits(values, vmin, vmax)
    columns, rows = grid_of(len(panels))
    axes.axis("off")
    axes.set_box_aspect(rows / columns)
    for i, (label, each) in enumerate(panels.items()):
        row, column = divmod(i, columns)
        place = ((column + 0.06) / columns, 1 - (row + 0.92) / rows, 0.86 / columns, 0.82 / rows)
        small = axes.inset_axes(place)
        heatmap(each, small, title=label, cmap=cmap, vmin=low, vmax=high, colorbar=False)
        _only_at_the_edge(small, bottom=i + columns >= len(panels), left=column == 0)
    first = next(iter(panels.values()))
    if first.num_measures > 1:
        image = axes.child_axes[0].images[0]
        place = (1.0, 1 - 0.92 / rows, 0.03 / columns, 0.82 / rows)
        bar(axes.inset_axes(place), image, first.value_label, _extend(values, low, high))
    if title:
        axes.set_title(words(title), parse_math=False)


def grid_of(count: int) -> tuple[int, int]:
    """Columns and rows for so many small maps."""
    columns = min(count, 4)
    return columns, -(-count // columns)


def parallel(
    panel: Parallel,
    axes: Axes,
    *,
    title: str | None = None,
    cmap: Any = COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
) -> None:
    """Every elite as a line across one upright axis for each measure, the best in front."""
    low, high = limits(panel.objective, vmin, vmax)
    across = np.arange(len(panel.labels))
    lines = [np.stack([across, heights], axis=1) for heights in panel.heights]
    bundle = LineCollection(lines, array=panel.objective, cmap=cmap, clim=(low, high), linewidth=0.7, alpha=0.6)
    axes.add_collection(bundle)
    for x, (bottom, top) in zip(across, panel.ranges, strict=True):
        axes.vlines(float(x), 0, 1, color="#444444", linewidth=0.8, zorder=3)
        for y, value, align in ((-0.02, bottom, "top"), (1.02, top, "bottom")):
            axes.text(float(x), y, f"{value:.4g}", ha="center", va=align, fontsize="small", color="#444444")
    axes.set_xlim(-0.2, len(across) - 0.8)
    axes.set_ylim(-0.1, 1.1)
    axes.set_xticks(across, [words(label) for label in panel.labels], parse_math=False)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    solid = ScalarMappable(bundle.norm, bundle.cmap)
    bar(axes.inset_axes((1.02, 0.08, 0.03, 0.84)), solid, panel.value_label, _extend(panel.objective, low, high))
    if title:
        axes.set_title(words(title), parse_math=False)


def lines(
    drawn: Sequence[Line],
    axes: Axes,
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    colors: Sequence[Any] = LINES,
) -> None:
    """Means over trials with the intervals of these means; a legend where there are several, or trials to speak of."""
    for i, line in enumerate(drawn):
        look: Any = {"color": colors[i % len(colors)], "linestyle": DASHES[i // len(colors) % len(DASHES)]}
        if line.trials > 1:
            axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.2, linewidth=0)
        axes.plot(line.x, line.mean, linewidth=1.3, label=legend_words(line), **look)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    name(axes, x_label, y_label, title)
    if any(legend_words(line) for line in drawn):
        axes.legend(frameon=False, fontsize="small")


def legend_words(line: Line) -> str:
    if line.trials == 1:
        return words(line.name)
    return words(f"{line.name} ({line.trials} trials)" if line.name else f"mean of {line.trials}, 95 % interval")


def path(points: np.ndarray, axes: Axes, color: str = "#d1230f") -> None:
    """The way of a point over a map: a line with a light rim, open where it begins, filled where it ends."""
    for shade, width in (("white", 2.6), (color, 1.0)):
        axes.plot(*points.T, color=shade, linewidth=width, solid_joinstyle="round")
    ends: Any = {"markersize": 5, "markeredgecolor": color, "markeredgewidth": 1.2, "linestyle": "none"}
    axes.plot(*points[0], "o", markerfacecolor="white", label="begins", **ends)
    axes.plot(*points[-1], "o", markerfacecolor=color, label="ends", **ends)


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


def save(drawn: Axes | Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure, or the one around some axes; the ending of the name says in which format."""
    target, figure = Path(path), drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert figure is not None
    formats = figure.canvas.get_supported_filetypes()
    if target.suffix.lstrip(".").lower() not in formats:
        raise ValueError(f"{target}: a picture's name must end in one of: {', '.join(f'.{name}' for name in formats)}")
    make_folder(target.parent)
    dpi = max(DPI, figure.dpi)
    replace_file(target, lambda aside: figure.savefig(aside, dpi=dpi, bbox_inches="tight", pad_inches=0.05))
    return target


def _steps(panel: HeatMap, axes: Axes, cmap: Any) -> None:
    values = panel.matrix[0]
    edges = np.linspace(panel.extent[0], panel.extent[1], values.size + 1)
    axes.stairs(values, edges, baseline=None, color=matplotlib.colormaps.get_cmap(cmap)(0.25), linewidth=1.2)
    axes.set_xlim(edges[0], edges[-1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


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


def limits(values: np.ndarray, vmin: float | None = None, vmax: float | None = None) -> tuple[float, float]:
    """Both ends of a colour scale, where they are not given."""
    low, high = _ends(values[np.isfinite(values)])
    return low if vmin is None else vmin, high if vmax is None else vmax


def _ends(values: np.ndarray) -> tuple[float, float]:
    if values.size == 0:
        return 0.0, 1.0
    hundredth, quarter, three_quarters = np.quantile(values, [0.01, 0.25, 0.75])
    fence = quarter - 3 * (three_quarters - quarter)  # below it a value is "far out" (Tukey 1977)
    low, high = float(values[values >= min(fence, hundredth)].min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _extend(matrix: np.ndarray, low: float, high: float) -> str:
    below, above = bool(np.nanmin(matrix, initial=low) < low), bool(np.nanmax(matrix, initial=high) > high)
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[below, above]


def name(axes: Axes, x_label: str, y_label: str, title: str | None, letters: int = LETTERS) -> None:
    """Label the axes, and give them a title."""
    axes.set_xlabel(words(x_label, letters), parse_math=False)  # anyone's words: a $ is a $
    axes.set_ylabel(words(y_label, letters), parse_math=False)
    if title:
        axes.set_title(words(title, letters), parse_math=False)


def words(text: str, letters: int = LETTERS) -> str:
    """In lines short enough for a map to stand beside them; lines that end where they end stay so."""
    return "\n".join(textwrap.fill(line, letters) for line in text.splitlines())
