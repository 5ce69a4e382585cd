"""Weights in files: safetensors, whose names and shapes are checked before a number is read. No JAX.

shapes = weights.shapes("generator.safetensors")
tensors = weights.load("generator.safetensors", expected)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

Tensors = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]

LARGEST_FILE = 8 * 2**30  # bytes
MOST_TENSORS = 20_000
NAMED = 5  # tensors named in a message before "and n more"


def shapes(path: str | os.PathLike[str]) -> Shapes:
    """Names and shapes of what a file holds, without reading the numbers."""
    with _open(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The words that were written beside the tensors."""
    with _open(path) as file:
        return dict(file.metadata() or {})


def load(path: str | os.PathLike[str], expected: Mapping[str, tuple[int, ...]]) -> Tensors:
    """The tensors of a file in float32, after their names and shapes were found to be the expected ones."""
    check(shapes(path), expected, str(path))
    with _open(path) as file:
        return {name: np.asarray(file.get_tensor(name), np.float32) for name in expected}


def check(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raise ValueError naming every tensor that is missing, of another shape, or not expected at all."""
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    wrong = [
        f"{name} (expected {expected[name]}, got {found[name]})"
        for name in expected
        if name in found and tuple(found[name]) != tuple(expected[name])
    ]
    problems = [("missing", missing), ("of another shape", wrong), ("not expected", extra)]
    words = "; ".join(f"{what}: {_some(names)}" for what, names in problems if names)
    if words:
        raise ValueError(f"{where}: tensors {words}")


def write(path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray], about: Mapping[str, str]) -> Path:
    """Write a file aside and rename it: it is whole or absent."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(handle)
    try:
        save_file({name: np.asarray(array, order="C") for name, array in tensors.items()}, aside, dict(about))
        Path(aside).chmod(0o644)  # safetensors writes for the owner alone
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    return target


def _open(path: str | os.PathLike[str]) -> Any:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; `dqd convert` makes it from a checkpoint")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path}: {path.stat().st_size:,} bytes; weights of more than {LARGEST_FILE:,} are not read")
    try:
        file = safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(f"{path}: cut short or not a safetensors file ({error}); copy or convert it again") from error
    if len(file.keys()) > MOST_TENSORS:
        raise ValueError(f"{path}: {len(file.keys()):,} tensors; more than {MOST_TENSORS:,} are not read")
    return file


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
