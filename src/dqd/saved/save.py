"""Archives to files: .safetensors, .npz, .parquet and .csv, all of which `dqd.load` reads. Never imports JAX.

Numbers are kept to the bit. In .safetensors and .npz the arrays are stored as they are. In .parquet and .csv an elite
is a row, and the grid stands in the schema, or in a first line that begins with #.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.safe.files import MAX_ARRAYS, MAX_HEADER_BYTES

if TYPE_CHECKING:
    from dqd.saved.archive import SavedArchive

Source = str | os.PathLike[str]


def save(archive: SavedArchive, path: Source, *, solutions: bool = True) -> Path:
    """Write an archive: .parquet, .csv, .npz or .safetensors. It is written aside and renamed: whole or absent."""
    writers = {".parquet": _to_parquet, ".csv": _to_csv, ".npz": _to_npz, ".safetensors": _to_safetensors}
    write, target = by_suffix(path, writers), Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give a file name")
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(prefix=f".{target.name}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    try:
        write(archive, aside, solutions)
        Path(aside).chmod(0o644)
        Path(aside).replace(target)
    except BaseException as error:
        Path(aside).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno:
            raise OSError(
                error.errno, f"could not write the archive: {os.strerror(error.errno)}", str(target)
            ) from error
        raise
    return target


def _to_safetensors(archive: SavedArchive, path: str, solutions: bool) -> None:
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(array) for name, array in archive.arrays(solutions).items()}, path)


def _to_npz(archive: SavedArchive, path: str, solutions: bool) -> None:
    np.savez(path, allow_pickle=False, **archive.arrays(solutions))


def _too_wide(columns: Mapping[str, Any]) -> ValueError:
    return ValueError(
        f"an archive of {len(columns):,} columns is too wide for a table that dqd.load reads; "
        "choose .npz or .safetensors, or leave the solutions out"
    )


def _to_csv(archive: SavedArchive, path: str, solutions: bool) -> None:
    columns = archive.columns(solutions)
    if len(",".join(columns)) + 1 >= MAX_HEADER_BYTES:
        raise _too_wide(columns)
    with Path(path).open("w", newline="") as file:
        file.write(f"# {json.dumps(_about(archive, solutions))}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(
            zip(*(column.tolist() for column in columns.values()), strict=True)
        )  # Python floats: every digit


def _to_parquet(archive: SavedArchive, path: str, solutions: bool) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("writing Parquet needs pyarrow: pip install 'dqd[parquet]'") from None
    columns = {name: np.ascontiguousarray(column) for name, column in archive.columns(solutions).items()}
    if len(columns) > MAX_ARRAYS:
        raise _too_wide(columns)
    fields = [pyarrow.field(name, pyarrow.from_numpy_dtype(c.dtype), nullable=False) for name, c in columns.items()]
    schema = pyarrow.schema(fields, metadata={"dqd": json.dumps(_about(archive, solutions))})
    pyarrow.parquet.write_table(
        pyarrow.table(columns, schema=schema),
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )


def _about(archive: SavedArchive, solutions: bool) -> dict[str, Any]:
    """What a table says of itself: the grid and the types of its numbers."""
    arrays = archive.arrays(solutions)
    whole = {name: arrays.pop(name).tolist() for name in (*archive.tessellation.arrays(), "qd_score_offset")}
    return {"types": {name: str(array.dtype) for name, array in arrays.items()}, **whole}


def by_suffix(path: Source, choices: Mapping[str, Any]) -> Any:
    suffix = Path(path).suffix.lower()
    if suffix not in choices:
        raise ValueError(f"{os.fspath(path)}: expected a file that ends in {', '.join(choices)}, got {suffix!r}")
    return choices[suffix]
