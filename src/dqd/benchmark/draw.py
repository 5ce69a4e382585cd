"""QD-score over evaluations: a small panel for every function of a suite."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dqd.benchmark.standings import Suite
from dqd.figures import draw
from dqd.figures.lines import Line, band

COLUMNS, WIDTH, HEIGHT = 4, 2.6, 2.1  # inches of a panel


def curves(suite: Suite) -> Figure:
    columns = min(COLUMNS, len(suite.functions))
    rows = -(-len(suite.functions) // columns)
    figure = Figure(figsize=(columns * WIDTH, rows * HEIGHT + 0.4), layout="constrained", dpi=150)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, function in zip(panels, suite.functions, strict=False):
        lines = [_line(suite, function, algorithm) for algorithm in suite.algorithms]
        draw.lines(lines, axes, x_label="", y_label="", title=function)
        axes.get_legend().remove()
        axes.set_xscale("log")
        axes.set_xlim(suite.marks[0] / 10, suite.marks[-1])
        axes.set_xticks(suite.marks, [f"{mark:,}" for mark in suite.marks])
        axes.minorticks_off()
        ceiling = suite.entries[function, suite.algorithms[0]].ceiling
        if ceiling is not None:
            axes.axhline(ceiling, color="#666666", linewidth=0.7, linestyle=":")
    for axes in panels[len(suite.functions) :]:
        axes.remove()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(labels), 5), frameon=False, fontsize="small"
    )
    figure.supxlabel("evaluations", fontsize="small")
    figure.supylabel("QD-score", fontsize="small")
    return figure


def _line(suite: Suite, function: str, algorithm: str) -> Line:
    entry = suite.entries[function, algorithm]
    return Line(
        algorithm,
        entry.title,
        np.asarray(entry.evaluations),
        entry.qd_score.mean(axis=0),
        *band(entry.qd_score),
        trials=entry.seeds,
    )
