"""Archives to files: .safetensors, .npz, .parquet and .csv, all of which `dqd.load` reads. Never imports JAX.

Numbers are kept to the bit. In .safetensors and .npz the arrays are stored as they are. In .parquet and .csv an elite
is a row, and the grid stands in the schema, or in a first line that begins with #.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dqd.safe.files import MAX_ARRAYS, MAX_HEADER_BYTES
from dqd.storage import durable

if TYPE_CHECKING:
    from dqd.saved.archive import SavedArchive

Source = str | os.PathLike[str]
Write = Callable[[Path], Any]
T = TypeVar("T")


def save(archive: SavedArchive, path: Source, *, solutions: bool = True) -> Path:
    """Write an archive: .parquet, .csv, .npz or .safetensors. It is written aside and renamed: whole or absent."""
    contents = {
        ".parquet": _parquet,
        ".csv": _csv,
        ".npz": _npz,
        ".safetensors": lambda archive, solutions: archive.arrays(solutions),
    }
    content, target = by_suffix(path, contents)(archive, solutions), Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give a file name")
    try:
        durable.make_folder(target.parent)
        durable.replace_file(target, content)
    except OSError as error:
        if error.errno is None:
            raise
        words = f"could not write the archive: {os.strerror(error.errno)}"
        raise OSError(error.errno, words, str(target)) from error
    return target


def _npz(archive: SavedArchive, solutions: bool) -> Write:
    def write(path: Path) -> None:
        with path.open("wb") as file:  # to a name that does not end in .npz, NumPy would add that
            np.savez(file, allow_pickle=False, **archive.arrays(solutions))

    return write


def _too_wide(columns: Mapping[str, Any]) -> ValueError:
    return ValueError(
        f"an archive of {len(columns):,} columns is too wide for a table that dqd.load reads; "
        "choose .npz or .safetensors, or leave the solutions out"
    )


def _csv(archive: SavedArchive, solutions: bool) -> Write:
    columns, about = archive.columns(solutions), _about(archive, solutions)
    if len(",".join(columns)) + 1 >= MAX_HEADER_BYTES:
        raise _too_wide(columns)

    def write(path: Path) -> None:
        with path.open("w", newline="") as file:
            file.write(f"# {about}\n")
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(columns)
            numbers = (column.tolist() for column in columns.values())  # Python floats: every digit
            rows.writerows(zip(*numbers, strict=True))

    return write


def _parquet(archive: SavedArchive, solutions: bool) -> Write:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("writing Parquet needs pyarrow: pip install 'dqd[parquet]'") from None
    columns = {name: np.ascontiguousarray(column) for name, column in archive.columns(solutions).items()}
    if len(columns) > MAX_ARRAYS:
        raise _too_wide(columns)
    fields = [pyarrow.field(name, pyarrow.from_numpy_dtype(c.dtype), nullable=False) for name, c in columns.items()]
    schema = pyarrow.schema(fields, metadata={"dqd": _about(archive, solutions)})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    return lambda path: pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), path, **plain)


def _about(archive: SavedArchive, solutions: bool) -> str:
    """What a table says of itself, as JSON: the cells and the types of its numbers."""
    arrays = archive.arrays(solutions)
    whole = {name: arrays.pop(name).tolist() for name in (*archive.tessellation.arrays(), "qd_score_offset")}
    about = json.dumps({"types": {name: str(array.dtype) for name, array in arrays.items()}, **whole})
    if len(about) + 3 >= MAX_HEADER_BYTES:
        raise ValueError(
            f"{archive.num_cells:,} cells are too many to be described in a table that dqd.load reads; "
            "choose .npz or .safetensors"
        )
    return about


def by_suffix(path: Source, choices: Mapping[str, T]) -> T:
    suffix = Path(path).suffix.lower()
    if suffix not in choices:
        raise ValueError(f"{os.fspath(path)}: expected a file that ends in {', '.join(choices)}, got {suffix!r}")
    return choices[suffix]
