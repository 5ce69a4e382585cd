"""`dqd render` of some elites: cells by name, walks, collages, whatever draws them."""

import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from explorer.samples import archive, make_run
from PIL import Image
from typer.testing import CliRunner

from dqd.cli import app, pictures
from dqd.figures import animation

DRAWING = """
import numpy as np

def draw(x):  # 6 pixels high, 9 wide; as red as the first number, as green as the second
    red, green = np.clip(128 + 50 * x[:2], 0, 255)
    return np.broadcast_to(np.array([red, green, 9]), (6, 9, 3)).astype(np.uint8)
"""


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A run of 12 x 9 cells, and a function that draws its solutions."""
    found = archive(seed=3)
    make_run(tmp_path / "run", found, domain={"type": "Other", "objective": "worth"}, command=None)
    (tmp_path / "pictures_of_mine.py").write_text(DRAWING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return found


def render(*options: str):
    return CliRunner().invoke(app, ["render", "run", "--function", "pictures_of_mine:draw", *options])


def colour(solution) -> list[int]:
    return [*np.clip(128 + 50 * solution[:2], 0, 255).astype(np.uint8).tolist(), 9]


def place(saved, row: int) -> str:
    return ",".join(map(str, np.unravel_index(saved.cell[row], (12, 9))))


def test_the_elite_of_a_cell_is_drawn_as_large_as_one_likes(saved):
    done = render("--cell", place(saved, 7), "--out", "one.png")
    assert done.exit_code == 0, done.output
    assert Image.open("one.png").size == (9, 6)
    assert list(Image.open("one.png").getpixel((4, 3))) == colour(saved.solutions[7])
    render("--cell", place(saved, 7), "--out", "one.png", "--size", "300")
    assert Image.open("one.png").size == (300, 200)
    done = render("--cell", place(saved, 2), "--cell", str(saved.cell[5]))
    assert done.stdout.count("picture: run/pictures/cell-") == 2
    assert list(Image.open(f"run/pictures/cell-{saved.cell[5]}.png").getpixel((0, 0))) == colour(saved.solutions[5])


def test_a_walk_goes_straight_from_one_elite_to_another_and_back(saved):
    done = render("--walk", f"{place(saved, 1)}:{place(saved, 30)}", "--frames", "5", "--speed", "20", "--out", "w.gif")
    assert done.exit_code == 0, done.output
    with Image.open("w.gif") as film:
        assert (film.n_frames, film.size, film.info["loop"], film.info["duration"]) == (8, (9, 6), 0, 50)
        frames = []
        for i in range(8):
            film.seek(i)
            frames.append(film.convert("RGB").getpixel((4, 3)))
    start, end = saved.solutions[1], saved.solutions[30]
    for i in range(8):
        share = min(i, 8 - i) / 4
        np.testing.assert_allclose(frames[i], colour((1 - share) * start + share * end), atol=3)


def test_a_collage_has_the_rows_and_columns_that_one_asks_for(saved):
    done = render("--collage", "--columns", "3", "--rows", "2", "--pick", "centre", "--size", "90", "--out", "map.png")
    assert done.exit_code == 0, done.output
    assert Image.open("map.png").width > 300
    refused = render("--collage", "--pick", "trusted")
    assert refused.exit_code == 1
    assert "for maps that held-out judges have looked at" in refused.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cell", "99,0"], "--cell: 99,0: expected numbers from 0 to 11"),
        (["--cell", "a,b"], "--cell: expected whole numbers such as 12,40, got 'a,b'"),
        (["--walk", "99,0:1,1"], "--walk: 99,0: expected numbers from 0 to 11"),
        (["--cell", "1,2,3"], "one for each of 2 measures"),
        (["--walk", "0,0"], "empty"),
        (["--cell", "1,1", "--collage"], "--cell and --collage: one at a time"),
        (["--collage", "--pick", "worst"], "unknown pick 'worst'"),
    ],
)
def test_mistakes_are_named(saved, options, words):
    empty = next(i for i in range(108) if i not in saved.cell)
    options = [f"{empty // 9},{empty % 9}" if option == "0,0" else option for option in options]
    done = render(*options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_cell_is_answered_with_the_nearest_that_is_not(saved):
    empty = next(i for i in range(108) if i not in saved.cell)
    words = render("--cell", f"{empty // 9},{empty % 9}").stderr
    named = words.rsplit(" ", 1)[1].strip()
    assert int(named.split(",")[0]) * 9 + int(named.split(",")[1]) in saved.cell


def test_a_film_needs_ffmpeg_and_the_name_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"a film needs ffmpeg, which is not installed; walk\.gif does without"):
        animation.check_name(tmp_path / "walk.mp4")
    with pytest.raises(ValueError, match=r"expected the name of an animation, such as walk\.gif"):
        animation.check_name(tmp_path / "walk.png")


def test_ffmpeg_is_given_every_frame(tmp_path, monkeypatch):
    """A stand-in that keeps what it is given, and says how it was called."""
    fake = tmp_path / "ffmpeg"
    fake.write_text('#!/bin/sh\nfor last; do :; done\necho "$@" > "$0.called"\ncat > "$last"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    frames = [np.full((3, 5, 3), i, np.uint8) for i in range(4)]
    animation.save(frames, tmp_path / "walk.mp4", 12)
    assert (tmp_path / "walk.mp4").read_bytes() == b"".join(bytes([i]) * 45 for i in range(4))
    assert "-s 5x3 -r 12" in (tmp_path / "ffmpeg.called").read_text()
    fake.write_text("#!/bin/sh\ncat > /dev/null\necho no such codec >&2\nexit 1\n")
    with pytest.raises(RuntimeError, match="ffmpeg could not make the film: no such codec"):
        animation.save(frames, tmp_path / "other.mp4", 12)
    assert not (tmp_path / "other.mp4").exists()


@pytest.mark.parametrize(("trusted", "end"), [(False, ""), (True, ", which alone are shown")])
def test_the_title_of_a_collage_names_objective_algorithm_and_judges(trusted, end):
    said = {"qd_score": 26.62, "trusted_qd_score": 25.47, "agreement": 94.1, "opinions": [{"judge": "neighbours"}]}
    command = {"domain": "lsi-digits", "algorithm": "cma-mega-adam"}
    config = {"command": command, "domain": {"objective": "digit-8"}, "summary": {"iterations": 1600, "seed": 3} | said}
    assert pictures._title(SimpleNamespace(config=config), trusted).splitlines() == [
        "lsi-digits: digit-8",
        "CMA-MEGA (Adam), 1,600 iterations, seed 3",
        f"QD-score 26.6, trusted 25.5: 94 % agreed by neighbours{end}",
    ]
