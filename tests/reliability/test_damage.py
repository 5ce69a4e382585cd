"""Damaged checkpoints are found out, disks that fail cost nothing that was committed, and leftovers are removed."""

import errno
import json
import os
import random
import shutil
import types
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import small
from reliability.actors import CONFIG, check, files

import dqd
from dqd.storage import durable, lock, manifest, record, writer
from dqd.storage.writer import CheckpointError, Writer

STEPS = (1, 2, 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    with Writer(folder) as run:
        run.configure(CONFIG)
        for step in STEPS:
            run.commit(step, CONFIG, {"iterations": step}, files(step))
    return folder


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def place(folder: Path, step: int) -> Path:
    return folder / "steps" / f"{step:09d}"


# Damage ---------------------------------------------------------------------------------------------------------------


def flip(file: Path, dice: random.Random, step: int) -> None:
    content = bytearray(file.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    file.write_bytes(content)


def truncate(file: Path, dice: random.Random, step: int) -> None:
    os.truncate(file, dice.randrange(file.stat().st_size))


def blank(file: Path, dice: random.Random, step: int) -> None:
    """A block of zeros where there was something else."""
    content = bytearray(file.read_bytes())
    where = dice.choice([i for i, byte in enumerate(content) if byte])
    block = slice(max(0, where - dice.randrange(512)), where + 1 + dice.randrange(512))
    content[block] = bytes(len(content[block]))
    file.write_bytes(content)


def remove(file: Path, dice: random.Random, step: int) -> None:
    file.unlink()


def swap_names(file: Path, dice: random.Random, step: int) -> None:
    other = dice.choice([path for path in sorted(file.parent.iterdir()) if path != file])
    aside = file.with_name("aside")
    file.rename(aside)
    other.rename(file)
    aside.rename(other)


def swap_steps(file: Path, dice: random.Random, step: int) -> None:
    """The file of an earlier step, or of a step that was forgotten."""
    content = files(step - 7 if dice.random() < 0.5 else step - 1).get(file.name, b"{}")
    file.unlink()
    durable.write_file(file, content)


def other_version(file: Path, dice: random.Random, step: int) -> None:
    _reseal(file, format=dice.choice([1, 3, "2", None]))


def other_name(file: Path, dice: random.Random, step: int) -> None:
    _reseal(file, step=step + dice.choice([-1, 1, 1000]))


def _reseal(file: Path, **changes: object) -> None:
    """A manifest whose digest is right, but which is not one of this version, or of this step."""
    path = file.with_name(manifest.MANIFEST)
    content = json.loads(path.read_text()) | changes
    del content["sha256"]
    path.write_bytes(manifest._seal(content))


KINDS = (flip, truncate, blank, remove, swap_names, swap_steps, other_version, other_name)


@pytest.mark.parametrize("trials", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_damage_is_found_and_named_and_the_one_before_is_used(whole, tmp_path, trials):
    dice = random.Random(trials)
    for trial in range(trials):
        folder = Path(shutil.copytree(whole, tmp_path / "run"))
        damaged = STEPS[-1 - trial % len(STEPS) :]  # the newest, the two newest, all of them
        for step in damaged:
            file = dice.choice(sorted(place(folder, step).iterdir()))
            KINDS[dice.randrange(len(KINDS))](file, dice, step)
        for use in (lambda: record.newest(folder, check), lambda: _step_to_go_on_from(folder)):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                if len(damaged) == len(STEPS):
                    with pytest.raises(record.DamagedError, match="no valid checkpoint") as error:
                        use()
                    words = [str(error.value)]
                else:
                    assert use() == STEPS[-1] - len(damaged)
                    words = [str(each.message) for each in said]
            for step in damaged:
                assert any(f"{step:09d}" in each for each in words)
        shutil.rmtree(folder)


def _step_to_go_on_from(folder: Path) -> int:
    with Writer(folder) as run:
        assert run.latest is not None
        return check(run.latest)


def test_a_manifest_that_names_files_elsewhere_is_refused(copy):
    for name in ("../../config.json", "/etc/hostname", "seed-1/../x.jsonl"):
        _reseal(place(copy, 3) / "any", files={name: {"size": 1, "sha256": "0"}})
        with pytest.warns(UserWarning, match="which no checkpoint holds"):
            assert record.newest(copy, check) == 2


# Keeping --------------------------------------------------------------------------------------------------------------


def test_the_last_three_valid_ones_are_kept_and_the_only_valid_one_never_goes(copy):
    for step in (2, 3):
        (place(copy, step) / record.ARCHIVE).write_bytes(b"broken")
    with warnings.catch_warnings(action="ignore"), Writer(copy) as run:
        assert [path.name for path in record.step_folders(copy)] == ["000000003", "000000002", "000000001"]
        kept = []
        for step in range(2, 7):  # 2 and 3 are done again
            run.commit(step, CONFIG, {"iterations": step}, files(step))
            kept.append([int(path.name) for path in record.step_folders(copy)])
            assert record.newest(copy, check) == step
    assert kept == [[2, 1], [3, 2, 1], [4, 3, 2], [5, 4, 3], [6, 5, 4]]


def test_a_valid_checkpoint_is_not_written_again_and_a_damaged_one_stays_until_another_is_whole(copy):
    with Writer(copy) as run:
        before = (place(copy, 3) / manifest.MANIFEST).stat().st_mtime_ns
        run.commit(3, CONFIG, {"iterations": 3}, files(3))
        assert (place(copy, 3) / manifest.MANIFEST).stat().st_mtime_ns == before
    (place(copy, 3) / record.ARCHIVE).write_bytes(b"broken")
    with warnings.catch_warnings(action="ignore"), Writer(copy) as run:
        with pytest.raises(TypeError, match="an array of object"):
            run.commit(3, CONFIG, {"iterations": 3}, files(3) | {record.STATE: {"x": np.array([None])}})
        assert (place(copy, 3) / record.ARCHIVE).read_bytes() == b"broken"
        run.commit(3, CONFIG, {"iterations": 3}, files(3))
    assert record.newest(copy, check) == 3


def test_what_a_dead_writer_left_behind_is_removed_by_the_next_one_and_nothing_else(copy):
    (copy / "notes.txt").write_text("mine")
    (copy / ".hidden").write_text("mine")
    for stale in ("steps/.dqd-000000004-99", "steps/.dqd-000000001-99-gone", ".dqd-x"):
        (copy / stale / "deep").mkdir(parents=True)
    for stale in ("views/.dqd-000000004.safetensors-99", ".dqd-config.json-99"):
        (copy / stale).write_text("half")
    with Writer(copy):
        assert list(copy.rglob(".dqd-*")) == []
    assert (copy / "notes.txt").exists()
    assert (copy / ".hidden").exists()
    assert record.newest(copy, check) == 3


def test_a_saved_result_leaves_nothing_behind_either(tmp_path):
    (tmp_path / ".dqd-0123456789abcdef-run" / "steps").mkdir(parents=True)
    (tmp_path / ".dqd-0123456789abcdef.lock-run").touch()
    others = {".dqd-0123456789abcdef-runner", ".dqd-0123456789abcdef-run-2"}  # of folders whose writers may live
    for other in others:
        (tmp_path / other).mkdir()
    record.write(tmp_path / "run", {}, [], {})
    assert {path.name for path in tmp_path.iterdir()} == {"run", *others}


def test_views_are_thinned_and_those_of_a_future_that_was_lost_are_dropped(tmp_path):
    with Writer(tmp_path / "run") as run:
        for step in range(10, 1310, 10):
            run.view(step, {"cell": np.zeros(1, np.int32)})
            assert len(list((tmp_path / "run" / "views").iterdir())) <= writer.MOST_VIEWS
        run.forget_views_after(1000)
    steps = sorted(int(path.stem) for path in (tmp_path / "run" / "views").iterdir())
    assert (steps[0], len(steps) >= 30) == (10, True)
    assert 970 <= steps[-1] <= 1000
    assert np.ptp(np.diff(steps)) <= 30  # evenly, as well as halves of gaps allow


@pytest.mark.parametrize("name", ["lock", "failures.jsonl", "steps", "views"])
def test_nothing_is_written_or_removed_through_a_link(copy, tmp_path, name):
    """Somebody else's run could hold links to what is ours."""
    ours = tmp_path / "ours"
    (copy / name).rename(ours) if (copy / name).exists() else ours.write_text("precious")
    (copy / name).symlink_to(ours)
    before = {path: path.is_file() and path.read_bytes() for path in [ours, *ours.rglob("*")]}
    with pytest.raises(FileExistsError, match=f"{name} is a link"):
        go_on(copy)
    assert {path: path.is_file() and path.read_bytes() for path in [ours, *ours.rglob("*")]} == before


@pytest.mark.parametrize("name", ["config.json", "views/000000004.safetensors"])
def test_a_file_that_is_a_link_is_replaced(copy, tmp_path, name):
    (tmp_path / "ours").write_text("precious")
    (copy / name).unlink(missing_ok=True)
    (copy / name).symlink_to(tmp_path / "ours")
    go_on(copy)
    assert ((tmp_path / "ours").read_text(), (copy / name).is_symlink()) == ("precious", False)


def test_of_links_inside_only_the_links_are_removed(copy, tmp_path):
    (tmp_path / "ours" / "deep").mkdir(parents=True)
    (copy / ".dqd-0123456789abcdee.lock-x").mkdir()
    own = (".dqd-0123456789abcdef-x", ".dqd-0123456789abcdef.lock-x", ".dqd-0123456789abcdee-x")
    for link in (*own, ".dqd-x", "steps/.dqd-x", "steps/000000009", "views/000000009.safetensors"):
        (copy / link).symlink_to(tmp_path / "ours")
    with pytest.warns(UserWarning, match="000000009 is damaged"):
        go_on(copy)
    with Writer(copy) as run:
        run.forget_views_after(4)
    assert [path for path in copy.rglob("*") if path.is_symlink() or path.name.startswith(".dqd-")] == []
    assert (tmp_path / "ours" / "deep").is_dir()


def test_files_of_ones_own_among_the_views_stay(tmp_path):
    with Writer(tmp_path / "run") as run:
        own = [tmp_path / "run" / "views" / name for name in ("000000009.png", "2026-notes.safetensors")]
        for path in own:
            path.write_text("mine")
        for step in range(60):
            run.view(step, {"cell": np.zeros(1, np.int32)})
        run.forget_views_after(0)
    assert sorted(path.name for path in own[0].parent.iterdir()) == sorted(
        [*(p.name for p in own), "000000000.safetensors"]
    )


# Disks that fail ------------------------------------------------------------------------------------------------------

CALLS = ("open", "write", "pwrite", "fsync", "rename", "mkdir")


class Disk:
    """`os`, whose call number `failing` among those that write fails."""

    def __init__(self, failing: int, code: int) -> None:
        self.calls, self.failing, self.code = 0, failing, code
        self.os = types.SimpleNamespace(**{**vars(os), **{name: self._call(name) for name in CALLS}})

    def _call(self, name: str):
        def call(*arguments, **options):
            self.calls += 1
            if self.calls == self.failing:
                raise OSError(self.code, os.strerror(self.code))
            return getattr(os, name)(*arguments, **options)

        return call

    def __enter__(self) -> "Disk":
        durable.os = lock.os = self.os
        return self

    def __exit__(self, *_: object) -> None:
        durable.os = lock.os = os


def go_on(folder: Path) -> None:
    """Everything a writer does."""
    with Writer(folder) as run:
        run.configure({**CONFIG, "iterations": 7})
        run.view(4, {"cell": np.arange(3)})
        run.commit(4, CONFIG, {"iterations": 4}, files(4))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_at_any_call_leaves_the_last_checkpoint_and_says_what_is_needed(whole, tmp_path, code):
    with Disk(failing=0, code=code) as healthy:
        go_on(Path(shutil.copytree(whole, tmp_path / "healthy")))
    assert healthy.calls > 30
    for failing in range(1, healthy.calls + 1):
        folder = Path(shutil.copytree(whole, tmp_path / str(failing)))
        with Disk(failing, code), pytest.raises(CheckpointError) as caught:
            go_on(folder)
        error = caught.value
        assert error.errno == code
        assert str(folder) in str(error)
        assert os.strerror(code) in str(error)
        assert "bytes are needed" in str(error)
        assert record.newest(folder, check) in (3, 4)
        go_on(folder)
        assert record.newest(folder, check) == 4
        assert record.read_config(folder)["iterations"] == 7
        assert list(folder.rglob(".dqd-*")) == []


class Diary:
    """`os`, which notes what is synced and what is renamed, by path."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Path]] = []
        self.open_files: dict[int, Path] = {}
        calls = {"open": self._open, "fsync": self._fsync, "rename": self._rename}
        self.os = types.SimpleNamespace(**{**vars(os), **calls})

    def _open(self, path, *arguments):
        file = os.open(path, *arguments)
        self.open_files[file] = Path(path)
        return file

    def _fsync(self, file):
        self.done.append(("synced", self.open_files[file]))

    def _rename(self, source, target):
        self.done += [("renamed", Path(source)), ("appeared", Path(target))]
        os.rename(source, target)


def test_what_is_renamed_was_synced_before_and_its_folder_is_synced_after(tmp_path, monkeypatch):
    """A power cut cannot be had in a test; the order of calls that survives one can."""
    diary, folder = Diary(), tmp_path / "run"
    monkeypatch.setattr(durable, "os", diary.os)
    with Writer(folder) as run:
        run.configure(CONFIG)
        run.commit(1, CONFIG, {"iterations": 1}, files(1))
    renamed = {source: i for i, (what, source) in enumerate(diary.done) if what == "renamed"}
    assert len(renamed) == 2  # config.json and the checkpoint
    for source, i in renamed.items():
        target = diary.done[i + 1][1]
        held = [source / path.name for path in target.iterdir()] if target.is_dir() else []
        assert {("synced", path) for path in (source, *held)} <= set(diary.done[:i])
        assert ("synced", target.parent) in diary.done[i:]
    assert {("synced", path) for path in (tmp_path, folder)} <= set(diary.done)  # which hold new folders


def test_a_new_folder_that_cannot_be_made_is_named(tmp_path):
    with Disk(1, errno.EROFS), pytest.raises(CheckpointError, match="Read-only file system"):
        go_on(tmp_path / "deep" / "run")
    assert not (tmp_path / "deep").exists()


def test_a_finished_run_is_returned_where_nothing_can_be_written_and_while_another_holds_the_lock(tmp_path):
    begun = small.illuminate(out=tmp_path / "run")
    with Writer(tmp_path / "run"):
        again = small.illuminate(out=dqd.Folder(tmp_path / "run", about={"note": "other words"}))
    np.testing.assert_array_equal(again.archive.solutions, begun.archive.solutions)
    (tmp_path / "run" / "lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with Disk(failing=1, code=errno.EROFS):
        again = small.illuminate(out=tmp_path / "run")
    np.testing.assert_array_equal(again.archive.solutions, begun.archive.solutions)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with Disk(failing=1, code=errno.EROFS), pytest.raises(CheckpointError, match="Read-only file system"):
        small.illuminate(out=tmp_path / "run", iterations=50)


def test_a_config_too_large_to_be_ours_is_replaced_unread(copy, monkeypatch):
    os.truncate(copy / "config.json", 6 * 2**30)  # a hole
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read whole"))
    with Writer(copy) as run:
        run.configure(CONFIG)
    assert (copy / "config.json").stat().st_size < 1000


@pytest.mark.parametrize("checkpoint", [1, 2, 3])
def test_a_run_whose_disk_is_full_ends_with_an_error_and_goes_on_when_there_is_room(tmp_path, monkeypatch, checkpoint):
    def run(out):
        return dqd.illuminate(
            _score,
            dqd.map_elites(0.5, batch_size=4, initial_population=8),
            dqd.Grid([-3, -2], [3, 2], [6, 5]),
            x0=jnp.zeros(3),
            iterations=30,
            chunk=10,
            progress=False,
            out=dqd.Folder(out, checkpoint_seconds=0),
        )

    def full(*arguments):
        commits.append(None)
        if len(commits) == checkpoint:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_step(*arguments)

    undisturbed, commits, write_step = run(tmp_path / "undisturbed"), [], record.write_step
    monkeypatch.setattr(record, "write_step", full)
    full_words = r"No space left on device; [0-9,]+ bytes are needed, [0-9,]+ bytes are free"
    with pytest.raises(CheckpointError, match=full_words):
        run(tmp_path / "run")
    assert len(record.step_folders(tmp_path / "run")) == checkpoint - 1
    resumed = run(tmp_path / "run")
    np.testing.assert_array_equal(resumed.archive.solutions, undisturbed.archive.solutions)
    assert len(commits) == 31  # one failed, the others are those of an undisturbed run: one for every view


def _score(x):
    return 50 - jnp.sum(x**2), x[:2]
