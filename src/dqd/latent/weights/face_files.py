"""Where fetched weights lie, and how they are written and read: safetensors, whole or absent. No JAX."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from dqd.latent.weights import files
from dqd.safe import UnreadableError, load_json

ABOUT = "about.json"


def folder() -> Path:
    """DQD_MODELS, or dqd/models in the user's cache; then faces."""
    models = os.environ.get("DQD_MODELS")
    if not models:
        models = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dqd" / "models")
    return Path(models) / "faces"


def write(target: Path, networks: Mapping[str, Mapping[str, np.ndarray]], about: Mapping[str, Any], dtype: str) -> None:
    """All networks, one file each, into a folder that replaces `target` when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))  # mode 0700
    try:
        for name, arrays in networks.items():
            save_file({key: np.ascontiguousarray(a, dtype) for key, a in arrays.items()}, aside / f"{name}.safetensors")
        (aside / ABOUT).write_text(json.dumps({**about, "dtype": dtype}, indent=2) + "\n")
        if target.exists():
            shutil.rmtree(target)
        aside.rename(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def about(target: Path) -> dict[str, Any] | None:
    """What the folder says of itself; None where nothing was fetched."""
    try:
        found = load_json(target / ABOUT)
    except (OSError, UnreadableError):
        return None
    return found if isinstance(found, dict) else None


def there(name: str, source: Path | None = None) -> bool:
    """Whether a network was fetched."""
    return ((source or folder()) / f"{name}.safetensors").is_file()


def read(name: str, shapes: files.Shapes, source: Path | None = None) -> dict[str, Any]:
    """The arrays of one network, float32, nested by the dots of their names; every one of them as expected."""
    path = (source or folder()) / f"{name}.safetensors"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {_how_to_get(source)}")
    try:
        return nested(files.load(path, shapes))
    except ValueError as error:
        raise ValueError(f"{error}; {_how_to_mend(path, source)}") from None


def _how_to_get(source: Path | None) -> str:
    if source is None:
        return "run `dqd fetch faces` once, or point DQD_MODELS to its copy"
    return "`weights` names a folder that `dqd fetch faces` or its --half has filled"


def _how_to_mend(path: Path, source: Path | None) -> str:
    """Only what was fetched can be fetched again; weights of a user's own are his."""
    if source is None:
        return f"delete {path.parent} and run `dqd fetch faces`"
    return f"{path.parent} was named by `weights`; its files are left as they are. Leave it out for those fetched"


def nested(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names become dictionaries in dictionaries."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *path, last = name.split(".")
        place = tree
        for part in path:
            place = place.setdefault(part, {})
        place[last] = array
    return tree
