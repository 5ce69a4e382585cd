"""Locks: of a run, of a suite, of what is being written. The system gives them back when their holder dies.

A lock belongs to an open file, which a forked child would share: children let go of it as they are born.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
import weakref
from pathlib import Path
from typing import Literal

from dqd.safe import load_json

State = Literal["ours", "another's", "unknown"]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # what file systems without locks answer


class LockedError(RuntimeError):
    """Another process writes this run."""


class Lock:
    """A file to be locked. Closing it unlocks."""

    def __init__(self, path: Path, flags: int = os.O_CREAT) -> None:
        self.path = path
        self._file: int | None = os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o644)
        _open.add(self)

    def take(self, wait: bool = False) -> State:
        """Whose it is now; unknown where the file system has no locks."""
        import fcntl

        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return "another's"
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return "unknown"
        return "ours"

    def in_place(self) -> bool:
        """Whether the path still leads to the file that was opened. Whoever removes it lets another one in."""
        with contextlib.suppress(FileNotFoundError):
            return self._file is not None and os.path.samestat(os.fstat(self._file), self.path.lstat())
        return False

    def sign(self) -> None:
        """Write who holds it."""
        assert self._file is not None
        about = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        os.pwrite(self._file, json.dumps(about).encode().ljust(200) + b"\n", 0)  # always as long: never half an old one

    def holder(self) -> str:
        """Who has signed it, in words."""
        for _ in range(50):  # the holder may be about to write its name
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                about = load_json(self.path)
                words = f"process {about['pid']} on {about['host']} since {about['started']}"
                return words + (_ENDED if about["host"] == socket.gethostname() and _is_dead(about["pid"]) else "")
            time.sleep(0.01)
        return "another process"

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


_ENDED = ", which has ended, but a process that it started still holds the lock"
_open: weakref.WeakSet[Lock] = weakref.WeakSet()


def _is_dead(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _let_go() -> None:
    for lock in list(_open):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
