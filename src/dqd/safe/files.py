"""Opening files with a cap, the number types they may hold, and the error that names what was found."""

from __future__ import annotations

import contextlib
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

MiB = 2**20
MAX_BYTES = 16 * 1024 * MiB  # of a file of arrays, and of the arrays in it
MAX_HEADER_BYTES = MiB  # of what describes the arrays
MAX_ARRAYS = 10_000  # in one file
MAX_AXES = 8  # of one array

Source = str | os.PathLike[str]


class UnreadableError(ValueError):
    """A file is damaged, or not what it claims to be; the message names the file and what to do."""

    def __init__(self, path: Source, found: str, allowed: str) -> None:
        super().__init__(f"{os.fspath(path)}: {found}; {allowed}")


@contextlib.contextmanager
def opened(path: Source, limit: int) -> Iterator[tuple[BinaryIO, int]]:
    """A file and its size, refused if it is larger than `limit` bytes or no plain file (a pipe would never end)."""
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(path, "not a plain file", "give the file itself")
    if status.st_size > limit:
        raise UnreadableError(path, f"{status.st_size:,} bytes", f"allowed are {limit:,}")
    with Path(path).open("rb") as file:
        yield file, status.st_size


def load_bytes(path: Source, limit: int) -> bytes:
    """All of a file, refused if it is larger than `limit` bytes."""
    with opened(path, limit) as (file, size):
        return file.read(size)


def array_bytes(path: Source, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """How many bytes an array of this shape takes, refused above the cap. Nothing is allocated."""
    if len(shape) > MAX_AXES or any(length < 0 for length in shape):
        raise UnreadableError(path, f"{name} has shape {shape}"[:200], f"allowed are up to {MAX_AXES} axes")
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_BYTES or max(shape, default=0) > MAX_BYTES:
        raise UnreadableError(path, f"{name} declares {size:,} bytes"[:200], f"allowed are {MAX_BYTES:,}")
    return size
