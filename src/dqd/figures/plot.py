"""`dqd.plot`: figures for papers, of results, live archives and saved ones.

    dqd.plot.heatmap(result, labels=("speed", "height"))
    dqd.plot.curves({"CMA-MEGA": results, "MAP-Elites": others}, ax=ax)

Every function draws into the axes it is given, or makes its own, and returns them. What is shown is worked out in
`panels` and `lines`, drawn in `draw`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from dqd.figures import collage as collages
from dqd.figures import draw, panels
from dqd.figures import lines as means
from dqd.inputs.fields import FIELD
from dqd.inputs.names import METRICS, check_known, known

if TYPE_CHECKING:
    from dqd.saved.archive import SavedArchive
    from dqd.saved.archived import Archived

Labels = Sequence[str] | None
Runs = Any  # one run, a sequence of trials (such as Results), or a dictionary of either, by the names of lines
SEVERAL = 6  # measures; a triangle of more pairs is too small to read
AGAINST = ("iteration", "evaluations", "seconds")
AXES = {"qd_score": "QD-score", "coverage": "coverage, %", "best": "best objective", "mean": "mean objective"}


def archive(source: Archived, *, ax: Axes | None = None, **options: Any) -> Axes:
    """The archive as suits its number of measures: `heatmap` for 1 or 2, `pairs` up to 6, `parallel` beyond."""
    saved = source.to_numpy(solutions=False)
    measures = saved.tessellation.num_measures
    kind = heatmap if measures <= 2 else pairs if measures <= SEVERAL else parallel
    return kind(saved, ax=ax, **options)


def heatmap(
    source: Archived,
    *,
    ax: Axes | None = None,
    measures: tuple[int, int] = (0, 1),
    labels: Labels = None,
    objective: str = "objective",
    field: str | None = None,
    title: str | None = None,
    cmap: Any = draw.COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
) -> Axes:
    """The archive in colours over two of its measures, the best over all others. One measure is drawn as steps.

    Args:
        source: a result, a live archive or a saved one.
        ax: matplotlib axes to draw into.
        measures: which two, to the right and upward.
        labels: a name for each measure of the archive; by default those that the run knows.
        objective: what the colours are called.
        field: one of the archive's `fields` that the colours show instead of the objective; of
            several numbers one, such as "tip_0".
        vmin, vmax: objectives at both ends of the colours; by default the worst and the best, without outliers below.
    """
    saved, names = _saved(source, labels)
    panel = panels.heatmap(_shown(saved, field), measures=measures, labels=names, value_label=field or objective)
    height = 0.6 if panel.num_measures == 1 else 0.84
    with _axes(ax, height=height * draw.WIDTH) as axes:
        draw.heatmap(panel, axes, title=title, cmap=cmap, vmin=vmin, vmax=vmax, colorbar=colorbar)
    return axes


def pairs(
    source: Archived,
    *,
    ax: Axes | None = None,
    labels: Labels = None,
    objective: str = "objective",
    field: str | None = None,
    title: str | None = None,
    cmap: Any = draw.COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
) -> Axes:
    """A small map for every two measures, the best over all others, in a triangle. For 2 to 8 measures."""
    saved, names = _saved(source, labels)
    panel = panels.pairs(_shown(saved, field), labels=names, value_label=field or objective)
    side = max(draw.WIDTH, 1.2 * len(names))
    with _axes(ax, side, side) as axes:
        draw.pairs(panel, axes, title=title, cmap=cmap, vmin=vmin, vmax=vmax)
    return axes


def parallel(
    source: Archived,
    *,
    ax: Axes | None = None,
    labels: Labels = None,
    objective: str = "objective",
    field: str | None = None,
    title: str | None = None,
    cmap: Any = draw.COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
    count: int = 1000,
) -> Axes:
    """Parallel coordinates: every elite is a line across all measures, coloured by its objective, the best in front.

    Of more than `count` elites, those of evenly spaced ranks are drawn.
    """
    saved, names = _saved(source, labels)
    panel = panels.parallel(_shown(saved, field), labels=names, value_label=field or objective, count=count)
    with _axes(ax, max(draw.WIDTH, 0.9 * len(names)), 0.7 * draw.WIDTH) as axes:
        draw.parallel(panel, axes, title=title, cmap=cmap, vmin=vmin, vmax=vmax)
    return axes


def maps(
    sources: Sequence[Archived] | Mapping[str, Archived],
    *,
    ax: Axes | None = None,
    measures: tuple[int, int] = (0, 1),
    labels: Labels = None,
    objective: str = "objective",
    field: str | None = None,
    title: str | None = None,
    cmap: Any = draw.COLORS,
    vmin: float | None = None,
    vmax: float | None = None,
) -> Axes:
    """Archives side by side in the same colours: those of several seeds, or a dictionary of archives by name."""
    named = sources if isinstance(sources, Mapping) else {_seed_name(i, each): each for i, each in enumerate(sources)}
    if not named:
        raise ValueError("maps: expected at least one archive, got none")
    drawn = {}
    for name, source in named.items():
        saved, names = _saved(source, labels)
        drawn[name] = panels.heatmap(
            _shown(saved, field), measures=measures, labels=names, value_label=field or objective
        )
    columns, rows = draw.grid_of(len(drawn))
    with _axes(ax, 1.75 * columns + 0.7, 1.75 * rows + 0.4) as axes:
        draw.maps(drawn, axes, title=title, cmap=cmap, vmin=vmin, vmax=vmax)
    return axes


def curves(
    runs: Runs,
    metric: str = "qd_score",
    *,
    against: str = "iteration",
    ax: Axes | None = None,
    title: str | None = None,
    cmap: Any = None,
) -> Axes:
    """How a metric went: the mean over trials, and the bootstrap 95 % interval of that mean.

    Args:
        runs: a run, or a sequence of trials such as `Results`, for one line; a dictionary of these by name for several.
        metric: "qd_score", "coverage", "best" or "mean".
        against: "iteration", "evaluations" or "seconds". Iterations and evaluations are known at every point; seconds
            at many times by a run on disk, at its two ends by a result, and between them a straight line is taken.
        cmap: a matplotlib colour map for the lines instead of our colours.
    """
    check_known("metric", metric, METRICS)
    check_known("axis", against, AGAINST)
    groups = {name: [each.to_numpy(solutions=False) for each in trials] for name, trials in _groups(runs).items()}
    drawn = [
        means.progress(name, [(each.metrics, each.timings) for each in trials], metric, against)
        for name, trials in groups.items()
    ]
    with _axes(ax, height=0.7 * draw.WIDTH) as axes:
        draw.lines(drawn, axes, x_label=against, y_label=AXES[metric], title=title, colors=_colors(cmap, len(drawn)))
    return axes


def ccdf(
    runs: Runs,
    *,
    ax: Axes | None = None,
    objective: str = "objective",
    title: str | None = None,
    cmap: Any = None,
    vmin: float | None = None,
    vmax: float | None = None,
) -> Axes:
    """Percent of all cells whose elite has at least this objective: how much of the map is how good.

    `runs` as for `curves`; `vmin` and `vmax` are the ends of the axis of objectives.
    """
    groups = {
        name: [(np.asarray(saved.objective), saved.num_cells) for each in trials for saved in [_saved(each)[0]]]
        for name, trials in _groups(runs).items()
    }
    at = means.thresholds([values for trials in groups.values() for values, _ in trials])
    drawn = [means.ccdf(name, trials, at) for name, trials in groups.items()]
    with _axes(ax, height=0.7 * draw.WIDTH) as axes:
        y_label = f"cells with {objective} ≥ t, %"
        draw.lines(drawn, axes, x_label="t", y_label=y_label, title=title, colors=_colors(cmap, len(drawn)))
        axes.set_xlim(vmin, vmax)
        axes.set_ylim(bottom=0)
    return axes


def path(
    source: Archived, points: Any, *, measures: tuple[int, int] = (0, 1), color: str = "#d1230f", **options: Any
) -> Axes:
    """The way of a point, such as theta of CMA-MEGA, over the map.

    A run does not keep theta. In a loop of your own, its measures are what you tell with `tell_dqd`: collect them, and
    give them here as `points` (steps, k). Options are those of `heatmap`.
    """
    saved, way = source.to_numpy(solutions=False), np.asarray(points, np.float64)
    count = saved.tessellation.num_measures
    if way.ndim != 2 or way.shape[1] != count or count < 2 or not len(way):
        raise ValueError(f"points: expected measures (steps, {max(count, 2)}), one row for each step, got {way.shape}")
    axes = heatmap(saved, measures=measures, **options)
    draw.path(way[:, list(measures)], axes, color)
    return axes


def collage(
    source: Archived,
    render: Callable[[np.ndarray], Any],
    *,
    ax: Axes | None = None,
    labels: Labels = None,
    title: str | None = None,
    columns: int = 8,
    rows: int = 8,
    pixels: int = 192,
    pick: str = "best",
    crop: bool = True,
) -> Axes:
    """The map as pictures: in each block the image of one elite. For two measures.

    `render` makes images (b, height, width, 3) of bytes from solutions (b, n); `pixels` is the longer side of a block.
    `pick` says which elite is shown: the "best" of a block, the one at its "centre", or the best of those that held-out
    judges agree with, "trusted". `crop` leaves empty borders of the map out.
    """
    saved, names = _saved(source, labels, solutions=True)
    if saved.solutions is None:
        raise ValueError("collage: the solutions were not saved")
    chosen = collages.blocks(saved.arrays(), columns, rows, crop=crop, pick=pick)
    images = np.asarray(render(saved.solutions[chosen.elite[chosen.elite >= 0]]))
    with _axes(ax, *collages.size(chosen, images), dpi=pixels / collages.INCHES) as axes:
        collages.draw(chosen, images, axes, labels=names, title=title, pixels=pixels)
    return axes


@contextlib.contextmanager
def _axes(
    given: Axes | None, width: float = draw.WIDTH, height: float = draw.WIDTH, dpi: float = draw.DPI
) -> Iterator[Axes]:
    """The given axes in the user's style, or new ones in ours."""
    if given is not None:
        yield given
        return
    with matplotlib.rc_context(draw.STYLE):
        yield draw.new_axes(width, height, dpi)


def _saved(source: Archived, labels: Labels = None, solutions: bool = False) -> tuple[SavedArchive, tuple[str, ...]]:
    """The archive in arrays, and the names of its measures."""
    saved = source.to_numpy(solutions=solutions)
    return saved, panels.measure_labels(saved.labels if labels is None else labels, saved.tessellation.num_measures)


def _shown(saved: SavedArchive, field: str | None) -> dict[str, np.ndarray]:
    """The arrays of an archive; of a field, those of the elites of which it is known, and it as their objective."""
    arrays = saved.arrays()
    if field is None:
        return arrays
    columns = saved.columns(solutions=False).items()
    values = known("field", field, {name.removeprefix(FIELD): each for name, each in columns if name.startswith(FIELD)})
    told = np.isfinite(values)
    rows = {name: arrays[name][told] for name in ("cell", "measures")}
    return arrays | rows | {"objective": values[told]}


def _groups(runs: Runs) -> dict[str, list[Archived]]:
    """Lines by name, each with its trials."""
    if isinstance(runs, Mapping):
        return {str(name): _trials(each) for name, each in runs.items()}
    return {"": _trials(runs)}


def _trials(runs: Any) -> list[Archived]:
    trials = [runs] if hasattr(runs, "to_numpy") else list(runs)
    if not trials or not all(hasattr(each, "to_numpy") for each in trials):
        raise TypeError("runs: expected results or archives, a sequence of them, or a dictionary of these by name")
    return trials


def _seed_name(i: int, source: Archived) -> str:
    return f"seed {getattr(source, 'seed', i)}"


def _colors(cmap: Any, count: int) -> Sequence[Any]:
    if cmap is None:
        return draw.LINES
    return list(matplotlib.colormaps.get_cmap(cmap)(np.linspace(0, 0.9, count)))
