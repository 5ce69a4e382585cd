"""The notebooks of the documentation run, and keep what they print and draw.

Here with fewer iterations; `-m long` runs them as they are.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
SMALLER = {
    "first-map": ("iterations=8000", "iterations=1000"),
    "fooling-a-classifier": ("iterations=1000", "iterations=200"),
    "noisy-simulator": ("60_000", "6_000"),
    "bridges": ("iterations=3000", "iterations=1000"),
}
PICTURES = {"first-map": 2, "fooling-a-classifier": 2, "noisy-simulator": 1, "bridges": 3}

sys.path.insert(0, str(ROOT / "scripts"))
needs_kernel = pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="notebooks need nbclient and ipykernel: pip install 'dqd[test]'",
)


def outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def pictures(notebook):
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


def executed(path, folder, monkeypatch):
    from run_notebooks import run

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    return run(path, folder)


@needs_kernel
@pytest.mark.parametrize("name", SMALLER)
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    whole, (usual, smaller) = NOTEBOOKS[name].read_text(), SMALLER[name]
    assert usual in whole
    path = tmp_path / f"{name}.ipynb"
    path.write_text(whole.replace(usual, smaller))
    found = executed(path, tmp_path, monkeypatch)
    assert pictures(found) == PICTURES[name]
    assert [output for output in outputs(found) if output.get("name") == "stderr"] == []  # no warnings


@needs_kernel
@pytest.mark.long
@pytest.mark.parametrize("name", SMALLER)
def test_a_notebook_runs_as_it_is(name, tmp_path, monkeypatch):
    assert pictures(executed(NOTEBOOKS[name], tmp_path, monkeypatch)) == PICTURES[name]


def test_every_notebook_is_tested_here():
    assert set(NOTEBOOKS) == set(SMALLER)


@pytest.mark.parametrize("name", SMALLER)
def test_a_notebook_keeps_its_pictures_and_is_small(name):
    kept = json.loads(NOTEBOOKS[name].read_text())
    assert pictures(kept) == PICTURES[name]
    assert [output for output in outputs(kept) if output["output_type"] == "error"] == []
    assert NOTEBOOKS[name].stat().st_size < 250_000
