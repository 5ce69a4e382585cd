"""Arrays between JAX and PyTorch. On one GPU they pass by DLPack, without a copy; elsewhere as NumPy's.

The libraries work in streams of their own: whoever hands a tensor to JAX keeps it until JAX has answered, so that torch
does not give its memory to something else before it is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.inputs.arrays import check_shape, checked, to_numpy

if TYPE_CHECKING:
    from jax import Array
    from torch import Tensor

CPU = 1  # as DLPack counts kinds of devices


def is_tensor(thing: Any) -> bool:
    """Whether it is one of torch, which whoever holds one has imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def spoken(leaves: Iterable[Any]) -> Any:
    """The torch device of somebody's arrays; None if they are not of torch."""
    return next((leaf.device for leaf in leaves if is_tensor(leaf)), None)


def on_one_gpu(tensor: Tensor, array: Any) -> bool:
    """Whether a tensor and an array of JAX lie on the same accelerator."""
    place = _place(tensor)
    return place is not None and place[0] != CPU and place == _place(array)


def _place(array: Any) -> tuple[int, int] | None:
    """Kind and number of its device; None where DLPack does not know it, or knows several."""
    try:
        return array.__dlpack_device__()
    except (AttributeError, BufferError):
        return None


def to_torch(array: Any, device: Any, copy: bool = False) -> Tensor:
    """An array of any kind as a tensor on the device; not copied if it lies there already, unless so told."""
    import torch

    if is_tensor(array):
        return array.to(device, copy=copy)
    plain = type(array) is np.ndarray
    if not plain and on_one_gpu(torch.empty(0, device=device), array):
        tensor = torch.from_dlpack(array)
        return tensor.clone() if copy else tensor
    values = array if plain else to_numpy(array)
    return torch.from_numpy(values.copy() if copy or not values.flags.writeable else values).to(device)


def to_jax(tensor: Tensor, dtype: Any) -> Array:
    """A tensor on a device of JAX as its array; not copied if its numbers lie in one piece and have this precision."""
    import jax
    import torch

    return jax.dlpack.from_dlpack(tensor.detach().to(getattr(torch, str(np.dtype(dtype)))).contiguous())


def copied(call: str, name: str, values: Any, shape: tuple[int, ...], like: Array) -> Any:
    """A copy of somebody's numbers, checked: on the GPU if they lie there and JAX computes there, else as NumPy's."""
    if is_tensor(values) and on_one_gpu(values, like) and not values.is_complex():
        check_shape(call, name, tuple(values.shape), shape)
        return to_jax(values.clone(), like.dtype)
    return np.array(checked(call, name, values, shape), like.dtype)
