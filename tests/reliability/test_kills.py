"""SIGKILL, locks and readers: what is committed stays, one process writes, and nobody sees half of anything."""

import contextlib
import random
import shutil
import socket
import time

import numpy as np
import pytest
from reliability.actors import check
from reliability.stage import Stage

from dqd.storage import durable, record
from dqd.storage.lock import Lock, LockedError
from dqd.storage.writer import KEPT, CheckpointError, Writer


def temporary(folder):
    return list(folder.rglob(f"{durable.TEMPORARY}*"))


@pytest.mark.parametrize("kills", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_a_kill_while_committing_loses_nothing_that_was_acknowledged(tmp_path, kills):
    folder, moments, torn = tmp_path / "run", random.Random(kills), 0
    with Stage() as stage:
        for _ in range(kills):
            stage.order("commit", folder)
            actor, _, committed = stage.hear()
            time.sleep(moments.uniform(0, 0.02))
            stage.kill(actor)
            while (heard := stage.hear())[1] == "committed":
                committed = heard[2]
            assert heard[1:] == ("over", -9)
            assert committed <= record.newest(folder, check) <= committed + 1
            torn += bool(temporary(folder))
    assert torn > kills / 10  # most kills did hit a commit, so what is shown here was at stake
    with Writer(folder):
        assert temporary(folder) == []
    assert len(record.step_folders(folder)) <= KEPT + 1


def test_a_second_writer_is_refused_at_once_and_a_dead_ones_lock_is_free(tmp_path):
    folder = tmp_path / "run"
    with Stage() as stage:
        for _ in range(100):
            stage.order("hold", folder)
            holder, word, _ = stage.hear()
            assert word == "holds"
            started = time.monotonic()
            with pytest.raises(LockedError, match=f"process {holder} on {socket.gethostname()} "):
                Writer(folder).__enter__()
            assert time.monotonic() - started < 1
            stage.kill(holder)
            assert stage.hear() == (holder, "over", -9)
            with Writer(folder) as writer:
                assert writer.latest is None


def test_two_writers_in_one_process_are_two_writers(tmp_path):
    with Writer(tmp_path / "run"), pytest.raises(LockedError, match="process"):
        Writer(tmp_path / "run").__enter__()


def test_a_child_that_outlives_a_killed_writer_does_not_keep_its_lock(tmp_path):
    with Stage() as stage:
        stage.order("hold_and_fork", tmp_path / "run")
        holder, word, child = stage.hear()
        assert word == "forked"
        try:
            with pytest.raises(LockedError, match=f"process {holder} on {socket.gethostname()} since [^,]*; wait"):
                Writer(tmp_path / "run").__enter__()
            stage.kill(holder)
            assert stage.hear() == (holder, "over", -9)
            deadline = time.monotonic() + 20  # the child may not have had its turn yet; it lets go when it first has it
            while not _is_free(tmp_path / "run") and time.monotonic() < deadline:
                time.sleep(0.01)
            with Writer(tmp_path / "run") as writer:
                assert writer.latest is None
        finally:
            stage.kill(child)


def _is_free(folder):
    with contextlib.suppress(LockedError), Writer(folder):
        return True
    return False


def test_a_lock_that_its_signer_has_left_to_another_says_that_the_signer_is_dead(tmp_path):
    with Stage() as stage:
        stage.order("hold", tmp_path / "run")
        holder, _, _ = stage.hear()
        stage.kill(holder)
        assert stage.hear()[1] == "over"
    lock = Lock(tmp_path / "run" / "lock")
    assert lock.take() == "ours"
    with pytest.raises(LockedError, match=f"process {holder} on .*, which has ended, but a process that it started"):
        Writer(tmp_path / "run").__enter__()
    lock.close()


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_writer_whose_lock_was_removed_stops_with_its_checkpoints_intact(tmp_path, taken_over):
    folder, files = tmp_path / "run", {"metrics.jsonl": b"", "archive.safetensors": {"cell": np.arange(3)}}
    with Writer(folder) as first, contextlib.ExitStack() as stack:
        first.commit(1, {}, {}, files)
        (folder / "lock").unlink()
        if taken_over:
            second = stack.enter_context(Writer(folder))
            second.commit(2, {}, {}, files)
        before = sorted(folder.rglob("*"))
        with pytest.raises(
            LockedError, match=r"lock was removed or replaced .* goes on: earlier checkpoints are intact"
        ):
            first.commit(3, {}, {}, files)
        with pytest.raises(LockedError, match="removed or replaced"):
            first.view(3, {"cell": np.arange(3)})
        assert sorted(folder.rglob("*")) == before
        if taken_over:
            second.commit(3, {}, {}, files)
    with Writer(folder) as third:
        assert third.latest.step == (3 if taken_over else 1)


def test_a_writer_whose_folder_was_removed_claims_no_checkpoint(tmp_path):
    folder, files = tmp_path / "run", {"metrics.jsonl": b""}
    with Writer(folder) as writer:
        writer.commit(1, {}, {}, files)
        shutil.rmtree(folder)
        with pytest.raises(LockedError, match="begins anew: there is no earlier checkpoint"):
            writer.commit(2, {}, {}, files)
        with pytest.raises(CheckpointError, match="begins anew: there is no earlier checkpoint"):
            writer.configure({"seed": 2})
    assert not folder.exists()


@pytest.mark.parametrize(("readers", "commits"), [(4, 500), pytest.param(8, 2000, marks=pytest.mark.long)])
def test_readers_during_commits_see_whole_checkpoints_that_never_go_back(tmp_path, readers, commits):
    folder, reads = tmp_path / "run", {}
    with Stage() as stage:
        stage.order("commit", folder, commits)
        assert stage.hear()[1:] == ("committed", 1)
        for _ in range(readers):
            stage.order("read", folder, commits)
        codes = []
        while len(codes) < readers + 1:
            actor, word, number = stage.hear()
            if word == "read":
                reads[actor] = number
            elif word == "over":
                codes.append(number)
    assert codes == [0] * (readers + 1)
    assert len(reads) == readers
    assert min(reads.values()) > 10
