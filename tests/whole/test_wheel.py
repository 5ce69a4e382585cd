"""What is installed is all that is needed: the wheel, unpacked somewhere else, works without the clone."""

import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = (
    "dqd/latent/problems/digits.safetensors",
    "dqd/latent/problems/digits_judge.safetensors",
    "dqd/paper/published.csv",
    "dqd/explorer/static/index.html",
    "dqd/explorer/static/main.js",
    "dqd/py.typed",
)


def run(*command, cwd, **environment):
    keep = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=keep | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by pip as a user's would be; its backend is this environment's if it is here, else that of pip's index."""
    folder = tmp_path_factory.mktemp("wheel")
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "-w", folder, *here]
    done = subprocess.run([*map(str, command), str(ROOT)], cwd=folder, capture_output=True, text=True, check=False)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("the wheel cannot be built: hatchling is not installed, and pip has no index to get it from")
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_it_holds_the_whole_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
        (points,) = (archive.read(name).decode() for name in there if name.endswith("entry_points.txt"))
    files = [path for path in (ROOT / "src/dqd").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {name for name in there if ".dist-info/" not in name} == {
        path.relative_to(ROOT / "src").as_posix() for path in files
    }
    assert set(NEEDED) <= there
    assert "dqd = dqd.cli:main" in points


def test_it_works_outside_the_clone(unpacked, tmp_path):
    where = {"PYTHONPATH": str(unpacked)}
    program = (
        "import dqd.cli, dqd.paper.published, dqd.latent.problems.digits as digits;"
        "print(dqd.__file__, len(dqd.paper.published._rows()), len(digits._tensors()))"
    )
    file, rows, tensors = run(sys.executable, "-c", program, cwd=tmp_path, **where).split()
    assert Path(file) == unpacked / "dqd/__init__.py"
    assert (int(rows) > 50, int(tensors) > 5) == (True, True)
    assert "A first look" in run(sys.executable, "-m", "dqd", "--help", cwd=tmp_path, **where)
    said = run(sys.executable, "-m", "dqd", "demo", "--iterations", 3, cwd=tmp_path, **where)
    assert "runs/demo" in said
    assert (tmp_path / "runs/demo/config.json").exists()
    assert list((tmp_path / "runs/demo").glob("*.png"))


@pytest.mark.long
def test_it_installs_into_an_empty_environment_and_runs_the_demo(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    commands = tmp_path / "venv/bin"
    run(commands / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    assert "all that a search needs works" in run(commands / "dqd", "doctor", cwd=tmp_path)
    run(commands / "dqd", "demo", cwd=tmp_path)
    assert list((tmp_path / "runs/demo").glob("*.png"))
