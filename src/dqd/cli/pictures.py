"""Pictures of some elites of a run: of cells, of a walk between two, of the whole map as a collage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    from dqd.saved.archive import SavedArchive

Draw = Callable[["np.ndarray"], "list[Image.Image]"]  # solutions (b, n) -> pictures as large as they are
LARGEST = 8192  # pixels


def cells(archive: SavedArchive, names: list[str], draw: Draw, size: int | None, out: Path) -> list[Path]:
    """The picture of each cell as a file; `out` is a picture, or a folder for several."""
    from dqd.figures.collage import check_image_name, save_image

    several = len(names) > 1 or not out.suffix
    paths = [out / f"cell-{name.replace(',', '-')}.png" for name in names] if several else [out]
    rows = [row_of(archive, name) for name in names]
    for path in paths:
        check_image_name(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, picture in zip(paths, draw(archive.solutions[rows]), strict=True):  # type: ignore[index]
        save_image(sized(picture, size), str(path))
    return paths


def walk(archive: SavedArchive, ends: str, draw: Draw, size: int | None, out: Path, frames: int, speed: float) -> Path:
    """From the elite of one cell to that of another and back, straight through the space that was searched."""
    from dqd.figures import animation

    animation.check_name(out)
    names = ends.split(":")
    if len(names) != 2:
        raise ValueError(f"--walk: expected two cells, such as 12,40:50,10, got {ends!r}")
    start, end = (archive.solutions[row_of(archive, name, "--walk")] for name in names)  # type: ignore[index]
    pictures = draw(animation.there_and_back(start, end, frames))
    out.parent.mkdir(parents=True, exist_ok=True)
    animation.save([sized(picture, size) for picture in pictures], out, speed)
    return out


def collage(archive: SavedArchive, draw: Draw, out: Path, **layout: Any) -> Path:
    """The map as pictures, in a layout of one's own."""
    import numpy as np

    from dqd.figures import draw as drawing
    from dqd.figures import plot

    def render(solutions: np.ndarray) -> np.ndarray:
        return np.stack([np.asarray(picture) for picture in draw(solutions)])

    layout["title"] = layout.get("title") or _title(archive, layout.get("pick") == "trusted")
    drawing.save(plot.collage(archive, render, **layout), out)
    return out


def _title(archive: SavedArchive, trusted: bool) -> str:
    """What was searched, and how; and how far held-out judges agree."""
    from dqd.paper.presets import ALGORITHMS
    from dqd.saved import words

    config, summary = archive.config, archive.config.get("summary", {})
    described: Any = config.get("domain")
    objective = described.get("objective") if isinstance(described, dict) else None
    what = ": ".join(filter(None, (words.domain(config), words.text(objective))))
    done, name = summary.get("iterations"), words.algorithm(config)
    known = ALGORITHMS[name].title if name in ALGORITHMS else name
    how = f"{known}, {done:,} iterations, seed {summary.get('seed')}" if done else ""
    agreed = "" if summary.get("agreement") is None else _agreed(summary, trusted)
    return "\n".join(filter(None, (what, how, agreed)))


def _agreed(summary: dict[str, Any], trusted: bool) -> str:
    names = " and ".join(dict.fromkeys(opinion["judge"] for opinion in summary.get("opinions", ())))
    shown = ", which alone are shown" if trusted else ""
    score = f"QD-score {summary['qd_score']:.1f}, trusted {summary['trusted_qd_score']:.1f}"
    return f"{score}: {summary['agreement']:.0f} % agreed by {names}{shown}"


def row_of(archive: SavedArchive, name: str, option: str = "--cell") -> int:
    """The elite of a cell, named by its place along every measure, such as 12,40, or by its number."""
    import numpy as np

    from dqd.tessellations.grid import Grid

    try:
        place = [int(part) for part in name.split(",")]
    except ValueError:
        raise ValueError(f"{option}: expected whole numbers such as 12,40, got {name!r}") from None
    cell, cells = place[0], archive.tessellation
    if isinstance(cells, Grid) and len(place) == cells.num_measures > 1:
        for number, length in zip(place, cells.shape, strict=True):
            if not 0 <= number < length:
                raise ValueError(f"{option}: {name}: expected numbers from 0 to {length - 1}, as the grid has cells")
        cell = int(np.ravel_multi_index(place, cells.shape))
    elif len(place) != 1:
        each = f"one for each of {cells.num_measures} measures"
        raise ValueError(f"{option}: expected one number, or {each}, got {name!r}")
    row = int(np.searchsorted(archive.cell, cell))
    if row == len(archive) or archive.cell[row] != cell:
        raise ValueError(f"{option}: {name} is empty; {_nearest(archive, cell)}")
    return row


def _nearest(archive: SavedArchive, cell: int) -> str:
    """The occupied cell nearest to one, in words."""
    import numpy as np

    from dqd.tessellations.grid import Grid

    cells = archive.tessellation
    if not len(archive) or not isinstance(cells, Grid):
        return "dqd view shows which are not"
    there = np.stack(np.unravel_index(archive.cell, cells.shape), axis=1)
    here = np.array(np.unravel_index(min(max(cell, 0), cells.num_cells - 1), cells.shape))
    found = there[np.argmin(np.sum((there - here) ** 2, axis=1))]
    return f"the nearest that is not is {','.join(map(str, found))}"


def sized(picture: Image.Image, size: int | None) -> np.ndarray:
    """Its longer side `size` pixels long; by default as it is."""
    import numpy as np
    from PIL import Image

    if size is not None:
        factor = size / max(picture.size)
        width, height = (max(1, round(factor * side)) for side in picture.size)
        smooth = Image.Resampling.LANCZOS if factor < 8 else Image.Resampling.NEAREST  # few pixels: as they are
        picture = picture.resize((width, height), smooth)
    return np.asarray(picture)
