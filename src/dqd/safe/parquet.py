"""Parquet, as `dqd` writes it: columns of plain numbers, neither packed nor encoded, so they are as large as the file.

Files that other tools have packed hold numbers whose size only unpacking shows; they are refused with a hint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dqd.safe.files import MAX_BYTES, MiB, Source, UnreadableError, array_bytes, opened
from dqd.safe.text import parse_json

MAX_FOOTER_BYTES = 16 * MiB  # a column takes some 300 bytes there
MAX_COLUMNS = 50_000
DTYPES = {name: np.dtype(code) for name, code in (("FLOAT", "f4"), ("DOUBLE", "f8"), ("INT32", "i4"), ("INT64", "i8"))}


def load_parquet(path: Source) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the schema's entry `dqd` says, and the columns."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'dqd[parquet]'") from None
    with opened(path, MAX_BYTES) as (file, size):
        _check_footer(path, file, size)
        try:
            table = pyarrow.parquet.ParquetFile(
                file,
                thrift_string_size_limit=MAX_FOOTER_BYTES,
                thrift_container_size_limit=MAX_FOOTER_BYTES,
                page_checksum_verification=True,
                arrow_extensions_enabled=False,
            )
            _check_columns(path, table.metadata, size)
            about = parse_json(path, (table.schema_arrow.metadata or {}).get(b"dqd", b"{}"))
            read = table.read(use_threads=False)
            read.validate(full=True)
            columns = {name: read.column(name).to_numpy() for name in read.column_names}
        except UnreadableError:
            raise
        except (pyarrow.ArrowException, ValueError, OSError, KeyError, TypeError, OverflowError) as error:
            raise UnreadableError(path, f"damaged ({str(error)[:120]})", "expected a Parquet file") from None
    return about if isinstance(about, dict) else {}, columns


def _check_footer(path: Source, file: Any, size: int) -> None:
    start = file.read(4)
    file.seek(max(size - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if start != b"PAR1" or end[4:] != b"PAR1" or length > min(MAX_FOOTER_BYTES, size - 12):
        raise UnreadableError(
            path, f"a footer of {length:,} bytes, or none", f"allowed are {MAX_FOOTER_BYTES:,} within a Parquet file"
        )
    file.seek(0)


def _check_columns(path: Source, metadata: Any, size: int) -> None:
    if metadata.num_columns > MAX_COLUMNS:
        raise UnreadableError(path, f"{metadata.num_columns:,} columns", f"allowed are {MAX_COLUMNS:,}")
    total = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            name, kind = str(column.path_in_schema)[:80], column.physical_type
            if kind not in DTYPES or column.compression != "UNCOMPRESSED" or "DICTIONARY" in str(column.encodings):
                raise UnreadableError(
                    path,
                    f"{name!r} holds {kind}, {column.compression}, {column.encodings}",
                    "allowed are plain numbers; write it with dqd, or read it with pandas and hand over the frame",
                )
            if column.num_values != group.num_rows:
                raise UnreadableError(path, f"{name!r} has gaps", f"expected {group.num_rows:,} numbers")
            total += array_bytes(path, repr(name), DTYPES[kind], (column.num_values,))
    if total > size:
        raise UnreadableError(path, f"columns of {total:,} bytes", f"the file has {size:,}")
