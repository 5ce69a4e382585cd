"""`dqd render`: pictures of elites. All of them, small, for the explorer; or some, as large as one likes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqd.cli import options, pictures
from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.inputs.names import check_known, imported
from dqd.paper import presets

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    from dqd.saved.archive import SavedArchive

BATCH = 32  # solutions handed to a problem at once
SMALL, MOST = 64, 256  # pixels of a picture for the explorer
PICKS = ("best", "centre", "trusted")


def render(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of one of its seeds.")],
    size: Annotated[
        int | None, typer.Option(min=8, max=pictures.LARGEST, help="Pixels of the longer side; for the explorer 64.")
    ] = None,
    cell: Annotated[
        list[str] | None, typer.Option(metavar="I,J", help="Draw the elite of this cell alone; repeatable.")
    ] = None,
    walk: Annotated[
        str | None, typer.Option(metavar="I,J:K,L", help="Animate the way from one elite to another and back.")
    ] = None,
    collage: Annotated[bool, typer.Option("--collage", help="Draw the map as pictures.")] = False,
    columns: Annotated[int, typer.Option(min=1, max=100, help="Of a collage.")] = 8,
    rows: Annotated[int, typer.Option(min=1, max=100, help="Of a collage.")] = 8,
    pick: Annotated[
        str, typer.Option(metavar="|".join(PICKS), help="Which elite of a block a collage shows.")
    ] = "best",
    whole: Annotated[bool, typer.Option("--whole", help="A collage of the whole map, its empty borders too.")] = False,
    frames: Annotated[int, typer.Option(min=2, max=1000, help="Of a walk, one way.")] = 36,
    speed: Annotated[float, typer.Option(min=0.1, max=120, help="Frames per second of a walk.")] = 12.0,
    title: Annotated[str | None, typer.Option(help="Above a collage.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; a walk: .gif, or .mp4 with ffmpeg.")
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Your own: one solution -> PNG bytes, PIL image, array or figure."),
    ] = None,
    generator: options.Generator = None,
) -> None:
    """Draw every elite of a run once, into pages of pictures beside it. dqd view shows them when you zoom in.

    With --cell, --walk or --collage: some of them, as files. Problems that make images draw themselves.
    """
    from dqd.saved.load import load

    with explained(USAGE):
        asked = [name for name, given in (("--cell", cell), ("--walk", walk), ("--collage", collage)) if given]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)}: one at a time")
        check_known("pick", pick, PICKS)
        archive = load(run)
        if archive.solutions is None:
            raise ValueError(f"{run} was saved without its solutions, so there is nothing to draw")
        draw = own(function) if function else of_problem(run, archive.config, generator)
        option, names = ("--cell", cell) if cell else ("--walk", walk.split(":") if walk else [])
        [pictures.row_of(archive, name, option) for name in names]
    with explained(FAILURE):
        if cell:
            made = pictures.cells(archive, cell, draw, size, out or run / "pictures")
        elif walk:
            made = [pictures.walk(archive, walk, draw, size, out or run / "walk.gif", frames, speed)]
        elif collage:
            layout: Any = {"columns": columns, "rows": rows, "pick": pick, "crop": not whole, "pixels": size or 192}
            made = [pictures.collage(archive, draw, out or run / "collage.png", title=title, **layout)]
        else:
            _fill(run, archive, draw, SMALL if size is None else size)
            return
    typer.echo("\n".join(f"picture: {path}" for path in made))


def _fill(run: Path, archive: SavedArchive, draw: pictures.Draw, size: int) -> None:
    """Every elite, for the explorer."""
    import numpy as np

    from dqd.explorer import atlas

    if size > MOST:
        raise ValueError(f"--size: expected at most {MOST} pixels for all elites, got {size}; --cell draws one larger")
    folder = atlas.folder_of(run)
    for done, total in atlas.fill(folder, archive, lambda x: np.stack([square(one, size) for one in draw(x)]), size):
        typer.echo(f"drawn: {done:,} of {total:,}", err=True)
    typer.echo(f"{len(archive):,} pictures in {folder}; see them: dqd view {run}")


def of_problem(run: Path, config: Mapping[str, Any], generator: str | None) -> pictures.Draw:
    """How the problem that a run names draws its solutions."""
    match config.get("command"):
        case {"domain": str(domain), **command} if domain in presets.PROBLEMS:
            given: Any = command.get("options") or {}
            options.check_generator(run, given, generator)
            problem = presets.make_problem(domain, **options.builder_options(given))
        case _:
            raise ValueError("the run does not name a problem that draws its solutions; give --function MODULE:NAME")
    judge = problem.final or problem.domain
    if not hasattr(judge, "render"):
        hint = "the explorer draws it by itself" if domain == "arm" else "give --function MODULE:NAME"
        raise ValueError(f"{domain} makes no images; {hint}")

    def draw(solutions: np.ndarray) -> list[Image.Image]:
        parts = [judge.render(solutions[i : i + BATCH]) for i in range(0, len(solutions), BATCH)]
        return [image_of(picture) for part in parts for picture in part]

    return draw


def own(name: str) -> pictures.Draw:
    """A user's function of one solution."""
    draw_one: Callable[[np.ndarray], Any] = imported("--function", name)
    return lambda solutions: [image_of(draw_one(solution)) for solution in solutions]


def image_of(picture: Any) -> Image.Image:
    """A picture of any kind, in colours, on white."""
    import numpy as np
    from PIL import Image

    image: Image.Image
    if isinstance(picture, bytes):
        image = Image.open(io.BytesIO(picture))
    elif hasattr(picture, "savefig"):
        content = io.BytesIO()
        picture.savefig(content, format="png")
        image = Image.open(content)
    elif isinstance(picture, Image.Image):
        image = picture
    else:
        image = Image.fromarray(_bytes(np.asarray(picture)))
    return _on_white(image)


def square(picture: Any, size: int) -> np.ndarray:
    """A picture of any kind as bytes (size, size, 3); what is not square is centred on white."""
    import numpy as np
    from PIL import ImageOps

    return np.asarray(ImageOps.pad(image_of(picture), (size, size), color="white"))


def _on_white(image: Any) -> Any:
    from PIL import Image

    with_alpha = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha).convert("RGB")


def _bytes(array: np.ndarray) -> np.ndarray:
    """Bytes, or numbers from 0 to 1; grey or colour."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ValueError(f"a picture: expected an array (height, width) or (height, width, 3), got {array.shape}")
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    return array if array.dtype == "uint8" else (255 * array.clip(0, 1)).round().astype("uint8")
