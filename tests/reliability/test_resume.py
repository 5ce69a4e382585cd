"""A run that is killed, or told to stop, and resumed by the command line: the same files to the last bit."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dqd.storage import record

SETTINGS = ["--domain", "lp-sphere", "--algorithm", "cma-mega", "--n", "20", "--resolution", "20"]
RUN = ["run", *SETTINGS, "--iterations", "15000", "--checkpoint-seconds", "0"]
RESUME = ["--checkpoint-seconds", "0"]


class Dqd:
    """The command as its users run it, with compiled programs kept in a folder of the test's own."""

    def __init__(self, cache: Path) -> None:
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        self.environment.pop("DQD_NO_CACHE", None)

    def start(self, *arguments: object, redirected: str = "", **options: Any) -> subprocess.Popen:
        """The leader of a group of processes."""
        command = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "dqd", *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment, text=True, process_group=0, **options)

    def finish(self, *arguments: object) -> None:
        process = self.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, words = process.communicate(timeout=300)
        assert process.returncode == 0, words

    def run_until_it_has_gone_on(self, folder: Path, again: bool, **options: Any) -> subprocess.Popen:
        """Begun, or resumed by one command or the other, with at least one new checkpoint."""
        before = newest(folder)
        command = ("resume", folder, *RESUME) if before and again else (*RUN, "--out", folder)
        process = self.start(*command, **options)
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


@pytest.mark.parametrize(("kills", "per_run"), [(2, 2), pytest.param(200, 5, marks=pytest.mark.long)])
def test_a_killed_run_ends_as_the_undisturbed_one(dqd, undisturbed, tmp_path, kills, per_run):
    moments, killed = random.Random(kills), 0
    for number in range(kills // per_run):
        folder = tmp_path / str(number)
        for again in range(per_run):
            process = dqd.run_until_it_has_gone_on(folder, again % 2 == 1, redirected=">/dev/null")
            time.sleep(moments.uniform(0, 0.1))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        dqd.finish("resume", folder, *RESUME)
        assert digests(folder) == undisturbed
        assert list(folder.rglob(".dqd-*")) == []
    assert killed == kills


READERS = {"| tee": ["tee", "/dev/null"], "| head": ["head", "-1"]}  # of stdout and stderr together
CLOSED = ["2>&-", "2>/dev/full", ">&- 2>&-"]
PRINTED = [*READERS, *CLOSED]
CTRL_C, SYSTEM = ("group", signal.SIGINT), ("process", signal.SIGTERM)  # what people do, and what schedulers do
OTHERS = ("process", signal.SIGINT), ("group", signal.SIGTERM)


def stopped_by(dqd: Dqd, folder: Path, printed: str, told: str, number: signal.Signals) -> int:
    """Begin or go on, be told to stop, and how it ended."""
    if printed in READERS:
        read, write = os.pipe()
        process = dqd.run_until_it_has_gone_on(folder, again=True, stdout=write, stderr=write)
        reader = subprocess.Popen(READERS[printed], stdin=read, stdout=subprocess.DEVNULL, process_group=process.pid)
        os.close(read), os.close(write)
    else:
        process = dqd.run_until_it_has_gone_on(folder, again=True, redirected=printed, stdout=subprocess.DEVNULL)
        reader = None
    (os.killpg if told == "group" else os.kill)(process.pid, number)
    code = process.wait(10)
    if reader is not None:
        reader.wait(10)
    return code


@pytest.mark.parametrize(
    "cases",
    [
        [("| head", CTRL_C), (">&- 2>&-", SYSTEM)],
        pytest.param(list(itertools.product(PRINTED, [CTRL_C, SYSTEM])), marks=pytest.mark.long),
        pytest.param(list(itertools.product(PRINTED, OTHERS)), marks=pytest.mark.long),
    ],
)
def test_a_signal_leaves_a_checkpoint_and_a_code_whoever_reads_what_is_printed(dqd, undisturbed, tmp_path, cases):
    folder, stopped = tmp_path / "run", []
    for printed, (told, number) in cases:
        code = stopped_by(dqd, folder, printed, told, number)
        assert code == 128 + number, (printed, told, number)
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
