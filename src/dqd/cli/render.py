"""`dqd render`: a picture of every elite, for the explorer."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqd.cli import options
from dqd.cli.exits import FAILURE, USAGE, explained
from dqd.inputs.names import imported
from dqd.paper import presets

if TYPE_CHECKING:
    import numpy as np

BATCH = 32  # solutions handed to a problem at once


def render(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of one of its seeds.")],
    size: Annotated[int, typer.Option(min=8, max=256, help="Pixels of a picture, which is square.")] = 64,
    function: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Your own: one solution -> PNG bytes, PIL image, array or figure."),
    ] = None,
    generator: options.Generator = None,
) -> None:
    """Draw every elite of a run once, into pages of pictures beside it. dqd view shows them when you zoom in.

    Problems that make images draw themselves. It can be stopped, and goes on where it was; after more iterations, only
    new elites are drawn.
    """
    from dqd.explorer import atlas
    from dqd.saved.load import load

    with explained(USAGE):
        archive = load(run)
        if archive.solutions is None:
            raise ValueError(f"{run} was saved without its solutions, so there is nothing to draw")
        draw = _own(function, size) if function else _of_problem(run, archive.config, size, generator)
    with explained(FAILURE):
        for done, total in atlas.fill(atlas.folder_of(run), archive, draw, size):
            typer.echo(f"drawn: {done:,} of {total:,}", err=True)
    typer.echo(f"{len(archive):,} pictures in {atlas.folder_of(run)}; see them: dqd view {run}")


def _of_problem(
    run: Path, config: Mapping[str, Any], size: int, generator: str | None
) -> Callable[[np.ndarray], np.ndarray]:
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

    def draw(solutions: np.ndarray) -> np.ndarray:
        import numpy as np

        parts = [judge.render(solutions[i : i + BATCH]) for i in range(0, len(solutions), BATCH)]
        return np.stack([square(picture, size) for part in parts for picture in np.asarray(part)])

    return draw


def _own(name: str, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """A user's function of one solution."""
    draw_one = imported("--function", name)

    def draw(solutions: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.stack([square(draw_one(solution), size) for solution in solutions])

    return draw


def square(picture: Any, size: int) -> np.ndarray:
    """A picture of any kind as bytes (size, size, 3); what is not square is centred on white."""
    import numpy as np
    from PIL import Image, ImageOps

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
    return np.asarray(ImageOps.pad(_on_white(image), (size, size), color="white"))


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
