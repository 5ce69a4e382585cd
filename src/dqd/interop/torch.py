"""`torch_evaluator`: a function written in PyTorch, accepted wherever a score is.

Solutions without gradients are one batched forward. Points with gradients are one forward and 1 + k pull-backs: every
row depends on its own solution alone, so the gradient of a column's sum holds the gradients of all rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dqd.console import saying
from dqd.inputs.fields import nested
from dqd.interop import torch_modes as modes
from dqd.interop.torch_arrays import on_one_gpu, to_torch
from dqd.interop.torch_solutions import Named, OfModule, Vector

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Told: TypeAlias = "dict[str, Tensor]"  # of a batch, by the names of an `Evaluation`; fields begin with `field_`


def torch_evaluator(
    function: Callable[..., Any],
    *,
    batched: bool = False,
    parameters: Mapping[str, Tensor] | None = None,
    module: Module | None = None,
    chunk: int | None = None,
    device: Any = None,
) -> TorchEvaluator:
    """A function in PyTorch that returns (objective, measures), accepted wherever a score is; gradients are torch's.

    Args:
        function: by default of one solution, a tensor (n,) -> objective () and measures (k,), which `torch.func.vmap`
            makes one of a batch. What vmap cannot do is done solution by solution, with a warning. A third value, a
            boolean, says whether the solution is feasible; a dictionary at the end has the numbers that
            `illuminate(fields=...)` keeps.
        batched: the function takes a whole batch: (b, n) -> (b,) and (b, k). Rows must not depend on each other.
        parameters: named tensors such as {"angles": ..., "lengths": ...}, where the search starts: the function is
            given such a dictionary instead of a vector.
        module: the function is given this module with a solution's parameters in it, and may use it in any way.
            Searched are the parameters that require gradients, from their present values; the others stay.
        chunk: solutions per forward, all of a batch unless told: fewer take less memory.
        device: where solutions are put; by default where the module lies, or the modules and tensors that the function
            uses.

    >>> import torch
    >>> sphere = torch_evaluator(lambda x: (-(x**2).sum(), x[:2]))
    >>> objective, measures, jacobian = sphere.evaluate_with_jacobian(torch.ones(4, 3))
    >>> objective.tolist(), jacobian[0].tolist()
    ([-3.0, -3.0, -3.0, -3.0], [[-2.0, -2.0, -2.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    """
    modes.check_torch()
    if not callable(function):
        raise TypeError(f"torch_evaluator: function: expected one of a solution, got {type(function).__name__}")
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int | np.integer) or chunk < 1):
        raise ValueError(f"torch_evaluator: chunk: expected a whole number of solutions, at least 1, got {chunk!r}")
    if module is not None and (parameters is not None or batched):
        given = "parameters as well" if parameters is not None else "batched=True"
        raise ValueError(f"torch_evaluator: a module holds the parameters of one solution; got {given}")
    solution = Vector() if parameters is None else Named(parameters)
    return TorchEvaluator(function, batched, solution if module is None else OfModule(module), chunk, device)


@dataclass(eq=False, init=False)
class TorchEvaluator:
    """A function in PyTorch as an evaluator; see `torch_evaluator`. It takes arrays of any kind and returns tensors."""

    function: Callable[..., Any]
    batched: bool
    solution: Vector | Named
    chunk: int | None
    weights: str  # a digest of what the function uses: with another model a run is another run

    def __init__(
        self,
        function: Callable[..., Any],
        batched: bool,
        solution: Vector | Named,
        chunk: int | None,
        device: Any,
    ) -> None:
        used = modes.used_by(function) | solution.holder
        self.function, self.batched, self.solution, self.chunk = function, batched, solution, chunk
        self.weights = modes.digest(used, solution.searched)
        self.device, self.dtype = modes.place(used | solution.start, device)
        self._layers = modes.layers_with_modes(used)
        self._one_by_one, self._randomness = False, "error"  # what was learned of the function
        self._attached, self._copies = False, 0

    # What a solution is -----------------------------------------------------------------------------------------------

    @property
    def x0(self) -> OrderedDict[str, Tensor]:
        """Where a search of named parameters starts: their present values, in their order."""
        return self.solution.start

    def start(self, x0: Any = None) -> OrderedDict[str, Tensor] | Any:
        """`x0` as the function understands it: named parameters in their own order, by default their present values."""
        return self.solution.starting(x0)

    def unflatten(self, solution: Any) -> Tensor | OrderedDict[str, Tensor]:
        """A solution, flat or by name, as tensors: for a module all that its `load_state_dict` takes."""
        return self.solution.restored(solution, self.device)

    def shares(self, solutions: Any) -> bool:
        """Whether these lie on the very GPU where they are evaluated."""
        import torch

        return on_one_gpu(torch.empty(0, device=self.device), solutions)

    # Evaluating -------------------------------------------------------------------------------------------------------

    def evaluate(self, solutions: Any) -> tuple[Tensor, ...] | SimpleNamespace:
        """Objective (b,) and measures (b, k) of solutions (b, n), computed without gradients.

        As an object with these attributes, where the function says what is feasible or has fields.
        """
        import torch

        with torch.inference_mode(False), torch.no_grad():
            return _told(self._joined(self._scores, solutions), "objective", "measures")

    def evaluate_with_jacobian(self, solutions: Any) -> tuple[Tensor, ...] | SimpleNamespace:
        """The same, and the jacobian (b, 1 + k, n)."""
        import torch

        with torch.inference_mode(False), torch.enable_grad():
            return _told(self._joined(self._pulled_back, solutions), "objective", "measures", "jacobian")

    def _joined(self, evaluate: Callable[[Tensor], Told], solutions: Any) -> Told:
        """Chunk by chunk."""
        import torch

        modes.check_layers(self._layers)
        rows = self.solution.cast(to_torch(solutions, self.device), self.dtype)
        rows = rows.clone() if rows.is_inference() else rows  # those can neither be watched nor differentiated
        if not len(rows):
            shapes = {"objective": (0,), "measures": (0, 0), "jacobian": (0, 0, rows.shape[-1])}
            return {name: rows.new_zeros(shape) for name, shape in shapes.items()}
        most = min(len(rows), self.chunk or len(rows))
        try:
            if most == len(rows):
                return evaluate(rows)
            parts = [evaluate(part) for part in rows.split(most)]
        except Exception as error:
            modes.explain(error, most, modes.GIVEN[self.batched], "chunk")
            raise
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _scores(self, rows: Tensor) -> Told:
        version = rows._version
        told = self._one(rows) if self.batched else self._mapped(rows)
        modes.check_shapes(told, len(rows), self.batched)
        if rows._version != version:
            raise modes.overwriting()
        return told

    def _pulled_back(self, rows: Tensor) -> Told:
        import torch

        if self._copies:
            return self._pulled_back_at_once(rows)
        leaf = rows.detach().requires_grad_()
        if not self._attached:
            one = self._one(leaf[:1] if self.batched else leaf[0])
            modes.check_attached(one["objective"], one["measures"], leaf)
            self._attached = True
        told = self._scores(leaf)
        columns = [told["objective"], *told["measures"].unbind(1)]
        try:
            gradients = [torch.autograd.grad(column.sum(), leaf, retain_graph=True)[0] for column in columns]
        except RuntimeError as error:
            if modes.DONATED not in str(error):
                raise
            self._copies = len(columns)
            return self._pulled_back_at_once(rows)
        return {name: part.detach() for name, part in told.items()} | {"jacobian": torch.stack(gradients, dim=1)}

    def _pulled_back_at_once(self, rows: Tensor) -> Told:
        """One pull-back from 1 + k copies of each row: a compiled function can forget what a second one would need."""
        import torch

        leaf = rows.repeat(self._copies, 1).requires_grad_()
        told = self._scores(leaf)
        values = torch.column_stack([told["objective"], told["measures"]])
        values = values.reshape(self._copies, len(rows), self._copies)
        (gradient,) = torch.autograd.grad(values.diagonal(dim1=0, dim2=2).sum(), leaf)
        jacobian = gradient.reshape(self._copies, len(rows), -1).transpose(0, 1)
        return {name: part[: len(rows)].detach() for name, part in told.items()} | {"jacobian": jacobian}

    def _mapped(self, rows: Tensor) -> Told:
        """A function of one solution, for all rows."""
        import torch

        if self._one_by_one:
            return self._looped(rows)
        try:
            return torch.func.vmap(self._one, randomness=self._randomness)(rows)
        except (modes.MisuseError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if "randomness" in str(error) and self._randomness == "error":
                self._randomness = "different"
                saying.warn(modes.RANDOM.format(name=modes.name_of(self.function)), stacklevel=2)
                return self._mapped(rows)
            answer = self._looped(rows)  # where this fails too, the function itself is to blame
            self._one_by_one = True
            words = str(error).splitlines() or [type(error).__name__]
            saying.warn(modes.SLOW.format(name=modes.name_of(self.function), words=words[0]), stacklevel=2)
            return answer

    def _looped(self, rows: Tensor) -> Told:
        import torch

        told = [self._one(row) for row in rows.unbind()]
        return {name: torch.stack([each[name] for each in told]) for name in told[0]}

    def _one(self, row: Tensor) -> Told:
        return modes.named_tensors(self.solution.call(self.function, row))


def _told(parts: Told, *plain: str) -> tuple[Tensor, ...] | SimpleNamespace:
    """A plain tuple where that says all; elsewhere what has the attributes of a `dqd.Evaluation`, without its JAX."""
    if parts.keys() <= {"objective", "measures", "jacobian"}:
        return tuple(parts[name] for name in plain)
    return SimpleNamespace(**nested(parts))
