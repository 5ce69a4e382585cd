"""Pictures of elites: drawn once, gone on with, and never shown for another elite."""

import io
import sys

import httpx
import numpy as np
import pytest
from explorer.samples import archive, make_run, served
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from dqd.cli import app
from dqd.cli.render import square
from dqd.explorer import atlas
from dqd.explorer.library import Library
from dqd.saved.archive import SavedArchive

SIZE = 8


def draw(solutions):
    """One colour for each solution."""
    shade = np.clip(128 + 40 * solutions[:, :3], 0, 255).astype(np.uint8)
    return np.broadcast_to(shade[:, None, None], (len(solutions), SIZE, SIZE, 3))


def shown(folder, slot):
    """The colour of a picture on its page."""
    with Image.open(atlas.pages(folder)[slot // atlas.PAGE].with_suffix(".png")) as page:
        top, left = divmod(slot % atlas.PAGE, atlas.COLUMNS)
        return page.getpixel((left * SIZE + SIZE // 2, top * SIZE + SIZE // 2))


def test_every_elite_has_its_own_picture(tmp_path):
    saved = archive((30, 25))
    assert [done for done, _ in atlas.fill(tmp_path, saved, draw, SIZE)] == [0, 256, 512, len(saved)]
    slots, size = atlas.slots(tmp_path, saved)
    assert size == SIZE
    expected = draw(saved.solutions)[:, 0, 0]
    assert all(shown(tmp_path, slots[row]) == tuple(expected[row]) for row in range(0, len(saved), 37))


def test_drawing_goes_on_where_it_stopped(tmp_path):
    saved, drawn = archive((30, 25)), []

    def counting(solutions):
        drawn.append(len(solutions))
        return draw(solutions)

    stopped = atlas.fill(tmp_path, saved, counting, SIZE)
    next(stopped), next(stopped)
    stopped.close()
    first, *_ = atlas.fill(tmp_path, saved, counting, SIZE)
    assert first == (256, len(saved))
    assert sum(drawn) == len(saved)


def test_a_replaced_elite_has_no_picture_until_it_is_drawn(tmp_path):
    saved = archive()
    list(atlas.fill(tmp_path, saved, draw, SIZE))
    objective = saved.objective.copy()
    objective[4] += 1
    better = SavedArchive(saved.cell, objective, saved.measures, -saved.solutions, saved.found, saved.tessellation)
    slots, _ = atlas.slots(tmp_path, better)
    assert np.flatnonzero(slots < 0).tolist() == [4]
    list(atlas.fill(tmp_path, better, draw, SIZE))
    slots, _ = atlas.slots(tmp_path, better)
    assert shown(tmp_path, slots[4]) == tuple(draw(better.solutions)[4, 0, 0])


def test_a_page_without_its_table_does_not_count(tmp_path):
    saved = archive()
    list(atlas.fill(tmp_path, saved, draw, SIZE))
    (tmp_path / "00000.safetensors").unlink()
    assert (atlas.slots(tmp_path, saved)[0] == -1).all()


def test_pictures_of_another_size_are_refused(tmp_path):
    list(atlas.fill(tmp_path, archive(), draw, SIZE))
    with pytest.raises(ValueError, match="pictures of 8 pixels"):
        list(atlas.fill(tmp_path, archive(), draw, 16))


def test_the_command_draws_by_a_function_of_ones_own_and_the_server_shows_it(tmp_path, monkeypatch):
    saved = make_run(tmp_path / "runs" / "run", domain={"type": "Other"}, command=None)
    (tmp_path / "drawing_of_mine.py").write_text(
        "import numpy as np\n\ndef draw(x):\n    return np.full((4, 4, 3), 255 if x[0] > 0 else 0, np.uint8)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = CliRunner().invoke(app, ["render", "runs/run", "--size", "8", "--function", "drawing_of_mine:draw"])
    assert done.exit_code == 0, done.output
    with served(tmp_path / "runs") as server:
        get = lambda path: httpx.get(server.address + path, cookies=server.cookie)  # noqa: E731
        run = get("/api/runs").json()["runs"][0]["id"]
        assert get(f"/api/runs/{run}").json()["archive"]["pictures"] == 8
        page = get(f"/api/runs/{run}/pictures/0")
        assert get(f"/api/runs/{run}/pictures/1").status_code == 404
        assert get(f"/api/runs/{run}/pictures/-1").status_code == 404
    assert page.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(page.content)) as image:
        assert image.getpixel((4, 4)) == ((255, 255, 255) if saved.solutions[0, 0] > 0 else (0, 0, 0))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"domain": "arm"}, "draws it by itself"),
        ({"domain": "lp-sphere"}, "makes no images"),
        ({"domain": "nothing"}, "give --function"),
        (None, "give --function"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path, command, words):
    make_run(tmp_path / "run", command=command)
    done = CliRunner().invoke(app, ["render", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.parametrize("name", ["nothing", "nothing_at_all:draw", "json:nothing", ":x"])
def test_a_function_that_is_not_there_is_said(tmp_path, name):
    make_run(tmp_path / "run")
    done = CliRunner().invoke(app, ["render", str(tmp_path / "run"), "--function", name])
    assert done.exit_code == 2
    assert "dqd: error:" in done.output


def test_pictures_of_every_kind_become_squares():
    red = np.zeros((4, 8, 3))
    red[..., 0] = 1
    content = io.BytesIO()
    Image.fromarray((255 * red).astype(np.uint8)).save(content, "PNG")
    figure = Figure(figsize=(2, 1), facecolor="red")
    for picture in (red, (255 * red).astype(np.uint8), content.getvalue(), Image.open(content), figure):
        made = square(picture, 16)
        assert made.shape == (16, 16, 3)
        assert tuple(made[8, 8]) == (255, 0, 0)
        assert tuple(made[0, 0]) == (255, 255, 255)
    assert tuple(square(np.full((3, 3), 0.5), 8)[4, 4]) == (128, 128, 128)
    with pytest.raises(ValueError, match="expected an array"):
        square(np.zeros(3), 8)


def test_links_that_lead_out_are_not_followed(tmp_path):
    saved = make_run(tmp_path / "root" / "run")
    list(atlas.fill(tmp_path / "outside", saved, draw, SIZE))
    (tmp_path / "root" / "run" / atlas.ATLAS).symlink_to(tmp_path / "outside")
    library = Library(tmp_path / "root")
    (place,) = library.places().values()
    assert library.slots(place)[1] == 0
