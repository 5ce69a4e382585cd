"""Weights in files: safetensors, whose names and shapes are checked before a number is read. No JAX.

shapes = weights.shapes("generator.safetensors")
tensors = weights.load("generator.safetensors", expected)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from dqd.safe import describe_safetensors, load_safetensors

Tensors = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]

NAMED = 5  # tensors named in a message before "and n more"


def shapes(path: str | os.PathLike[str]) -> Shapes:
    """Names and shapes of what a file holds, without reading the numbers."""
    return describe_safetensors(_existing(path))[0]


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The words that were written beside the tensors."""
    return describe_safetensors(_existing(path))[1]


def load(path: str | os.PathLike[str], expected: Mapping[str, tuple[int, ...]]) -> Tensors:
    """The tensors of a file in float32, after their names and shapes were found to be the expected ones, and finite."""
    check(shapes(path), expected, str(path))
    found = load_safetensors(path)
    tensors = {name: np.asarray(found[name], np.float32) for name in expected}
    check_finite(tensors, str(path))
    return tensors


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


def check_finite(tensors: Mapping[str, np.ndarray], where: str) -> None:
    """Raise ValueError naming the tensors that hold NaN or infinity: of these every picture would be made."""
    wrong = [name for name, array in tensors.items() if not np.isfinite(array).all()]
    if wrong:
        raise ValueError(f"{where}: NaN or infinity in {_some(wrong)}; the training diverged, or the file is damaged")


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


def _existing(path: str | os.PathLike[str]) -> Path:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{os.fspath(path)}: no such file; `dqd convert` makes it from a checkpoint")
    return Path(path)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
