"""Processes to be killed. This program imports no JAX, so it forks: an actor lives within milliseconds.

A line on stdin, `ROLE FOLDER [NUMBER]`, starts an actor beside those that live. Its lines on stdout begin with its
process id; the last one, `ID over CODE`, says how it ended (a negative code is a signal).
"""

import contextlib
import itertools
import os
import select
import time
import types
from pathlib import Path

import numpy as np

from dqd.storage import durable, record
from dqd.storage.lock import Lock
from dqd.storage.writer import Writer

CONFIG = record.with_versions({"seed": 1, "iterations": 10**9})


def files(step: int) -> dict:
    """A checkpoint whose every number is its step."""
    rows = [{"iteration": step, "qd_score": float(step)}]
    arrays = {"cell": np.arange(100, dtype=np.int32), "objective": np.full(100, step, np.float32)}
    return {record.METRICS: record.to_lines(rows), record.ARCHIVE: arrays, record.STATE: {"x": np.full(4000, step)}}


def check(checkpoint: record.Checkpoint) -> int:
    """The step of a checkpoint in which everything fits together."""
    read, step = record.record_of(checkpoint), checkpoint.step
    assert (read.config["summary"]["iterations"], read.metrics[0]["iteration"]) == (step, step)
    assert (read.arrays["objective"] == step).all()
    assert (checkpoint.arrays(record.STATE)["x"] == step).all()
    return step


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, (os.getpid(), *words))) + "\n").encode())


def commit(folder: Path, count: int = 0) -> None:
    """Commit after commit, each acknowledged when it is done; without end unless a count is given."""
    if count:  # seen by other processes, a rename is atomic with or without syncing, which takes most of the time
        durable.os = types.SimpleNamespace(**{**vars(os), "fsync": lambda file: None})
    with Writer(folder) as writer:
        writer.configure(CONFIG)
        first = 1 + (writer.latest.step if writer.latest else 0)
        for step in itertools.count(first) if not count else range(first, first + count):
            writer.commit(step, CONFIG, {"iterations": step}, files(step))
            say("committed", step)


def hold(folder: Path) -> None:
    with Writer(folder):
        say("holds")
        time.sleep(600)


def hold_and_fork(folder: Path) -> None:
    """A helper that is born while the run is locked."""
    with Writer(folder):
        child = os.fork()
        if child:
            say("forked", child)
        time.sleep(600)


def read(folder: Path, last: int) -> None:
    """Read until the last step is there; steps must never go back."""
    reads, seen = 0, 0
    while seen < last:
        step = record.newest(folder, check)
        assert step >= seen, f"{step} after {seen}"
        reads, seen = reads + 1, step
        time.sleep(0.01)
    say("read", reads)


def save(folder: Path, step: int) -> None:
    """Save a result, unless somebody else was quicker."""
    try:
        record.write_run(folder, step, CONFIG, {"iterations": step}, files(step))
        say("saved", step)
    except FileExistsError:
        say("refused", step)


def save_slowly(folder: Path, step: int) -> None:
    """So that it can be killed on the way, or after it."""
    say("begins", step)
    durable.os = types.SimpleNamespace(**{**vars(os), "fsync": lambda file: time.sleep(0.003)})
    save(folder, step)
    time.sleep(600)


def save_blindly(folder: Path, step: int) -> None:
    """As on a machine that does not see the locks of others."""
    Lock.take = lambda lock, wait=False: "ours"
    save(folder, step)


def main() -> None:
    roles = {role.__name__: role for role in (commit, hold, hold_and_fork, read, save, save_slowly, save_blindly)}
    while True:
        if select.select([0], [], [], 0.002)[0]:
            orders = os.read(0, 4096).decode().splitlines()
            if not orders:
                return
            for role, folder, *numbers in map(str.split, orders):
                if os.fork() == 0:
                    roles[role](Path(folder), *map(int, numbers))
                    os._exit(0)
        with contextlib.suppress(ChildProcessError):
            child, status = os.waitpid(-1, os.WNOHANG)
            if child:
                os.write(1, f"{child} over {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
