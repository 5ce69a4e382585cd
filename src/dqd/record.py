"""The record of a run on disk: plain files that any tool can read. NumPy, safetensors and JSON only; never JAX.

    config.json           settings, versions and the final figures
    metrics.jsonl         one JSON object per line: iteration, qd_score, coverage, best, mean
    archive.safetensors   the elites (cell, objective, measures, solutions, found) and the grid

A record is written to a temporary folder beside its place and renamed, so it is whole or absent.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from dqd import __version__
from dqd.safe import UnreadableError, load_json, load_jsonl, load_safetensors

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Record:
    """A run read back."""

    config: dict[str, Any]
    metrics: list[dict[str, float]]
    arrays: dict[str, np.ndarray]


def write(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    metrics: Iterable[Mapping[str, float]],
    arrays: Mapping[str, np.ndarray],
) -> Path:
    """Write a record to a folder that does not exist yet, or is empty."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} already exists and is not an empty folder; choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        about = {"format": FORMAT, "dqd": __version__, "numpy": np.__version__}
        (aside / "config.json").write_text(json.dumps(about | dict(config), indent=2) + "\n")
        with (aside / "metrics.jsonl").open("w") as lines:
            lines.writelines(json.dumps(_plain(dict(row))) + "\n" for row in metrics)
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, aside / "archive.safetensors")
        if target.exists():
            target.rmdir()
        (aside / "archive.safetensors").chmod(0o644)  # safetensors writes for the owner alone
        aside.chmod(0o755)
        aside.rename(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return target


def read(folder: str | os.PathLike[str]) -> Record:
    """Read a record."""
    source = Path(folder)
    missing = [
        name for name in ("config.json", "metrics.jsonl", "archive.safetensors") if not (source / name).is_file()
    ]
    if missing:
        raise FileNotFoundError(f"{source} is not the record of a run: {', '.join(missing)} missing")
    config = load_json(source / "config.json")
    if not isinstance(config, dict):
        raise UnreadableError(source / "config.json", "not an object", "expected the settings of a run")
    if config.get("format") != FORMAT:
        raise ValueError(f"{source}: record format {config.get('format')!r}, this version reads {FORMAT}")
    arrays = load_safetensors(source / "archive.safetensors")
    return Record(config, load_jsonl(source / "metrics.jsonl"), arrays)


def describe(thing: Any) -> Any:
    """Descriptions (frozen dataclasses) as JSON: the type's name and its fields."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {field.name: describe(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
        return {"type": type(thing).__name__, **fields}
    if isinstance(thing, Mapping):
        return {str(name): describe(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [describe(value) for value in thing]
    return _plain(thing)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON knows no infinity
    if value is None or isinstance(value, bool | int | str):
        return value
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', repr(value))}"
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return repr(value)
