"""Text, JSON, lines of JSON, and tables of numbers as CSV."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from dqd.safe.files import MAX_BYTES, MAX_HEADER_BYTES, MiB, Source, UnreadableError, array_bytes, load_bytes, opened

MAX_JSON_BYTES = 4 * MiB
MAX_LINES_BYTES = 16 * MiB  # of a file of lines of JSON
MAX_LINES = 20_000
MAX_MARKS = 1_000_000  # strings, commas and brackets; a pair of them may become 300 bytes of memory
MAX_DEPTH = 32  # lists and objects inside each other
MARKS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{},]', re.DOTALL)
LEVELS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def load_text(path: Source, limit: int) -> str:
    """The text of a file, unpacked if its name ends in .gz; of at most `limit` bytes either way."""
    data = load_bytes(path, limit)
    try:
        if os.fspath(path).endswith(".gz"):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)
        if len(data) > limit:
            raise UnreadableError(path, f"more than {limit:,} bytes when unpacked", f"allowed are {limit:,}")
        return data.decode()
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise UnreadableError(path, f"cut short or damaged ({str(error)[:120]})", "copy it again") from None


def load_json(path: Source, limit: int = MAX_JSON_BYTES) -> Any:
    """The value in a JSON file."""
    return parse_json(path, load_bytes(path, limit))


def load_jsonl(path: Source) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    data = load_bytes(path, MAX_LINES_BYTES)
    count = data.count(b"\n")
    if count > MAX_LINES:
        raise UnreadableError(path, f"{count:,} lines", f"allowed are {MAX_LINES:,}")
    _check_size(path, data)
    rows = [_parse(path, line) for line in io.BytesIO(data)]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UnreadableError(path, f"line {number} is not an object", 'expected lines such as {"a": 1}')
    return rows


def parse_json(path: Source, data: bytes) -> Any:
    """JSON without duplicate names, of bounded depth and number of values."""
    _check_size(path, data)
    return _parse(path, data)


def _check_size(path: Source, data: bytes) -> None:
    """How many parts there are and how deep they lie is counted before a value is made."""
    depth = 0
    for count, mark in enumerate(MARKS.finditer(data), 1):
        depth += LEVELS.get(mark[0], 0)
        if depth > MAX_DEPTH:
            raise UnreadableError(path, "JSON nested too deep", f"allowed are {MAX_DEPTH} levels")
        if count > MAX_MARKS:
            raise UnreadableError(
                path, "JSON of too many values", f"allowed are {MAX_MARKS:,} strings, commas, brackets"
            )


def _parse(path: Source, data: bytes) -> Any:
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(path, f"not valid JSON ({str(error)[:120]})", "the file is damaged") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return names


def load_csv(path: Source, columns: Iterable[str] | None = None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the first line says, if it is a comment of JSON (`# {...}`), and the columns as float64.

    Given `columns`, only those of these names are read, alone or numbered (`objective`, `measures_0`).
    """
    with opened(path, MAX_BYTES) as (file, size):
        about, names = _top(path, file)
        wanted = ".*" if columns is None else rf"({'|'.join(columns)})(_\d+)?"
        chosen = [i for i, name in enumerate(names) if re.fullmatch(wanted, name, re.DOTALL)]
        # A number takes at least two characters, so the table is at most four times as large as the file.
        array_bytes(path, "the table", np.dtype(np.float64), (size // max(2 * len(names), 1) + 1, len(chosen)))
        text = io.TextIOWrapper(file, "utf-8", newline="")
        try:
            table = np.zeros((0, len(chosen)))
            if chosen and file.tell() < size:
                table = np.loadtxt(
                    text, np.float64, comments=None, delimiter=",", quotechar='"', usecols=chosen, ndmin=2
                )
        except (ValueError, OverflowError) as error:
            raise UnreadableError(path, f"not a table of numbers ({str(error)[:120]})", "expected CSV") from None
        return about, {names[i]: table[:, j] for j, i in enumerate(chosen)}


def _top(path: Source, file: Any) -> tuple[dict[str, Any], list[str]]:
    """The comment and the names of the columns."""
    about: Any = {}
    line = file.readline(MAX_HEADER_BYTES)
    if line.startswith(b"#"):
        about, line = parse_json(path, line[1:]), file.readline(MAX_HEADER_BYTES)
    if not isinstance(about, dict):
        raise UnreadableError(path, "a comment that is not an object", 'expected # {"grid_shape": ...}')
    if len(line) == MAX_HEADER_BYTES:
        raise UnreadableError(path, "a first line that does not end", f"allowed are {MAX_HEADER_BYTES:,} bytes")
    try:
        names = next(csv.reader([line.decode().rstrip("\r\n")]), [])
    except (ValueError, csv.Error):
        raise UnreadableError(path, "a first line that is not text", "expected the names of the columns") from None
    if len(set(names)) != len(names):
        raise UnreadableError(path, "two columns of one name", "expected every name once")
    return about, names
