"""What a notebook shows of results and archives: a small map and its figures, as HTML for light and dark pages."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from dqd.figures.thumbnails import EMPTY, thumbnail

if TYPE_CHECKING:
    from dqd.saved.archived import Archived

CELLS, SIDE, SMALL = 112, 168, 84  # of a map at most, and its pixels on the page, alone and among others
MOST = 12  # maps of seeds; the table has all
GREY = (0xB4, 0xB4, 0xB4, 0x40)  # of an empty cell: on white and on black


def card(source: Archived) -> str:
    """One archive: its map, and its figures beside it."""
    saved = source.to_numpy(solutions=False)
    figures = {
        "QD-score": _number(saved.qd_score),
        "coverage": f"{saved.coverage:.2f} %",
        "best": _number(saved.best),
        "elites": f"{len(saved):,} of {saved.num_cells:,} cells",
    }
    summary = saved.config.get("summary", {})
    counts = {name: summary.get(name) for name in ("iterations", "evaluations")}
    figures |= {name: f"{count:,}" for name, count in counts.items() if isinstance(count, int)}
    words = f"Map of {len(saved):,} elites in {saved.num_cells:,} cells"
    return _side_by_side(_map(saved.arrays(), words, SIDE), _table(type(source).__name__, figures))


def cards(results: Sequence[Archived]) -> str:
    """Several seeds: their maps, and the figures of all."""
    saved = [each.to_numpy(solutions=False) for each in results]
    seeds = [each.config["seed"] for each in saved]
    maps = [_map(each.arrays(), f"Map of seed {seed}", SMALL) for each, seed in zip(saved, seeds, strict=True)]
    means = {
        "QD-score": _spread([each.qd_score for each in saved]),
        "coverage": _spread([each.coverage for each in saved], " %"),
        "best": _spread([each.best for each in saved]),
    }
    more = [f"<span>and {len(maps) - MOST:,} more</span>"] if len(maps) > MOST else []
    drawn = f'<div style="display:flex;flex-wrap:wrap;gap:6px;max-width:380px">{"".join(maps[:MOST] + more)}</div>'
    return _side_by_side(drawn, _table(f"Results of {len(saved):,} seeds", means))


def _map(arrays: Mapping[str, np.ndarray], words: str, side: int) -> str:
    """The map as a picture inside the page: a byte for each pixel, and a table of colours."""
    from matplotlib import colormaps

    from dqd.figures.draw import COLORS

    pixels = thumbnail(arrays, CELLS)[::-1]
    if len(pixels) == 1:  # one measure is a strip
        pixels = np.repeat(pixels, max(1, pixels.shape[1] // 4), axis=0)
    image = Image.fromarray(pixels).convert("P")
    colours = np.vstack([255 * colormaps[COLORS](np.linspace(0, 1, EMPTY)), GREY]).round().astype(np.uint8)
    image.putpalette(colours[:, :3].tobytes())
    content = io.BytesIO()
    image.save(content, format="png", transparency=colours[:, 3].tobytes(), optimize=True)
    address = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    width, height = (side, side) if pixels.shape[0] * 3 > pixels.shape[1] else (side, side // 4)
    look = f"width:{width}px;height:{height}px;image-rendering:pixelated;border-radius:4px"
    return f'<img src="{address}" alt="{html.escape(words)}" style="{look}">'


def _table(title: str, figures: Mapping[str, str]) -> str:
    rows = "".join(
        '<tr style="background:none">'
        f'<th style="text-align:left;font-weight:normal;opacity:.75">{html.escape(name)}</th>'
        f'<td style="text-align:right">{html.escape(value)}</td></tr>'
        for name, value in figures.items()
    )
    return (
        f"<div><strong>{html.escape(title)}</strong>"
        f'<table style="margin:4px 0 0;border:0;font-variant-numeric:tabular-nums"><tbody>{rows}</tbody></table></div>'
    )


def _side_by_side(*parts: str) -> str:
    return f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{"".join(parts)}</div>'


def _number(value: float) -> str:
    return f"{value:,.6g}" if np.isfinite(value) else "–"


def _spread(values: Sequence[float], unit: str = "") -> str:
    low, high = min(values), max(values)
    return f"{np.mean(values):,.6g}{unit} (from {low:,.6g} to {high:,.6g})"
