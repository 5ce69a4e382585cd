"""npz: a zip of .npy members, each a short header and the numbers of one array. Nothing in it is unpickled."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from typing import BinaryIO

import numpy as np

from dqd.safe.files import MAX_ARRAYS, MAX_BYTES, MAX_HEADER_BYTES, Source, UnreadableError, array_bytes, opened

MAX_RATIO = 100  # what a member may grow when it is unpacked
DESCRIPTIONS = re.compile(
    rb"\{'descr': '(?P<dtype>\|b1|\|u1|\|i1|<[fiu][248])', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>(\d{1,12},? ?)*)\),? ?\} *\n"
)
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OverflowError)


def load_npz(path: Source) -> dict[str, np.ndarray]:
    """Every array of a file, checked before it is unpacked."""
    with opened(path, MAX_BYTES) as (file, size):
        _check_directory(path, file, size)
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                _check_members(path, members, size)
                return {member.filename.removesuffix(".npy"): _read(path, archive, member) for member in members}
        except UnreadableError:
            raise
        except (*DAMAGE, ValueError, OSError) as error:
            raise UnreadableError(path, f"a damaged zip ({str(error)[:120]})", "expected an npz file") from None


def _check_directory(path: Source, file: BinaryIO, size: int) -> None:
    """The list of members, which zipfile reads at once, is short. It is announced in the last 22 bytes, and again in 56
    bytes before a pointer of 20 where the file is larger than 4 GiB."""
    file.seek(max(size - 98, 0))
    end = file.read().rjust(98, b"\0")
    length = int.from_bytes(end[-10:-6], "little")
    if end[56:60] == b"PK\6\7":
        length = max(length, int.from_bytes(end[40:48], "little"))
    if end[-22:-18] != b"PK\5\6" or length > MAX_HEADER_BYTES:
        raise UnreadableError(
            path, f"a list of members of {length:,} bytes, or none", f"allowed are {MAX_HEADER_BYTES:,} in an npz file"
        )


def _check_members(path: Source, members: list[zipfile.ZipInfo], size: int) -> None:
    if len(members) > MAX_ARRAYS or len({member.filename for member in members}) != len(members):
        raise UnreadableError(path, f"{len(members):,} members, some alike or too many", f"allowed are {MAX_ARRAYS:,}")
    for member in members:
        if not re.fullmatch(r"\w{1,80}\.npy", member.filename, re.ASCII):
            raise UnreadableError(path, f"a member named {member.filename[:80]!r}", "expected names such as cell.npy")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableError(path, f"{member.filename} is packed in an unknown way", "allowed is deflate")
        if member.file_size > MAX_RATIO * max(member.compress_size, 1):
            raise UnreadableError(
                path,
                f"{member.filename} grows from {member.compress_size:,} to {member.file_size:,} bytes",
                f"allowed is {MAX_RATIO} to 1",
            )
    packed, unpacked = sum(m.compress_size for m in members), sum(m.file_size for m in members)
    if packed > size or unpacked > MAX_BYTES:
        raise UnreadableError(
            path,
            f"members of {packed:,} bytes, {unpacked:,} unpacked",
            f"allowed are the file's {size:,} and {MAX_BYTES:,}",
        )


def _read(path: Source, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        top = file.read(10)
        if len(top) < 10 or top[:6] != b"\x93NUMPY" or top[6] not in (1, 2):
            raise UnreadableError(path, f"{member.filename} is not an array", "expected numbers saved by NumPy")
        length = int.from_bytes(top[8:10] if top[6] == 1 else top[8:10] + file.read(2), "little")
        if length > MAX_HEADER_BYTES:
            raise UnreadableError(path, f"a header of {length:,} bytes", f"allowed are {MAX_HEADER_BYTES:,}")
        found = DESCRIPTIONS.fullmatch(text := file.read(length))
        if found is None:
            raise UnreadableError(path, f"{member.filename} is described as {text[:80]!r}", "allowed are plain numbers")
        dtype = np.dtype(found["dtype"].decode())
        shape = tuple(int(number) for number in re.findall(rb"\d+", found["shape"]))
        size = array_bytes(path, member.filename, dtype, shape)
        held = member.file_size - (10 if top[6] == 1 else 12) - length
        if held != size:
            raise UnreadableError(path, f"{member.filename} holds {held:,} bytes", f"its shape takes {size:,}")
        data = bytearray(size)
        view, at = memoryview(data), 0
        while got := file.readinto(view[at:]):  # type: ignore[attr-defined]  # to the end, where zipfile compares the checksum
            at += got
        if at != size or file.read(1):
            raise UnreadableError(path, f"{member.filename} ends early", "the file is damaged")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if found["fortran"] == b"True" else "C")
