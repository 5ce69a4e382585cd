"""Where somebody else's numbers come in: arrays of any kind become NumPy's, and what does not fit is said in words.

NumPy only, so that a worker that merely evaluates need not load JAX.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from dqd.inputs.fields import FIELD, Shapes

Rows = TypeVar("Rows", bound=Any)
MEANING = {"objective": "(batch,)", "measures": "(batch, k)", "jacobian": "(batch, 1 + k, n)"}
EXTRAS = {  # what may be told of each solution besides: kinds of its numbers, and what it is where nothing is told
    "feasible": ("b", np.bool_(True)),
    "evaluations": ("iu", np.int32(1)),
}
NESTED = (list, tuple, np.ma.MaskedArray)  # what NumPy would not look into, or not well


def to_numpy(array: Any) -> np.ndarray:
    """Any array as NumPy's: JAX, torch (also on a device, also with a gradient), lists of numbers or of arrays."""
    if type(array) is np.ndarray:
        return array
    if isinstance(array, list | tuple) and any(isinstance(part, NESTED) or _is_torch(part) for part in array):
        array = [to_numpy(part) for part in array]
    if np.ma.is_masked(array):
        raise TypeError("masked entries are no numbers; fill them first, with NaN where an evaluation failed")
    if _is_torch(array):
        array = array.detach().cpu()
        if str(getattr(array, "dtype", "")) == "torch.bfloat16":  # which NumPy does not know
            array = array.float()
    return np.asarray(array)


def _is_torch(array: Any) -> bool:
    return hasattr(array, "detach")


def filled(rows: Rows, size: int) -> Rows:
    """Rows of NumPy or JAX, the last one repeated until there are `size`: one compiled program serves fewer, too."""
    return rows if len(rows) == size else rows[np.minimum(np.arange(size), len(rows) - 1)]


def expected_shapes(
    batch: int, k: int, n: int, jacobian: bool, fields: Shapes | None = None
) -> dict[str, tuple[int, ...]]:
    """What is told of a batch, and in which shapes."""
    shapes: dict[str, tuple[int, ...]] = {"objective": (batch,), "measures": (batch, k)}
    shapes |= {"jacobian": (batch, 1 + k, n)} if jacobian else {}
    return shapes | {FIELD + name: (batch, *shape) for name, shape in (fields or {}).items()}


def numbers(call: str, name: str, values: Any) -> np.ndarray:
    """`values` as an array of real numbers."""
    try:
        array = to_numpy(values)
    except TypeError as error:
        raise TypeError(f"{call}: {name}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{call}: {name} must be real numbers, got an array of {array.dtype}")
    return array


def checked(call: str, name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`values` as real numbers of the expected shape."""
    if values is None:
        raise TypeError(f"{call}: {name} is missing; expected an array of shape {shape}")
    try:
        array = numbers(call, name, values)
    except ValueError as error:
        raise ValueError(f"{call}: {name}: expected an array of shape {shape}; {error}") from None
    check_shape(call, name, array.shape, shape)
    return array


def extras(call: str, given: Mapping[str, Any], batch: int) -> dict[str, np.ndarray]:
    """What was told besides of a batch: `feasible`, booleans, and `evaluations`, whole numbers."""
    found = {}
    for name, (kinds, usual) in EXTRAS.items():
        if given.get(name) is not None:
            array = checked(call, name, given[name], (batch,))
            if array.dtype.kind not in kinds:
                raise TypeError(f"{call}: {name}: expected {usual.dtype.name}, got an array of {array.dtype}")
            if name == "evaluations" and array.size and not 0 <= array.min() <= array.max() < 2**31:
                raise ValueError(f"{call}: evaluations: expected how many were needed, 0 or more, got {array.min()}")
            found[name] = array.astype(usual.dtype)
    return found


def check_shape(call: str, name: str, got: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if got != shape:
        meaning = MEANING.get(name, "(batch,)" if len(shape) == 1 else "(batch, m)")
        raise ValueError(f"{call}: {name}: expected {shape} = {meaning}, got {got}{_hint(name, shape, got)}")


def _hint(name: str, shape: tuple[int, ...], got: tuple[int, ...]) -> str:
    if not got:
        return "; one for each solution of the batch"
    if got == shape[::-1] or got == (*shape[:-2], *shape[:-3:-1]):
        return "; it looks transposed"
    if math.prod(shape) == math.prod(got):
        return "; the number of values fits, so reshape it"
    if len(shape) == 3 and len(got) == 3 and got[1] == shape[1] - 1:
        return "; a row is missing: the objective's gradient comes first, then one per measure"
    if got and got[1:] == shape[1:]:
        return "; tell what was asked for, one row per solution and in the same order"
    if name == "measures" and got[:-1] == shape[:-1]:
        return "; the grid has an axis for each measure"
    return ""
