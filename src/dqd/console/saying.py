"""Lines and warnings on stderr, whatever has become of it: closed, full, replaced, or a pipe that nobody reads."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

BROKEN = (AttributeError, OSError, ValueError)  # no stream at all, one that fails, one that was closed


def say(line: str) -> None:
    """A line on stderr, or nothing where it would be lost or have to wait. Signal handlers may call it."""
    with contextlib.suppress(*BROKEN):
        if (file := _number(sys.stderr)) is None:
            Lasting(sys.stderr).write(f"{line}\n")
        elif select.select([], [file], [], 0)[1]:  # past Python's buffers, which a signal may have interrupted
            os.write(file, f"{line}\n".encode(errors="backslashreplace"))


def warn(words: str, stacklevel: int = 2) -> None:
    """`warnings.warn`, which forgives a stderr that fails, but not one that was closed."""
    with contextlib.suppress(ValueError):
        warnings.warn(words, stacklevel=stacklevel + 1)


def on_terminal() -> bool:
    """Whether somebody looks at stderr."""
    with contextlib.suppress(*BROKEN):
        return sys.stderr.isatty()
    return False


def in_notebook() -> bool:
    """Whether a notebook shows what is written."""
    return "ipykernel" in sys.modules


def _number(stream: TextIO) -> int | None:
    """The descriptor behind a stream; those of notebooks have none."""
    with contextlib.suppress(*BROKEN):
        return stream.fileno()
    return None


class Lasting:
    """A stream that never fails: what cannot be written is lost, and `error` says why."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.error: Exception | None = None

    def write(self, words: str) -> int:
        with self._forgiven():
            self.stream.write(words)
        return len(words)

    def flush(self) -> None:
        with self._forgiven():
            self.stream.flush()

    @contextlib.contextmanager
    def _forgiven(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            if self.error is None:
                self.error = error
                self.silence()

    def silence(self) -> None:
        """Called once, when the stream has failed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
