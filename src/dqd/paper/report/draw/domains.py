"""The domains explained: why the linear projection is hard (the paper's `fig:lp_examples`), and what good arms look
like (`fig:arm_examples`)."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from dqd.figures.draw import COLORS
from dqd.figures.panels import Poses
from dqd.paper.report import panels
from dqd.paper.report.ceilings import LIMIT
from dqd.paper.report.collect import SuiteData
from dqd.paper.report.draw.looks import DASH, DASH_DOT, DOT, LOOKS, PAGE, plain


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
        plain(axes)
    return figure


def _bates(axes: Axes) -> None:
    x = np.linspace(0, 1, 1001)
    for n, color, dashes in zip((1, 2, 5, 20), (0.0, 0.3, 0.55, 0.75), ("-", DASH, DASH_DOT, DOT), strict=True):
        shade = matplotlib.colormaps[COLORS](color)
        axes.plot(x, panels.bates(n, x), color=shade, linestyle=dashes, linewidth=1.3, label=f"n = {n}")
    axes.legend(loc="upper right", frameon=False, fontsize=7, handlelength=2.4)
    axes.set(xlim=(0, 1), ylim=(0, None), title="Mean of n uniform numbers", xlabel="mean", ylabel="density (Bates)")
    axes.set_xticks([0, 0.5, 1])
    axes.xaxis.set_major_formatter("{x:g}")
    plain(axes)


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
