"""Means over trials as lines, one panel per domain: the QD-score during the search (the paper's `fig:summary`), and how
many cells reach which objective in the end (`fig:cumulative_plots`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from dqd.paper.report import panels
from dqd.paper.report.collect import SuiteData
from dqd.paper.report.draw.looks import DOT, FAINT, LOOKS, PAGE, Options, number, plain, style


def curves(suite: SuiteData) -> Figure | None:
    """QD-score against iteration, one panel per domain: `fig:summary`."""
    figure, axes = _lines(panels.curves(suite), "iteration", "QD-score")
    last = max(entry.iterations for entry in suite.entries)
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
        first = min(int(entry.steps[0]) for entry in suite.entries if len(entry.steps))
        each.set_xlim(first, max(entry.iterations for entry in suite.entries))
    return figure


def cumulative(suite: SuiteData) -> Figure | None:
    """Percent of cells with an objective of at least t, one panel per domain: `fig:cumulative_plots`."""
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
    plain(axes)
    for i, line in enumerate(panel.lines):
        look = style(line.key)
        marks = _marks(scale(line.x), (i + 0.5) / len(panel.lines))
        axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.25, linewidth=0)
        axes.plot(line.x, line.mean, markevery=marks, **look)
    if panel.bound is not None and panel.bound < 100:
        axes.axhline(panel.bound, color=FAINT, linewidth=0.7, linestyle=DOT)
        place: Options = {"xy": (1, panel.bound), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(f"upper bound {panel.bound:.4g}", xytext=(0, 1.5), ha="right", fontsize=6, color=FAINT, **place)


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
    return [f"{line.name} falls to {number(line.mean.min())}" for line in fallen]


def _missing(sentences: Sequence[str]) -> list[str]:
    """What a panel lacks, in a few lines."""
    more = [f"and {len(sentences) - 3} more"] if len(sentences) > 4 else []
    return [*sentences[: 3 if more else 4], *more]


def _legend(figure: Figure, domains: Sequence[panels.Lines]) -> None:
    names = {line.key: line.name for panel in domains for line in panel.lines}
    order = sorted(names, key=lambda key: list(LOOKS).index(key) if key in LOOKS else len(LOOKS))  # the paper's
    handles = [Line2D([], [], label=names[key], **style(key)) for key in order]
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


def _below(axes: Axes, label: str, remarks: Sequence[str]) -> None:
    """The axis' name, and remarks in small print under it."""
    name = axes.set_xlabel(label)
    place: Options = {"xy": (0.5, 0), "xycoords": name, "xytext": (0, -3), "textcoords": "offset points"}
    axes.annotate("\n".join(remarks), ha="center", va="top", fontsize=6, color=FAINT, **place)
