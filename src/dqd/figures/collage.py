"""The collage: the archive as a grid of pictures, in each block the image of its best elite, over the two measures.

`blocks` chooses elites, a renderer makes their images, `draw` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from dqd.figures.draw import EMPTY, LETTERS, name
from dqd.figures.panels import Arrays
from dqd.inputs.names import check_known
from dqd.storage.durable import replace_file
from dqd.tessellations import Raster, kinds

INCHES = 0.62  # side of a block on paper
LEAST = 4 * INCHES  # of the map: few blocks are larger, and words have room
LETTERS_PER_INCH = 11


@dataclass(frozen=True)
class Blocks:
    """A division of the archive. Measure 0 to the right, measure 1 upward."""

    elite: np.ndarray  # (rows, columns) index of the best elite of each block, -1 where there is none; bottom row first
    extent: tuple[float, float, float, float]  # left, right, bottom, top


def blocks(arrays: Arrays, columns: int = 8, rows: int = 8, *, crop: bool = True, pick: str = "best") -> Blocks:
    """An elite of each block, over the whole archive or, cropped, over that part of it which holds elites.

    `pick` is "best", "centre" (of the block), or "trusted": the best of those that held-out judges agree with.
    """
    shown, extent = _elite_of_pixels(arrays)
    pixel = np.argwhere(shown >= 0)  # (pixels, 2) row and column
    first, last = (pixel.min(axis=0), pixel.max(axis=0) + 1) if crop else (np.zeros(2, int), np.array(shown.shape))
    counts = np.minimum([rows, columns], last - first)
    block = (pixel - first) * counts // (last - first)
    found = shown[tuple(pixel.T)]
    worth, allowed = _worth(arrays, found, pixel - first + 0.5 - (block + 0.5) * (last - first) / counts, pick)
    order = np.lexsort((found, worth))[np.sum(~allowed) :]  # the best of a block comes last and stays
    elite = np.full(counts, -1)
    elite[tuple(block[order].T)] = found[order]
    left, right, bottom, top = extent
    corner, size = np.array([bottom, left]), np.array([top - bottom, right - left])
    (south, west), (north, east) = (corner + size * side / shown.shape for side in (first, last))
    return Blocks(elite, (west, east, south, north))


def _worth(arrays: Arrays, found: np.ndarray, off: np.ndarray, pick: str) -> tuple[np.ndarray, np.ndarray]:
    """By what the elites of pixels are picked; and which may be, the others being worth -inf."""
    check_known("pick", pick, ("best", "centre", "trusted"))
    everybody = np.ones(len(found), bool)
    if pick == "centre":
        return -np.sum(off**2, axis=1), everybody
    if pick == "best":
        return arrays["objective"][found], everybody
    if "field_disagreement" not in arrays:
        raise ValueError('collage: pick="trusted" is for maps that held-out judges have looked at; this is none')
    trusted = arrays["field_disagreement"][found] <= 1
    return np.where(trusted, arrays["objective"][found], -np.inf), trusted


def _elite_of_pixels(arrays: Arrays) -> Raster:
    """The raster of an archive, with the index of an elite, or -1, in place of its cell."""
    tessellation = kinds.from_arrays(arrays)
    if tessellation.num_measures != 2:
        raise ValueError(f"collage: expected an archive with 2 measures, got {tessellation.num_measures}")
    if len(arrays["cell"]) == 0:
        raise ValueError("collage: the archive is empty")
    elite = np.full(tessellation.num_cells, -1)
    elite[arrays["cell"]] = np.arange(len(arrays["cell"]))
    cells, extent = tessellation.raster()
    return Raster(np.where(cells < 0, -1, elite[cells]), extent)


def size(chosen: Blocks, images: np.ndarray) -> tuple[float, float]:
    """Width and height on paper, with room for the names of the axes."""
    (rows, columns), (height, width) = chosen.elite.shape, _shape(images, 1000)
    side = _side(chosen)
    return max(LEAST, side * columns * width / 1000) + 0.6, max(LEAST, side * rows * height / 1000) + 0.6


def _side(chosen: Blocks) -> float:
    """Of a block on paper, in inches."""
    return max(INCHES, LEAST / max(chosen.elite.shape))


def draw(
    chosen: Blocks,
    images: np.ndarray,
    axes: Axes,
    *,
    labels: tuple[str, ...],
    title: str | None = None,
    pixels: int = 192,
) -> None:
    """Images of the chosen elites, in their order, as one picture; `pixels` of each block."""
    _, columns = chosen.elite.shape
    picture = mosaic(chosen, images, pixels)
    axes.imshow(picture, extent=chosen.extent, aspect="auto", interpolation="antialiased")
    axes.set_box_aspect(picture.shape[0] / picture.shape[1])
    name(axes, labels[0], labels[1], title, letters=max(LETTERS, int(LETTERS_PER_INCH * _side(chosen) * columns)))


def mosaic(chosen: Blocks, images: np.ndarray, pixels: int) -> np.ndarray:
    """One image, top row first; empty blocks are grey. Images keep their proportions, their longer side `pixels`."""
    rows, columns = chosen.elite.shape
    height, width = _shape(images, pixels)
    canvas = np.empty((rows, columns, height, width, 3), np.uint8)
    canvas[:] = [int(EMPTY[i : i + 2], 16) for i in (1, 3, 5)]
    if len(images):
        canvas[chosen.elite >= 0] = [resized(image, height, width) for image in images]
    return canvas[::-1].transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, 3)


def _shape(images: np.ndarray, pixels: int) -> tuple[int, int]:
    height, width = np.shape(images)[1:3] if len(images) else (1, 1)
    longest = max(height, width)
    return max(1, round(pixels * height / longest)), max(1, round(pixels * width / longest))


def resized(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """(h, w, 3) of bytes -> (height, width, 3)."""
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))


def check_image_name(path: Path) -> None:
    """Raise ValueError unless the ending is that of a picture."""
    if path.suffix.lower() not in Image.registered_extensions():
        raise ValueError(f"{path}: expected the name of a picture, such as {path.stem}.png")


def save_image(image: np.ndarray, path: str) -> None:
    """One image (h, w, 3) of bytes as a file."""
    replace_file(Path(path), Image.fromarray(image).save)
