"""safetensors: eight bytes of header length, a JSON header, then the arrays one after the other without gaps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from dqd.safe.files import MAX_ARRAYS, MAX_BYTES, MAX_HEADER_BYTES, Source, UnreadableError, array_bytes, opened
from dqd.safe.text import parse_json

DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
}
Entry = tuple[np.dtype, tuple[int, ...], int, int]  # type, shape, first byte, one past the last


def load_safetensors(path: Source, only: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Every array of a file, or those of some names that are there; the whole file is checked before one is read."""
    with opened(path, MAX_BYTES) as (file, size):
        declared, _, start = _declared(path, file, size)
        wanted = declared.keys() if only is None else declared.keys() & set(only)
        return {name: _read(path, file, start, name, entry) for name, entry in declared.items() if name in wanted}


def describe_safetensors(path: Source) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Names and shapes of the arrays, and the words beside them; the whole file is checked, but no number read."""
    with opened(path, MAX_BYTES) as (file, size):
        declared, words, _ = _declared(path, file, size)
        return {name: shape for name, (_, shape, _, _) in declared.items()}, words


def _declared(path: Source, file: BinaryIO, size: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    """What the header says of the arrays, the words beside them, and where the first array begins."""
    header, start = _header(path, file, size)
    words = header.pop("__metadata__", {})
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise UnreadableError(path, "metadata that are not words", "expected a safetensors file")
    if len(header) > MAX_ARRAYS:
        raise UnreadableError(path, f"{len(header):,} arrays", f"allowed are {MAX_ARRAYS:,}")
    declared = {name: _entry(path, name, entry) for name, entry in header.items()}
    _check_offsets(path, declared, size - start)
    return declared, words, start


def _header(path: Source, file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(MAX_HEADER_BYTES, size - 8):
        raise UnreadableError(
            path, f"a header of {length:,} bytes", f"allowed are {MAX_HEADER_BYTES:,} within the file of {size:,}"
        )
    header = parse_json(path, file.read(length))
    if not isinstance(header, dict):
        raise UnreadableError(path, "a header that is not an object", "expected a safetensors file")
    return header, 8 + length


def _entry(path: Source, name: str, entry: Any) -> Entry:
    match entry:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(begin), int(end)]} if kind in DTYPES:
            if all(type(number) is int for number in (*shape, begin, end)):
                size = array_bytes(path, repr(name[:80]), DTYPES[kind], tuple(shape))
                if end - begin == size:
                    return DTYPES[kind], tuple(shape), begin, end
                raise UnreadableError(path, f"{name[:80]!r} at {begin}:{end}", f"its shape takes {size:,} bytes")
    raise UnreadableError(
        path, f"{name[:80]!r} is described as {json.dumps(entry)[:120]}", f"expected a type of {', '.join(DTYPES)}"
    )


def _check_offsets(path: Source, declared: dict[str, Entry], size: int) -> None:
    """Arrays neither overlap nor leave gaps, and end where the file ends."""
    expected = 0
    for _, _, begin, end in sorted(declared.values(), key=lambda entry: entry[2:]):
        if begin != expected:
            raise UnreadableError(path, f"an array begins at byte {begin:,}", f"expected {expected:,}")
        expected = end
    if expected != size:
        raise UnreadableError(path, f"{size:,} bytes of arrays", f"its header declares {expected:,}")


def _read(path: Source, file: BinaryIO, start: int, name: str, entry: Entry) -> np.ndarray:
    dtype, shape, begin, end = entry
    array = np.empty(shape, dtype)
    file.seek(start + begin)
    if file.readinto(array.reshape(-1).view(np.uint8)) != end - begin:  # type: ignore[attr-defined]
        raise UnreadableError(path, f"{name!r} ends early", "the file was changed while it was read")
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise UnreadableError(path, f"{name!r} holds truth values other than 0 and 1", "expected a safetensors file")
    return array
