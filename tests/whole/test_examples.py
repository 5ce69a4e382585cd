"""The examples are programs: each runs in an empty folder, prints what it should and draws its picture."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def run(name: str, folder: Path, iterations: int | None = None) -> str:
    """With fewer iterations than it says, if given."""
    (path,) = (path for path in EXAMPLES if path.name.startswith(name))
    program = path
    if iterations:
        program = folder / path.name
        program.write_text(re.sub(r"\biterations=[0-9]+", f"iterations={iterations}", path.read_text()))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    answer = subprocess.run([sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def coverage(words: str) -> float:
    (found,) = re.findall(r"coverage[ =]([0-9.]+) %", words)
    return float(found)


def assert_drawn(path: Path) -> None:
    assert imread(path).std() > 0.1  # not blank


def test_every_example_is_tested_here() -> None:
    assert [path.name[:2] for path in EXAMPLES] == ["01", "02", "03", "04", "05", "06", "07", "08"]


def test_first_map(tmp_path: Path) -> None:
    assert coverage(run("01", tmp_path)) == 100
    assert_drawn(tmp_path / "first-map.png")


def test_your_own_loop(tmp_path: Path) -> None:
    assert coverage(run("02", tmp_path)) > 90
    assert_drawn(tmp_path / "own-loop.png")


def test_pytree_and_bounds(tmp_path: Path) -> None:
    words = run("03", tmp_path)
    assert coverage(words) > 95
    (lengths,) = re.findall(r"lengths \[(.*?)\]", words, re.DOTALL)
    assert all(0.5 <= float(length) <= 1.5 for length in lengths.split())
    assert_drawn(tmp_path / "arms.png")


@pytest.mark.long
def test_compare_algorithms(tmp_path: Path) -> None:
    table = run("04", tmp_path).splitlines()[1:]
    qd_scores = [float(row[20:].split()[0]) for row in table]
    assert len(qd_scores) == 3
    assert qd_scores == sorted(qd_scores)  # the paper's order: line, OMG-MEGA, CMA-MEGA


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: pip install 'dqd[torch]'"
)
def test_pytorch(tmp_path: Path) -> None:
    assert coverage(run("05", tmp_path, iterations=100)) > 20
    assert_drawn(tmp_path / "pytorch.png")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_torch_generator(tmp_path: Path) -> None:
    assert coverage(run("08", tmp_path, iterations=30)) > 5
    assert_drawn(tmp_path / "digits_in_torch.png")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_its_example_says_what_to_do(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "examples" / "05_pytorch.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert answer.stderr == "This example needs PyTorch: pip install 'dqd[torch]'\n"


def test_dask_cluster(tmp_path: Path) -> None:
    words = run("07", tmp_path)
    assert "4 workers killed" in words
    assert coverage(words) > 5
    (serial,) = re.findall(r"^serial ([0-9a-f]{64})$", words, re.MULTILINE)
    (dask,) = re.findall(r"^Dask   ([0-9a-f]{64})$", words, re.MULTILINE)
    assert serial == dask


def test_the_readme_shows_the_first_example() -> None:
    example = EXAMPLES[0].read_text().split('"""')[2].strip()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example in (block.strip() for block in blocks)


def test_latent_map(tmp_path: Path) -> None:
    assert coverage(run("06", tmp_path, iterations=200)) > 10
    assert_drawn(tmp_path / "digits.png")


def test_the_code_of_the_first_pages_runs_as_it_stands(tmp_path: Path) -> None:
    """With fewer iterations."""
    pages = "".join((ROOT / page).read_text() for page in ("README.md", "docs/start.md"))
    blocks = re.findall(r"```python\n(.*?)```", pages, re.DOTALL)
    assert len(blocks) == 4
    program = re.sub(r"iterations=[0-9_]+", "iterations=2000", "\n".join(blocks))
    program = program.replace("iteration < 1000", "iteration < 10")
    answer = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "first-map.png").exists()
    assert (tmp_path / "runs" / "mine" / "config.json").exists()
    assert (tmp_path / "runs" / "first" / "config.json").exists()
