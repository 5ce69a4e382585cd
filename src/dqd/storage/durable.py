"""Files that survive a crash: written, synced, and renamed into place. Standard library and NumPy only.

A rename is atomic, but durable only after the folder that holds the name was synced too. Every call that can fail on a
full or broken disk goes through `os` of this module, where the tests make each of them fail.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Content = bytes | Mapping[str, np.ndarray]  # of a file: its bytes, or arrays to be written as safetensors

TEMPORARY = ".dqd-"  # what is being written, or removed, has a name that begins so
KINDS = {
    "bool": "BOOL",
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}


def write_file(path: Path, content: Content, sync: bool = True) -> dict[str, Any]:
    """Write a new file and sync it; its size and SHA-256, taken in the same pass."""
    digest, size = hashlib.sha256(), 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for part in _parts(content):
            digest.update(part)
            size += len(part)
            while part:
                part = part[os.write(file, part) :]
        if sync:
            os.fsync(file)
    finally:
        os.close(file)
    return {"size": size, "sha256": digest.hexdigest()}


def replace_file(path: Path, content: Content, sync: bool = True) -> None:
    """Write a file that may be there already: readers see the old one or the new one."""
    aside = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        write_file(aside, content, sync)
        os.rename(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """The folder and those above it, each synced into its parent. Others may make it at the same time."""
    if not path.is_dir():
        make_folder(path.parent)
        try:
            os.mkdir(path, 0o755)
        except FileExistsError:
            if not path.is_dir():
                raise
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def rename(source: Path, target: Path) -> None:
    """Rename for good."""
    os.rename(source, target)
    sync_folder(target.parent)


def remove_folder(path: Path) -> None:
    """Gone at once under its name, so that nobody reads half of it; then file by file."""
    aside = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}-gone")
    os.rename(path, aside)
    with contextlib.suppress(OSError):
        _remove(aside)


def remove_temporary(folder: Path, name: str | None = None) -> None:
    """What a writer that died has left behind, of everything or of one name."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if name is not None and not re.fullmatch(re.escape(TEMPORARY + name) + r"-\d+", path.name):
            continue
        _remove(path)


def _remove(path: Path) -> None:
    """A file, or a folder and all that is in it; of a link, the link alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(content: Content) -> int:
    """Bytes on disk, but for the header of arrays."""
    return len(content) if isinstance(content, bytes) else sum(array.nbytes for array in content.values())


def _parts(content: Content) -> Iterable[memoryview]:
    return [memoryview(content)] if isinstance(content, bytes) else _safetensors(content)


def _safetensors(arrays: Mapping[str, np.ndarray]) -> Iterator[memoryview]:
    """The format of safetensors, array by array: nothing is copied that lies in memory as it should."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # wide numbers first: all aligned
    header, offset = {}, 0
    for name in names:
        array, end = arrays[name], offset + arrays[name].nbytes
        if str(array.dtype) not in KINDS:
            raise TypeError(f"{name}: an array of {array.dtype} cannot be written")
        header[name] = {"dtype": KINDS[str(array.dtype)], "shape": array.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield memoryview(len(text).to_bytes(8, "little") + text)
    for name in names:
        if arrays[name].size:
            yield np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data
