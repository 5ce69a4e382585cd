"""A long run needs no more than a short one: memory, open files and compiled programs stay as they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def soaked(iterations, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    environment.pop("JAX_DISABLE_MOST_OPTIMIZATIONS", None)
    command = [sys.executable, str(HERE / "soak.py"), str(iterations), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["iterations"] == iterations
    assert found["compiled_when_warm"] > 0  # compilations are noticed
    assert found["compilations"] == 0
    assert len(found["files"]) == 1
    assert found["growth"] <= 16 * 2**20
    return found


def test_a_hundred_thousand_iterations_need_no_more_than_the_first(tmp_path):
    soaked(100_000, tmp_path)


@pytest.mark.long
def test_a_million_iterations_need_no_more_than_the_first(tmp_path):
    print(soaked(1_000_000, tmp_path))
