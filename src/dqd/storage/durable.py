"""Files that survive a crash: written, synced, and renamed into place. Standard library and NumPy only.

A rename is atomic, but durable only after the folder that holds the name was synced too. Every call that can fail on a
full or broken disk goes through `os` of this module, where the tests make each of them fail.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dqd.storage.lock import Lock

Content = bytes | str | Mapping[str, np.ndarray]  # of a file: bytes, text, or arrays to be written as safetensors

TEMPORARY = ".dqd-"  # what is being written, or removed, has a name that begins so
OURS = re.compile(re.escape(TEMPORARY) + r"(?P<token>[0-9a-f]{16})(\.lock)?-(?P<name>.+)", re.DOTALL)
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)  # what is beside the record is left out there
NO_LOCK = (errno.ENOENT, errno.ELOOP, errno.EISDIR)  # where there is none, or what nobody locks: a link, a folder
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # what a rename over something else answers
KINDS = {
    "bool": "BOOL",
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}


def write_file(path: Path, content: Content, sync: bool = True) -> dict[str, Any]:
    """Write a new file and sync it; its size and SHA-256, taken in the same pass."""
    digest, size = hashlib.sha256(), 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
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


def replace_file(path: Path, content: Content | Callable[[Path], Any], sync: bool = True) -> None:
    """Write a file that may be there already: readers see the old one or the new one. A link is replaced, not followed.

    The content is bytes, text, arrays, or a function that writes to a path which it is given, of the same ending.
    """
    with temporary(path) as aside:
        if callable(content):
            _let_write(aside, content, sync)
        else:
            write_file(aside, content, sync)
        os.rename(aside, path)
    if sync:
        sync_folder(path.parent)


def _let_write(path: Path, write: Callable[[Path], Any], sync: bool) -> None:
    write_file(path, b"", sync=False)
    mode = path.lstat().st_mode
    write(path)
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(file, mode & 0o777)  # some writers put a file of their own there
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to be filled, which has its name when it is complete. Whoever fills it syncs the folders inside."""
    with temporary(target) as aside:
        add_folder(aside)
        yield aside
        sync_folder(aside)
        try:
            os.rename(aside, target)
        except OSError as error:
            if error.errno in TAKEN:
                raise FileExistsError(f"{target} already exists; somebody else has written it meanwhile") from None
            raise
    sync_folder(target.parent)


@contextlib.contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """A name beside `target`, ours until we leave; what has it then is removed.

    A lock says that it is ours. It is there before and after what it stands for, so nobody finds one without the other
    while we live; a cleaner that takes it in the moment before we do makes us choose another name.
    """
    while True:
        token = secrets.token_hex(8)
        lock = Lock(_aside(target, f"{token}.lock"), os.O_CREAT | os.O_EXCL)
        if lock.take() != "another's" and lock.in_place():
            break
        lock.close()
    aside = _aside(target, token)
    try:
        yield aside
    finally:
        _remove(aside)
        _remove(lock.path)
        lock.close()


def add_folder(path: Path) -> None:
    """A new folder in one that is there."""
    os.mkdir(path, 0o755)


def make_folder(path: Path) -> None:
    """The folder and those above it, each synced into its parent. Others may make it at the same time."""
    if not path.is_dir():
        make_folder(path.parent)
        try:
            add_folder(path)
        except FileExistsError:
            if not path.is_dir():
                raise
        sync_folder(path.parent)


def refuse_links(root: Path, path: Path) -> None:
    """What is written below `root` lies there: through a link it could be anybody's. The root itself may be a link."""
    while path != root:
        if path.is_symlink():
            raise FileExistsError(
                f"{path} is a link; nothing is written through it: move what it leads to here, or away"
            )
        path = path.parent


def sync_folder(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_folder(path: Path) -> None:
    """Gone at once under its name, so that nobody reads half of it; then file by file."""
    with temporary(path) as aside:
        os.rename(path, aside)


def remove_temporary(folder: Path, name: str | None = None) -> None:
    """What writers that died have left behind, of everything or of one name."""
    for path in folder.glob(f"{TEMPORARY}*"):
        ours = OURS.fullmatch(path.name)
        if name is None or (ours and ours["name"] == name):
            with contextlib.suppress(FileNotFoundError, PermissionError):  # somebody was quicker; somebody else's
                _clean(path, *(ours.group("token", "name") if ours else ("", path.name)))


def _clean(path: Path, token: str, name: str) -> None:
    """Remove what nobody holds. It goes whole: a writer that lives, its lock not seen here, finds all or nothing."""
    target, lock = path.with_name(name), None
    try:
        lock = Lock(_aside(target, f"{token}.lock"), flags=0)
    except OSError as error:
        if error.errno not in NO_LOCK:
            raise
    try:
        if lock is None or (lock.take() == "ours" and lock.in_place()):
            gone = _aside(target, secrets.token_hex(8))
            os.rename(path, gone)
            _remove(gone)
    finally:
        if lock is not None:
            lock.close()


def _aside(target: Path, token: str) -> Path:
    return target.with_name(f"{TEMPORARY}{token}-{target.name}")


def _remove(path: Path) -> None:
    """A file, or a folder and all that is in it; of a link, the link alone. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(content: Content) -> int:
    """Bytes on disk, but for the header of arrays."""
    return len(content) if isinstance(content, bytes | str) else sum(array.nbytes for array in content.values())


def _parts(content: Content) -> Iterable[memoryview]:
    if isinstance(content, str):
        content = content.encode()
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
