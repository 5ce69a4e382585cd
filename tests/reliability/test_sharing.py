"""Several processes write into one folder at the same time: a suite's trials, or a result of one name."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reliability.actors import CONFIG, check, files
from reliability.rivals import IDS
from reliability.stage import Stage

from dqd.storage import durable, record


class Rivals:
    """Four processes that run a suite when they are told a folder."""

    def __init__(self, how: str) -> None:
        program, pipes = Path(__file__).with_name("rivals.py"), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.all = [subprocess.Popen([sys.executable, program, how], **pipes, text=True, bufsize=1) for _ in range(4)]
        assert self.heard() == ["ready\n"] * 4

    def __enter__(self) -> "Rivals":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.all:
            process.communicate(timeout=20)

    def run(self, folder: Path, trials: list[object]) -> None:
        for process, trial in zip(self.all, trials, strict=True):
            process.stdin.write(f"{folder} {trial}\n")
        assert self.heard() == ["done\n"] * 4

    def heard(self) -> list[str]:
        return [process.stdout.readline() for process in self.all]


def check_suite(folder: Path) -> None:
    for name in IDS:
        for trial in range(4):
            assert record.newest(folder / name / f"trial-{trial:03d}", lambda checkpoint: checkpoint.step) == 20
    assert list(folder.rglob(f"{durable.TEMPORARY}*")) == []


@pytest.fixture(scope="module")
def writers():
    with Rivals("write") as writers:
        yield writers


def test_tasks_that_begin_at_once_lose_neither_trials_nor_time(tmp_path, writers):
    for number in range(10):
        folder = tmp_path / "deep" / str(number)
        writers.run(folder, [0, 1, 2, 3])
        assert json.loads((folder / "suite.json").read_text())["seconds"] == 4.0
        check_suite(folder)


def test_processes_that_run_the_same_trials_damage_none(tmp_path, writers):
    for number in range(20):
        writers.run(tmp_path / str(number), ["all"] * 4)
        check_suite(tmp_path / str(number))


@pytest.mark.long
def test_searches_that_run_the_same_trials_damage_none(tmp_path):
    with Rivals("search") as rivals:
        for number in range(50):
            rivals.run(tmp_path / str(number), ["all"] * 4)
            check_suite(tmp_path / str(number))


@pytest.mark.parametrize("role", ["save", "save_blindly"])
@pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_of_savers_that_choose_one_name_one_wins_and_the_others_are_told(tmp_path, role, rounds):
    with Stage() as stage:
        for number in range(rounds):
            folder = tmp_path / str(number)
            for step in range(1, 5):
                stage.order(role, folder, step)
            words: list[tuple[str, int]] = []
            while [word for word, _ in words].count("over") < 4:
                words.append(stage.hear()[1:])
            saved = [step for word, step in words if word == "saved"]
            assert [record.newest(folder, check)] == saved
            assert sorted(word for word, _ in words) == ["over"] * 4 + ["refused"] * 3 + ["saved"]
            assert [code for word, code in words if word == "over"] == [0] * 4
    if role == "save_blindly":  # cleaners that take away from each other may leave something to the next one
        durable.remove_temporary(tmp_path)
    assert list(tmp_path.glob(f"{durable.TEMPORARY}*")) == []


@pytest.mark.parametrize("rounds", [20, pytest.param(500, marks=pytest.mark.long)])
def test_savers_that_are_killed_leave_a_whole_result_or_none_and_the_next_one_removes_the_rest(tmp_path, rounds):
    moments, torn = random.Random(rounds), 0
    with Stage() as stage:
        for number in range(rounds):
            folder = tmp_path / str(number)
            for step in (1, 2):
                stage.order("save_slowly", folder, step)
            savers: set[int] = set()
            while len(savers) < 2:  # both have begun
                savers.add(stage.hear()[0])
            time.sleep(moments.uniform(0, 0.03))
            for saver in savers:
                stage.kill(saver)
            over = 0
            while over < 2:
                over += stage.hear()[1] == "over"
            torn += bool(list(tmp_path.glob(f"{durable.TEMPORARY}*")))
            if not folder.exists():
                record.write_run(folder, 3, CONFIG, {"iterations": 3}, files(3))
            assert record.newest(folder, check) in (1, 2, 3)
            durable.remove_temporary(tmp_path, folder.name)
            assert list(tmp_path.glob(f"{durable.TEMPORARY}*")) == []
    assert torn > rounds / 10  # so what is shown here was at stake
