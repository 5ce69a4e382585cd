"""What a function in PyTorch is given as a solution: a vector, named tensors, or a module that holds them."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.inputs.evaluator import MisuseError
from dqd.interop.torch_arrays import to_torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

LENDING = threading.RLock()  # a module holds one solution at a time, also where threads evaluate


@dataclass(eq=False)
class Vector:
    """The flat vector itself."""

    @property
    def start(self) -> OrderedDict[str, Tensor]:
        return OrderedDict()

    @property
    def holder(self) -> dict[str, Any]:
        """What holds a solution while it is evaluated, under the name that users know."""
        return {}

    @property
    def searched(self) -> list[Any]:
        """Tensors of the holder that solutions replace."""
        return []

    def starting(self, x0: Any) -> Any:
        if isinstance(x0, Mapping):
            raise ValueError(
                "x0: the function is given vectors, got named parts; "
                "torch_evaluator(function, parameters=x0) gives it such a dictionary"
            )
        return x0

    def cast(self, rows: Tensor, dtype: Any) -> Tensor:
        """In the precision of the model; in its own where there is none."""
        return rows if dtype is None else rows.to(dtype)

    def call(self, function: Callable[..., Any], row: Tensor) -> Any:
        return function(row)

    def restored(self, solution: Any, device: Any) -> Any:
        return to_torch(solution, device)


@dataclass(eq=False, init=False)
class Named(Vector):
    """Named tensors, one after the other in a vector."""

    layout: tuple[tuple[str, tuple[int, ...]], ...]  # name and shape

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        import torch

        if not isinstance(tensors, Mapping) or not tensors:
            raise TypeError(
                'torch_evaluator: parameters: expected named tensors such as {"angles": torch.zeros(3)}, '
                f"got {'none' if isinstance(tensors, Mapping) else type(tensors).__name__}"
            )
        values = {name: torch.as_tensor(tensor).detach().clone() for name, tensor in tensors.items()}
        if whole := [name for name, tensor in values.items() if not tensor.is_floating_point()]:
            raise TypeError(f"torch_evaluator: parameters: {whole[0]}: expected floats, got {values[whole[0]].dtype}")
        self.layout = tuple((name, tuple(tensor.shape)) for name, tensor in values.items())
        self._start = OrderedDict(values)

    @property
    def start(self) -> OrderedDict[str, Tensor]:
        return self._start

    def starting(self, x0: Any) -> Any:
        """Python's dictionaries are sorted by JAX; ordered ones keep their order, which is that of the vector."""
        if x0 is None:
            return self.start
        if not isinstance(x0, Mapping):
            if math.prod(np.shape(x0)) != self._size:
                raise ValueError(f"x0: expected the parameters {list(self.start)}, or all {self._size} numbers of them")
            return x0
        if x0.keys() != self.start.keys():
            raise ValueError(f"x0: expected the parameters {list(self.start)}, got {list(x0)}")
        for name, shape in self.layout:
            if (got := tuple(np.shape(x0[name]))) != shape:
                raise ValueError(f"x0: {name}: expected shape {shape}, got {got}")
        return OrderedDict((name, x0[name]) for name in self.start)

    def cast(self, rows: Tensor, dtype: Any) -> Tensor:
        """As they are: each tensor gets its own precision."""
        if rows.shape[-1] != self._size:
            raise MisuseError(
                f"torch_evaluator: expected solutions of {self._size} numbers, those of {list(self.start)}, got "
                f"{rows.shape[-1]}; start the search with x0=evaluator.x0"
            )
        return rows

    def call(self, function: Callable[..., Any], row: Tensor) -> Any:
        return function(self._tensors(row))

    def restored(self, solution: Any, device: Any) -> Any:
        if isinstance(solution, Mapping):
            tensors = {name: to_torch(solution[name], device) for name in self.start}
            return OrderedDict((name, tensor.to(self.start[name].dtype)) for name, tensor in tensors.items())
        return OrderedDict(self._tensors(to_torch(solution, device)))

    def _tensors(self, row: Tensor) -> dict[str, Tensor]:
        """Of a vector (n,), or of each of many (b, n)."""
        parts = row.split([math.prod(shape) for _, shape in self.layout], dim=-1)
        return {
            name: part.reshape((*row.shape[:-1], *shape)).to(self.start[name].dtype)
            for (name, shape), part in zip(self.layout, parts, strict=True)
        }

    @property
    def _size(self) -> int:
        return sum(math.prod(shape) for _, shape in self.layout)


@dataclass(eq=False, init=False)
class OfModule(Named):
    """The parameters of a module that require gradients; the function is given the module with them in it."""

    module: Module

    def __init__(self, module: Module) -> None:
        from torch.nn import Module

        if not isinstance(module, Module):
            raise TypeError(f"torch_evaluator: module: expected a torch.nn.Module, got {type(module).__name__}")
        searched = {name: tensor for name, tensor in module.named_parameters() if tensor.requires_grad}
        if not searched:
            raise ValueError(
                f"torch_evaluator: module: no parameter of this {type(module).__name__} requires gradients, "
                "so nothing would be searched; requires_grad_(True) says which shall be"
            )
        super().__init__(searched)
        self.module = module

    @property
    def holder(self) -> dict[str, Any]:
        return {"module": self.module}

    @property
    def searched(self) -> list[Any]:
        return [self.module.get_parameter(name) for name in self.start]

    def call(self, function: Callable[..., Any], row: Tensor) -> Any:
        """Torch lends parameters to calls of modules only, so the function becomes one."""
        from torch.func import functional_call
        from torch.nn import Module

        holder = Module()
        holder.module = self.module
        holder.forward = lambda: function(self.module)
        lent = {f"module.{name}": tensor for name, tensor in self._tensors(row).items()}
        with LENDING:
            return functional_call(holder, lent, ())

    def restored(self, solution: Any, device: Any) -> Any:
        """Tensors that are tied have several names; all of them get the new value."""
        found: OrderedDict[str, Tensor] = super().restored(solution, device)
        first: dict[int, str] = {}
        for name, tensor in self.module.named_parameters(remove_duplicate=False):
            first.setdefault(id(tensor), name)
            if first[id(tensor)] in found:
                found[name] = found[first[id(tensor)]]
        return OrderedDict(self.module.state_dict()) | found
