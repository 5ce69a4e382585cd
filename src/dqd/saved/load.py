"""Archives read back: from the folder of a run, from the files that `export` writes, from pyribs. Never imports JAX."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dqd.inputs.fields import FIELD, nested
from dqd.safe import UnreadableError, load_csv, load_npz, load_parquet, load_safetensors
from dqd.saved.archive import SavedArchive, placed
from dqd.saved.save import Source, by_suffix
from dqd.storage import judgement, record
from dqd.tessellations import kinds
from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation


def load(path: Source) -> SavedArchive:
    """The archive in the folder of a run (`runs/x/seed-3` for one of several seeds), or in a file that was exported.

    Where elites were judged when the search had ended, it is what the judges left, as in the run's result.

    Safe with files of others: every size is checked before anything is allocated, and no code is run. A run may be read
    while it is written: it is its newest checkpoint. JAX is not needed.

    >>> from tempfile import TemporaryDirectory
    >>> archive = dqd.Archive.empty(dqd.Grid([0], [1], [4]), 2)
    >>> archive, _ = archive.add(jnp.ones((1, 2)), dqd.Evaluation(jnp.array([3.0]), jnp.array([[0.1]])))
    >>> with TemporaryDirectory() as folder:
    ...     dqd.load(archive.save(f"{folder}/elites.npz")).best_solution().tolist()
    [1.0, 1.0]
    """
    folder, _ = record.locate(Path(path))
    if folder.is_dir():
        run = record.read(path)
        judged = judgement.read(Path(path), run.step)
        if judged is not None:
            run = replace(run, arrays=judged.arrays(), config={**run.config, "summary": judged.summary})
        offset = run.config.get("qd_score_offset", 0.0)
        return _archive(path, {"qd_score_offset": offset, **run.arrays}, run)
    if not Path(path).exists():
        raise FileNotFoundError(f"{os.fspath(path)}: there is no such run or file")
    return _archive(path, _reader(path)(path))


def _archive(path: Source, arrays: Mapping[str, Any], run: record.Record | None = None) -> SavedArchive:
    missing = [name for name in ("cell", "objective", "measures") if name not in arrays]
    if missing:
        raise UnreadableError(path, f"{', '.join(missing)} missing", "expected an archive that dqd wrote")
    try:
        return SavedArchive(
            cell=np.asarray(arrays["cell"]),
            objective=np.asarray(arrays["objective"]),
            measures=np.asarray(arrays["measures"]),
            solutions=arrays.get("solutions"),
            found=arrays.get("found"),
            tessellation=kinds.from_arrays(arrays),
            qd_score_offset=_floats(arrays.get("qd_score_offset", 0.0))[0],
            config=run.config if run else {},
            metrics=run.metrics if run else [],
            timings=run.timings if run else [],
            fields=nested(arrays).get("fields", {}),
        )
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise UnreadableError(path, str(error), "expected an archive that dqd wrote") from None


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in np.asarray(values, np.float64).reshape(-1))


def _reader(path: Source) -> Callable[[Source], dict[str, Any]]:
    readers: dict[str, Callable[[Source], dict[str, Any]]] = {
        ".safetensors": load_safetensors,
        ".npz": load_npz,
        ".csv": lambda path: _from_columns(path, *load_csv(path)),
        ".parquet": lambda path: _from_columns(path, *load_parquet(path)),
    }
    return by_suffix(path, readers)


def _from_columns(path: Source, about: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A table as the arrays of an archive; their types are those that the table names."""
    types = about.get("types")
    if not isinstance(types, dict) or not set(map(str, types.values())) <= {"float32", "float64", "int32", "int64"}:
        raise UnreadableError(path, "the grid is missing", "dqd.from_pyribs reads tables without one, given the grid")
    arrays: dict[str, Any] = {name: value for name, value in about.items() if name != "types"}
    single = {"cell": "cell", "objective": "objective", "found": "found"}
    try:
        many = {"measures": _numbered(columns, "measure"), "solutions": _numbered(columns, "solution")}
    except ValueError as error:
        raise UnreadableError(path, str(error), "the file was changed") from None
    for name, kind in types.items():
        own = str(name).startswith(FIELD)
        if name in columns and (name in single or own):
            arrays[name] = _exactly(path, name, columns[name], kind)
        elif parts := _numbered(columns, name) if own else many.get(name):
            arrays[name] = _exactly(path, name, np.stack(parts, axis=1), kind)
    return arrays


def _exactly(path: Source, name: str, values: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        exact = values.astype(kind)
    if not np.array_equal(exact.astype(values.dtype), values, equal_nan=values.dtype.kind == "f"):
        raise UnreadableError(path, f"{name} does not fit {kind}", "the file was changed")
    return np.ascontiguousarray(exact)


def _numbered(columns: Mapping[str, np.ndarray], name: str) -> list[np.ndarray]:
    """name_0, name_1, ... without a gap."""
    there = {column for column in columns if re.fullmatch(rf"{name}_\d+", column)}
    names = [f"{name}_{i}" for i in range(len(there))]
    missing = [column for column in names if column not in there]
    if missing:
        raise ValueError(f"{missing[0]} is missing among {len(there):,} columns {name}_...")
    return [columns[column] for column in names]


# Others' archives -----------------------------------------------------------------------------------------------------


def from_pyribs(frame: Any, grid: Tessellation | tuple[Any, Any, Any]) -> SavedArchive:
    """An archive of pyribs: the DataFrame of `archive.data(return_type="pandas")`, or the path of its CSV.

    `grid` is a `dqd.Grid` or (lower, upper, shape). Elites are placed anew by their measures, and the best of each cell
    is kept, so the grid may differ from the one they come from.

    >>> columns = {"objective": [1.0, 2.0], "measures_0": [0.1, 0.2], "solution_0": [7.0, 8.0]}
    >>> dqd.from_pyribs(columns, dqd.Grid(lower=[0], upper=[1], shape=[4])).solutions.tolist()
    [[8.0]]
    """
    cells = Grid(*grid) if isinstance(grid, tuple | list) else grid
    if isinstance(frame, str | os.PathLike):
        _, columns = load_csv(frame, ("objective", "measures", "measure", "behavior", "solution"))
    elif hasattr(frame, "keys"):
        columns = {str(name): np.asarray(frame[name]) for name in frame}
    else:
        raise TypeError(f"from_pyribs: expected a DataFrame or the path of a CSV, got {type(frame).__name__}")
    measures = next((parts for name in ("measures", "measure", "behavior") if (parts := _numbered(columns, name))), [])
    solutions = _numbered(columns, "solution")
    if "objective" not in columns or not measures or not solutions:
        names = ", ".join(list(columns)[:8])
        raise ValueError(f"from_pyribs: expected columns objective, measures_0... and solution_0..., got {names}")
    if len(measures) != cells.num_measures:
        raise ValueError(f"from_pyribs: the grid has {cells.num_measures} measures, the archive {len(measures)}")
    rows = [_floating(each) for each in (columns["objective"], np.stack(measures, 1), np.stack(solutions, 1))]
    if not all(np.isfinite(each).all() for each in rows):
        raise ValueError("from_pyribs: expected finite numbers, got NaN or infinity")
    return placed(rows[0], rows[1], rows[2], None, cells)


def _floating(array: np.ndarray) -> np.ndarray:
    kind = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    try:
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.ascontiguousarray(array, kind)
    except (ValueError, TypeError) as error:
        raise ValueError(f"from_pyribs: expected real numbers, got others ({error})") from None
