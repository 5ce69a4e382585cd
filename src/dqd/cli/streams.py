"""stdout and stderr of the command: no reader who leaves, no full disk and no closed stream ends it."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TextIO, cast

from dqd.console.saying import Lasting


class Standard(Lasting):
    """A stream that leads nowhere once it has failed, so that nothing is left for Python to fail at in the end."""

    def silence(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


def protect() -> None:
    """Make the streams of this process last."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed; the next file to be opened must not take its place
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
    cast(io.TextIOWrapper, sys.stdout).reconfigure(errors="backslashreplace")  # as stderr does
    sys.stdout, sys.stderr = (cast(TextIO, Standard(stream)) for stream in (sys.stdout, sys.stderr))


def lost() -> str:
    """Why stdout could not be written, unless its reader had enough of it."""
    error = cast(Lasting, sys.stdout).error
    return "" if error is None or getattr(error, "errno", None) == errno.EPIPE else str(error)
