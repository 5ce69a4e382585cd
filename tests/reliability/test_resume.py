"""A run that is killed, or told to stop, and resumed by the command line: the same files to the last bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dqd.storage import record

SETTINGS = ["--domain", "lp-sphere", "--algorithm", "cma-mega", "--n", "20", "--resolution", "20"]
RUN = ["run", *SETTINGS, "--iterations", "15000", "--checkpoint-seconds", "0", "--quiet"]
RESUME = ["--checkpoint-seconds", "0", "--quiet"]
PER_RUN = 5  # kills


class Dqd:
    """The command as its users run it, with compiled programs kept in a folder of the test's own."""

    def __init__(self, cache: Path) -> None:
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        self.environment.pop("DQD_NO_CACHE", None)

    def start(self, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, "-m", "dqd", *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True)

    def finish(self, *arguments: object) -> None:
        process = self.start(*arguments)
        _, words = process.communicate(timeout=300)
        assert process.returncode == 0, words

    def run_until_it_has_gone_on(self, folder: Path, again: bool) -> subprocess.Popen:
        """Begun, or resumed by one command or the other, with at least one new checkpoint."""
        before = newest(folder)
        process = self.start("resume", folder, *RESUME) if before and again else self.start(*RUN, "--out", folder)
        while newest(folder) == before and process.poll() is None:
            time.sleep(0.002)
        return process


def newest(folder: Path) -> str:
    return next((place.name for place in record.step_folders(folder)), "")


def digests(folder: Path) -> dict[str, str]:
    files = record.newest(folder, lambda checkpoint: checkpoint.manifest["files"])
    return {name: entry["sha256"] for name, entry in files.items() if name != record.TIMINGS}


@pytest.fixture(scope="module")
def dqd(tmp_path_factory) -> Dqd:
    return Dqd(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def undisturbed(dqd, tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    dqd.finish(*RUN, "--out", folder)
    assert digests(folder).keys() == {record.ARCHIVE, record.METRICS, record.STATE}
    return digests(folder)


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_a_killed_run_ends_as_the_undisturbed_one(dqd, undisturbed, tmp_path, kills):
    moments, killed = random.Random(kills), 0
    for number in range(kills // PER_RUN):
        folder = tmp_path / str(number)
        for again in range(PER_RUN):
            process = dqd.run_until_it_has_gone_on(folder, again % 2 == 1)
            time.sleep(moments.uniform(0, 0.1))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        dqd.finish("resume", folder, *RESUME)
        assert digests(folder) == undisturbed
        assert list(folder.rglob(".dqd-*")) == []
    assert killed == kills


def test_a_signal_leaves_a_checkpoint_and_a_code_and_the_run_ends_as_the_undisturbed_one(dqd, undisturbed, tmp_path):
    folder, stopped = tmp_path / "run", []
    for number in [signal.SIGINT, signal.SIGTERM] * 5:
        process = dqd.run_until_it_has_gone_on(folder, again=True)
        told = time.monotonic()
        process.send_signal(number)
        _, words = process.communicate(timeout=60)
        assert time.monotonic() - told < 10
        assert process.returncode == 128 + number, words
        summary = record.read(folder).config["summary"]
        assert summary["stopped"] == {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
        stopped.append(summary["iterations"])
    assert stopped == sorted(set(stopped))
    assert stopped[-1] < 15_000
    dqd.finish("resume", folder, *RESUME)
    assert digests(folder) == undisturbed


BUSY = """
import time
from dqd.runners.progress import Interrupt
Interrupt.abrupt = True
with Interrupt(resumable=True):
    print("busy", flush=True)
    time.sleep(60)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(number):
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout.readline() == "busy\n"
    process.send_signal(number)
    assert "stopping after this chunk" in process.stderr.readline()
    assert process.poll() is None
    told = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert time.monotonic() - told < 2
    assert process.returncode == -number
