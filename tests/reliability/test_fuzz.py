"""Whatever a file holds, a loader reads it or says so in an error of ours, within 5 seconds and 256 MB.

Valid files of every kind are damaged in a dozen ways: flipped bits, lost and repeated parts, pieces of other files,
huge numbers where sizes stand.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reliability.samples import write_all

FUZZ = Path(__file__).parent / "fuzz.py"


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("seeds"))


def fuzzed(seeds, count, seed):
    command = [sys.executable, str(FUZZ), str(seeds), str(count), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the loader ended the process: {done.stderr[-2000:]}"
    found = json.loads(done.stdout)
    assert "story" not in found, f"{found['file']}: {found['story']}\n{found['input']}"
    assert found["read"] + found["refused"] == count
    assert found["refused"] > count / 4  # most damage is noticed, so the mutations are at work
    assert found["slowest"] < 5
    return found


def test_damaged_files_are_read_or_refused(seeds):
    fuzzed(seeds, 5_000, seed=1)


@pytest.mark.long
def test_many_damaged_files_are_read_or_refused(seeds):
    print(fuzzed(seeds, 100_000, seed=2))
