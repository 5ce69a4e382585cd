"""JSON, lines of JSON, and tables of numbers as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from dqd.safe.files import MAX_BYTES, MAX_HEADER_BYTES, MiB, Source, UnreadableError, array_bytes, opened

MAX_JSON_BYTES = 16 * MiB
MAX_LINES_BYTES = 256 * MiB  # of a file of lines of JSON
MAX_DEPTH = 32  # lists and objects inside each other


def load_json(path: Source) -> Any:
    """The value in a JSON file."""
    with opened(path, MAX_JSON_BYTES) as (file, size):
        return parse_json(path, file.read(size))


def load_jsonl(path: Source) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    rows: list[dict[str, Any]] = []
    with opened(path, MAX_LINES_BYTES) as (file, _):
        while line := file.readline(MAX_HEADER_BYTES + 1):
            if len(line) > MAX_HEADER_BYTES:
                raise UnreadableError(path, f"line {len(rows) + 1} is too long", f"allowed are {MAX_HEADER_BYTES:,}")
            rows.append(parse_json(path, line))
            if not isinstance(rows[-1], dict):
                raise UnreadableError(path, f"line {len(rows)} is not an object", 'expected lines such as {"a": 1}')
    return rows


def parse_json(path: Source, data: bytes) -> Any:
    """JSON without duplicate names, of bounded depth."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(path, f"not valid JSON ({str(error)[:120]})", "the file is damaged") from None
    if _deeper(value, MAX_DEPTH):
        raise UnreadableError(path, "JSON nested too deep", f"allowed are {MAX_DEPTH} levels")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return names


def _deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        parts = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return False
    return True


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
