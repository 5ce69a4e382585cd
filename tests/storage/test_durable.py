"""Files and folders written aside: whole or absent, never through a link, and left alone while their writer lives."""

import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dqd.storage import durable
from dqd.storage.lock import Lock

DIE = """
import os, pathlib, sys
from dqd.storage import durable
with durable.temporary(pathlib.Path(sys.argv[1])) as aside:
    aside.mkdir()
    os._exit(0)
"""
CONTENTS = {
    "bytes": b"new",
    "text": "new",
    "a function": lambda path: path.write_text("new"),
    "a function that puts another file there": lambda path: (path.unlink(), path.write_text("new"), path.chmod(0o600)),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("there", ["nothing", "a file", "a link", "a link to nothing"])
def test_a_file_is_replaced_and_a_link_is_not_followed(tmp_path, there, content):
    (tmp_path / "ours").write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "picture.png"
    if there == "a file":
        path.write_text("old")
    elif there.startswith("a link"):
        path.symlink_to(tmp_path / ("ours" if there == "a link" else "missing"))
    durable.replace_file(path, content)
    assert (path.is_symlink(), path.read_text()) == (False, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert (tmp_path / "ours").read_text() == "precious"
    assert [each.name for each in folder.iterdir()] == ["picture.png"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "ours"]


def test_arrays_are_written_as_safetensors_by_us_or_by_others(tmp_path):
    arrays = {"x": np.arange(3.0)}
    for content in (arrays, lambda path: save_file(arrays, path)):
        durable.replace_file(tmp_path / "x.safetensors", content)
        np.testing.assert_array_equal(load_file(tmp_path / "x.safetensors")["x"], arrays["x"])


def test_a_function_that_writes_is_given_a_name_of_the_same_ending(tmp_path):
    given = []
    durable.replace_file(tmp_path / "a.tar.gz", lambda path: given.append(path.name))
    assert given[0].endswith("-a.tar.gz")


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    (tmp_path / "x").write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        durable.replace_file(tmp_path / "x", fail)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_what_a_living_writer_holds_is_not_removed_and_what_a_dead_one_left_is(tmp_path):
    with durable.temporary(tmp_path / "run") as aside:
        aside.mkdir()
        before = sorted(tmp_path.iterdir())
        durable.remove_temporary(tmp_path)
        assert sorted(tmp_path.iterdir()) == before
        assert len(before) == 2
        subprocess.run([sys.executable, "-c", DIE, tmp_path / "run"], check=True)
        assert len(list(tmp_path.iterdir())) == 4
        durable.remove_temporary(tmp_path, "ru")
        assert len(list(tmp_path.iterdir())) == 4
        durable.remove_temporary(tmp_path, "run")
        assert sorted(tmp_path.iterdir()) == before
    assert list(tmp_path.iterdir()) == []


def test_a_cleaner_that_comes_between_the_birth_of_a_lock_and_its_holder_makes_it_choose_again(tmp_path, monkeypatch):
    take, locks = Lock.take, []

    def late(lock: Lock, wait: bool = False) -> str:
        locks.append(lock.path)
        if len(locks) == 1:  # nobody holds it yet
            durable.remove_temporary(tmp_path)
        return take(lock, wait)

    monkeypatch.setattr(Lock, "take", late)
    with durable.temporary(tmp_path / "run") as aside:
        aside.mkdir()
        assert len(set(locks)) == 2
        durable.remove_temporary(tmp_path)
        assert aside.is_dir()


@pytest.mark.parametrize("there", ["a file", "a full folder"])
def test_a_folder_that_comes_second_is_refused_and_harms_nothing(tmp_path, there):
    target = tmp_path / "run"

    def write() -> None:
        with durable.new_folder(target) as aside:
            (aside / "theirs").write_text("second")
            if there == "a file":
                target.write_text("first")
            else:
                target.mkdir()
                (target / "mine").write_text("first")

    with pytest.raises(FileExistsError, match="already exists"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (target if there == "a file" else target / "mine").read_text() == "first"
