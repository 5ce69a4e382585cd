"""`dqd plot`: figures of runs, folders and files."""

import pytest
from explorer.samples import archive, make_run
from matplotlib.image import imread
from typer.testing import CliRunner

from dqd.cli import app


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name in ("mega/one", "mega/two", "me/one"):
        make_run(root / name, archive((6, 5), seed=len(name)))
    make_run(root / "deep", archive((3, 3, 2, 2)))
    archive((6, 5)).save(root / "elites.csv")
    return root


def plot(*arguments):
    return CliRunner().invoke(app, ["plot", *map(str, arguments)])


@pytest.mark.parametrize(
    "arguments",
    [
        ["mega/one", "--labels", "a", "--labels", "b", "--title", "mine", "--cmap", "magma", "--vmin", "0"],
        ["mega"],
        ["deep"],
        ["elites.csv"],
        ["deep", "--kind", "parallel"],
        ["mega", "me", "--kind", "curves", "--metric", "coverage"],
        ["mega", "elites.csv", "--kind", "ccdf", "--vmin", "0"],
    ],
    ids=" ".join,
)
def test_a_picture_is_written(runs, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(runs)
    done = plot(*arguments, "--out", tmp_path / "figure.png")
    assert done.exit_code == 0, done.output
    assert str(tmp_path / "figure.png") in done.stdout
    assert imread(tmp_path / "figure.png").std() > 0.05


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["mega/one", "--kind", "pie"], 2, ["unknown kind 'pie'", "curves"]),
        (["nowhere"], 2, ["nowhere", "no such run"]),
        ([".hidden"], 2, [".hidden", "no run"]),
        (["mega", "--kind", "parallel"], 2, ["expected one run, got 2"]),
        (["mega/one", "--labels", "a"], 2, ["labels", "each of the 2 measures"]),
        (["elites.csv", "--kind", "curves"], 2, ["runs with metrics"]),
        (["mega/one", "--cmap", "viridiss"], 2, ["viridiss"]),
        (["mega/one", "--field", "energy"], 2, ["unknown field 'energy'", "There are none"]),
        (["mega", "--kind", "curves", "--against", "seconds"], 2, ["not known how many seconds"]),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(runs, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(runs)
    (runs / ".hidden").mkdir(exist_ok=True)
    done = plot(*arguments, "--out", tmp_path / "figure.png")
    assert done.exit_code == code
    (line,) = done.stderr.strip().splitlines()
    assert all(word in line for word in words), line
    assert not list(tmp_path.iterdir())
