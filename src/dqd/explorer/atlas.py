"""Pictures of elites, kept beside a run: pages of PNG, and which elite each picture on them shows.

    atlas/00000.png            a page of 16 × 16 pictures
    atlas/00000.safetensors    cell and objective of each, in rows from the upper left; and their size

A picture is of an elite if cell and objective are the same, so pictures of elites that were replaced are never shown.
Pages are added, never changed: drawing may stop at any time and go on later.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dqd.safe import load_safetensors
from dqd.saved.archive import SavedArchive
from dqd.storage import durable, record

ATLAS = "atlas"
COLUMNS = 16  # pictures in a row of a page, and rows on it
PAGE = COLUMNS**2
MOST_BYTES = 64 * 2**20  # of a page

Draw = Callable[[np.ndarray], np.ndarray]  # solutions (b, n) -> pictures (b, size, size, 3), bytes


def folder_of(run: Path) -> Path:
    """Where the pictures of a run, or of one of its seeds, lie."""
    home, part = record.locate(run)
    return home / ATLAS / part


def pages(folder: Path) -> list[Path]:
    """The pages that are whole, in order."""
    tables = sorted(folder.glob("[0-9]*.safetensors")) if folder.is_dir() else []
    return [path for path in tables if path.stem.isdecimal() and path.with_suffix(".png").is_file()]


def slots(folder: Path, archive: SavedArchive) -> tuple[np.ndarray, int]:
    """For each elite, the place of its picture, page × 256 + place on the page, or -1; and the size of pictures."""
    found, size = np.full(len(archive), -1, np.int32), 0
    for number, path in enumerate(pages(folder)):
        table = load_safetensors(path, ("cell", "objective", "size"))
        cell, objective, size = table["cell"], table["objective"], int(table["size"][0])
        if len(archive) == 0 or cell.shape != objective.shape or cell.ndim != 1 or len(cell) > PAGE:
            continue
        rows = np.minimum(np.searchsorted(archive.cell, cell), len(archive) - 1)
        same = (archive.cell[rows] == cell) & (archive.objective[rows] == objective)
        found[rows[same]] = number * PAGE + np.flatnonzero(same)
    return found, size


def fill(folder: Path, archive: SavedArchive, draw: Draw, size: int) -> Iterator[tuple[int, int]]:
    """Draw the elites that have no picture yet, a page at a time; says how many are done, of how many."""
    assert archive.solutions is not None
    there, size_there = slots(folder, archive)
    if size_there not in (0, size):
        raise ValueError(f"{folder} holds pictures of {size_there} pixels; give that --size, or remove the folder")
    missing = np.flatnonzero(there < 0)
    durable.make_folder(folder)
    durable.remove_temporary(folder)
    number = max((int(path.stem) for path in pages(folder)), default=-1) + 1
    yield len(archive) - len(missing), len(archive)
    for begin in range(0, len(missing), PAGE):
        rows = missing[begin : begin + PAGE]
        _write(folder / f"{number:05d}", archive, rows, draw(archive.solutions[rows]), size)
        number += 1
        yield len(archive) - len(missing) + begin + len(rows), len(archive)


def _write(path: Path, archive: SavedArchive, rows: np.ndarray, pictures: np.ndarray, size: int) -> None:
    """The pictures first: a page counts when its table is there."""
    from PIL import Image

    sheet = np.zeros((-(-len(rows) // COLUMNS) * size, COLUMNS * size, 3), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = divmod(i, COLUMNS)
        sheet[top * size : (top + 1) * size, left * size : (left + 1) * size] = picture
    content = io.BytesIO()
    Image.fromarray(sheet).save(content, "PNG")
    durable.replace_file(path.with_suffix(".png"), content.getvalue())
    table = {"cell": archive.cell[rows], "objective": archive.objective[rows], "size": np.array([size], np.int32)}
    durable.replace_file(path.with_suffix(".safetensors"), table)
