"""Parquet, as `dqd` writes it: columns of plain numbers, neither packed nor encoded, so they are as large as the file.

A file is pages of numbers, each behind a short header, and a footer that says where they lie. Files that other tools
have packed hold numbers whose size only unpacking shows; they are refused with a hint.
"""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

import numpy as np

from dqd.safe.files import MAX_ARRAYS, MAX_BYTES, MiB, Source, UnreadableError, array_bytes, opened
from dqd.safe.text import parse_json
from dqd.safe.thrift import Compact

MAX_FOOTER_BYTES = 16 * MiB  # a column takes some 300 bytes there
PAGE_HEADER_BYTES = 256  # more than one of numbers has
ROWS_PER_PART = 1000  # at least, on average
KINDS = {1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}  # by Parquet's number
REQUIRED, UNCOMPRESSED, DATA_PAGE, PLAIN = 0, 0, 0, 0
HINT = "allowed are plain numbers; write it with dqd, or read it with pandas and hand over the frame"


def load_parquet(path: Source) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the schema's entry `dqd` says, and the columns."""
    with opened(path, MAX_BYTES) as (file, size):
        footer = _footer(path, file, size)
        try:
            names = _names(path, footer)
            about = parse_json(path, {pair[1]: pair.get(2, b"") for pair in footer.get(5, [])}.get(b"dqd", b"{}"))
            groups = [[_Column(chunk[3], names, j) for j, chunk in enumerate(group[1])] for group in footer[4]]
            _check(path, names, groups, size)
            parts = [[column.read(file) for column in group] for group in groups]
        except UnreadableError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise UnreadableError(path, f"{str(error)[:160]}", HINT) from None
    columns = {name: np.concatenate([part[j] for part in parts] or [np.zeros(0)]) for j, name in enumerate(names)}
    return about if isinstance(about, dict) else {}, columns


def _footer(path: Source, file: BinaryIO, size: int) -> dict[int, Any]:
    start = file.read(4)
    file.seek(max(size - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if start != b"PAR1" or end[4:] != b"PAR1" or length > min(MAX_FOOTER_BYTES, size - 12):
        raise UnreadableError(
            path, f"a footer of {length:,} bytes, or none", f"allowed are {MAX_FOOTER_BYTES:,} within a Parquet file"
        )
    file.seek(size - 8 - length)
    try:
        return Compact(file.read(length)).struct()
    except ValueError as error:
        raise UnreadableError(path, f"a damaged footer ({error})", "expected a Parquet file") from None


def _names(path: Source, footer: dict[int, Any]) -> list[str]:
    """The columns, all of one level and without gaps."""
    root, *leaves = footer[2]
    names = [leaf[4].decode() for leaf in leaves]
    if root.get(5, 0) != len(leaves) or len(set(names)) != len(names) or len(names) > MAX_ARRAYS:
        raise UnreadableError(path, f"{len(names):,} columns, nested, alike or too many", f"allowed are {MAX_ARRAYS:,}")
    if any(leaf.get(3) != REQUIRED or 5 in leaf or leaf.get(1) not in KINDS for leaf in leaves):
        raise UnreadableError(path, "columns with gaps, or not of numbers", HINT)
    return names


class _Column:
    """One column of a group of rows."""

    def __init__(self, about: dict[int, Any], names: list[str], j: int) -> None:
        if about[3] != [names[j].encode()] or about[4] != UNCOMPRESSED or 11 in about:
            raise ValueError(f"{names[j][:80]!r} is packed or encoded")
        self.name, self.dtype, self.count, self.start = names[j], np.dtype(KINDS[about[1]]), about[5], about[9]

    def read(self, file: BinaryIO) -> np.ndarray:
        """Page after page. Nothing is larger than what was counted before."""
        array, done, at, pages = np.empty(self.count, self.dtype), 0, self.start, 0
        while done < self.count:
            if (pages := pages + 1) > _most_parts(self.count):
                raise ValueError(f"{self.name[:80]!r} has {self.count:,} numbers in {pages:,} pages or more")
            file.seek(at)
            cursor = Compact(file.read(PAGE_HEADER_BYTES))
            header = cursor.struct()
            count, length = header[5][1], header[3]
            if (header[1], header[5][2], header[2]) != (DATA_PAGE, PLAIN, length):
                raise ValueError(f"{self.name[:80]!r} is packed or encoded")
            if not 0 < count <= self.count - done or length != count * self.dtype.itemsize:
                raise ValueError(f"{self.name[:80]!r} has a page of {count:,} numbers and {length:,} bytes")
            file.seek(at + cursor.at)
            data = file.read(length)
            if len(data) != length or zlib.crc32(data) != header.get(4, 0) & 0xFFFFFFFF:
                raise ValueError(f"{self.name[:80]!r} is damaged: a checksum differs")
            array[done : done + count] = np.frombuffer(data, self.dtype)
            done, at = done + count, at + cursor.at + length
        return array


def _most_parts(rows: int) -> int:
    """Pages of a column, or groups of rows. To find one takes as long as to read thousands of numbers."""
    return 2 + rows // ROWS_PER_PART


def _check(path: Source, names: list[str], groups: list[list[_Column]], size: int) -> None:
    """Every group has every column, all of them fit into the file, and they are few."""
    total, most = 0, _most_parts(sum(group[0].count for group in groups if group))
    if len(groups) > most:
        raise UnreadableError(path, f"{len(groups):,} groups of rows", f"allowed are {most:,} for so many rows")
    for group in groups:
        if len(group) != len(names) or len({column.count for column in group}) > 1:
            raise UnreadableError(path, "columns of different lengths", "expected a table")
        total += sum(array_bytes(path, repr(column.name), column.dtype, (column.count,)) for column in group)
        if any(not 0 <= column.start <= size for column in group):
            raise UnreadableError(path, "a column outside the file", f"the file has {size:,} bytes")
    if total > size:
        raise UnreadableError(path, f"columns of {total:,} bytes", f"the file has {size:,}")
