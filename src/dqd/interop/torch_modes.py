"""What a function in PyTorch may do wrong, and the words that help out of it."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dqd.inputs.evaluator import MisuseError
from dqd.inputs.fields import flat

if TYPE_CHECKING:
    from torch import Tensor

SAMPLE = 4096  # numbers of a tensor that its digest looks at
SLOW = (
    "torch_evaluator: torch.func.vmap cannot map {name} over a batch ({words}); solutions are evaluated one by one, "
    "which is slower. Write it for a whole batch (batched=True), or without in-place operations, .item() and `if`"
)
RANDOM = (
    "torch_evaluator: {name} draws random numbers, so the same solution is worth something else each time. If that is "
    "dropout that was left on, put the model into eval(), or give F.dropout training=False"
)
DETACHED = (
    "torch_evaluator: {part} cannot be differentiated: it is not tied to the solution. Look for .detach(), .item(), "
    ".data, torch.tensor(...), torch.no_grad(), NumPy, argmax or a comparison on its way. If its gradient is zero, say "
    "so with + 0 * x.sum(); algorithms without gradients take it as it is"
)
OVERWRITING = (
    "torch_evaluator: the function overwrites the solutions it is given; use operations that return new tensors (clamp "
    "instead of clamp_, x = x + 1 instead of x += 1), or begin with x = x.clone()"
)
DRAWING = (
    "{part}: it draws random numbers, so the same row is worth something else each time, and elites are the luckiest; "
    "give it noise that is fixed"
)
GIVEN = {  # batched or not: for those who wonder why their function fails
    False: "the function was given one solution; torch_evaluator(function, batched=True) gives it whole batches",
    True: "the function was given a whole batch; torch_evaluator(function) gives it one solution at a time",
}
RETURNED = {  # dimensions for a batch, and what it is for one solution
    "objective": (1, "one number, shape ()"),
    "measures": (2, "a vector of shape (k,)"),
    "feasible": (1, "one boolean, shape ()"),
}
DONATED = "donated buffers"  # so torch calls what a compiled function lets go of
SIGNS = {  # in the words of torch -> in ours
    "Can't call numpy() on Tensor that requires grad": DETACHED.format(part="what goes through NumPy"),
    "does not require grad": DETACHED.format(part="what was returned"),
    "not have been used in the graph": DETACHED.format(part="something that was returned"),
    "leaf Variable that requires grad is being used in an in-place operation": OVERWRITING,
    "Expected all tensors to be on the same device": (
        "torch_evaluator: the solutions are on another device than something that the function uses; "
        "say where they belong, torch_evaluator(function, device=...)"
    ),
}


def check_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError("torch_evaluator needs PyTorch: pip install 'dqd[torch]'") from error


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def overwriting() -> MisuseError:
    return MisuseError(OVERWRITING)


def explain(error: Exception, rows: int, note: str, fewer: str) -> None:
    """Raise what torch says in words that tell what to do; what the function itself says gets a note.

    `fewer` names the setting of how many go through at once.
    """
    import torch

    if isinstance(error, torch.cuda.OutOfMemoryError):
        raise MemoryError(
            f"torch ran out of memory with {rows} solutions in one forward; let it have fewer, such as "
            f"{fewer}={max(1, rows // 2)}, or let JAX take less: XLA_PYTHON_CLIENT_PREALLOCATE=false"
        ) from error
    for sign, words in SIGNS.items():
        if isinstance(error, RuntimeError) and sign in str(error):
            raise MisuseError(words) from error
    if not isinstance(error, MisuseError):
        error.add_note(note)


# What the function uses -----------------------------------------------------------------------------------------------


def used_by(function: Callable[..., Any]) -> dict[str, Any]:
    """The modules and tensors that a function is seen to use: itself, its object's, its closure's and its globals."""
    if isinstance(function, functools.partial):
        bound = dict(enumerate(function.args)) | function.keywords
        return used_by(function.func) | _of_torch({f"argument {name}": value for name, value in bound.items()})
    owner = getattr(function, "__self__", function)
    found = _of_torch({type(owner).__name__: owner} | getattr(owner, "__dict__", {}))
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if inspect.isfunction(plain):
        names = inspect.getclosurevars(plain)
        found |= _of_torch({**names.globals, **names.nonlocals})
    return found


def _of_torch(values: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    return {name: value for name, value in values.items() if isinstance(value, torch.nn.Module | torch.Tensor)}


def place(used: Mapping[str, Any], device: Any) -> tuple[Any, Any]:
    """Where solutions belong, and in which precision (None: in their own): those of what is used."""
    import torch

    modules = [tensor for thing in used.values() if isinstance(thing, torch.nn.Module) for tensor in thing.parameters()]
    tensors = [*modules, *(thing for thing in used.values() if isinstance(thing, torch.Tensor))]
    found = tensors[0].device if tensors else torch.get_default_device()
    dtype = next((tensor.dtype for tensor in modules if tensor.is_floating_point()), None)
    return found if device is None else torch.device(device), dtype


def digest(used: Mapping[str, Any], searched: Sequence[Any]) -> str:
    """Of all weights that are not searched: a resumed run with another model is noticed. Large ones are sampled."""
    import torch

    whole, left_out = hashlib.sha256(), {id(tensor) for tensor in searched}
    for name, thing in sorted(used.items()):
        module = isinstance(thing, torch.nn.Module)
        tensors = [*thing.named_parameters(), *thing.named_buffers()] if module else [("", thing)]
        for part, tensor in tensors:
            if id(tensor) not in left_out:
                few = tensor.detach().reshape(-1)[:: max(1, tensor.numel() // SAMPLE)]
                whole.update(f"{name}.{part} {tuple(tensor.shape)} {few.double().cpu().tolist()}".encode())
    return whole.hexdigest()[:16]


def check_finite(used: Mapping[str, Any], chosen: str) -> None:
    """Raise ValueError naming a weight that is NaN or infinite: of it every answer would be made."""
    import torch

    for thing in used.values():
        for name, weight in thing.named_parameters() if isinstance(thing, torch.nn.Module) else ():
            if not torch.isfinite(weight).all():
                raise ValueError(f"{chosen}: NaN or infinity in {name}; the training diverged, or the file is damaged")


def dice(device: Any) -> Tensor:
    """The state of the random numbers that a function on this device would draw from."""
    import torch

    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.random.get_rng_state()


# Train mode -----------------------------------------------------------------------------------------------------------


def layers_with_modes(used: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Layers that answer otherwise while a model is trained: module, layer's name, layer."""
    import torch

    modules = {name: thing for name, thing in used.items() if isinstance(thing, torch.nn.Module)}
    return [
        (name, path or type(layer).__name__, layer)
        for name, module in modules.items()
        for path, layer in module.named_modules()
        if _has_modes(layer)
    ]


def _has_modes(layer: Any) -> bool:
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.dropout import _DropoutNd

    dropout = layer.p if isinstance(layer, _DropoutNd) else vars(layer).get("dropout", 0)
    return isinstance(layer, _BatchNorm) or (isinstance(dropout, float) and dropout > 0)


def check_layers(layers: list[tuple[str, str, Any]]) -> None:
    for module, path, layer in layers:
        if layer.training:
            raise MisuseError(
                f"torch_evaluator: {module} is in train mode, where its {type(layer).__name__} ({path}) makes answers "
                f"depend on chance or on the other solutions of a batch; call {module}.eval() first"
            )


# What comes back ------------------------------------------------------------------------------------------------------


def named_tensors(outputs: Any) -> dict[str, Tensor]:
    """Objective and measures, which may be a list; whether the solution is feasible, and a dictionary of fields."""
    import torch

    *plain, last = outputs if isinstance(outputs, tuple | list) and outputs else (None,)
    fields = last if isinstance(last, Mapping) else {}
    plain = plain if isinstance(last, Mapping) else [*plain, last]
    if len(plain) not in (2, 3):
        got = f"{len(outputs)} things" if isinstance(outputs, tuple | list) else type(outputs).__name__
        raise MisuseError(f"torch_evaluator: a plain `return objective, measures` is expected, got {got}")
    objective, measures, *feasible = plain
    if isinstance(measures, tuple | list):
        measures = torch.stack([torch.as_tensor(measure) for measure in measures], dim=-1)
    told = {"objective": objective, "measures": measures, **dict(zip(["feasible"], feasible, strict=False))}
    return {name: torch.as_tensor(part) for name, part in flat({**told, "fields": fields}).items()}


def check_shapes(told: Mapping[str, Tensor], rows: int, batched: bool) -> None:
    for name, (ndim, one) in RETURNED.items():
        if name not in told or (told[name].ndim == ndim and len(told[name]) == rows):
            continue
        shape = tuple(told[name].shape)
        many = f"({rows}, k)" if ndim == 2 else f"({rows},)"
        expected, got = (f"{many} for {rows} solutions", shape) if batched else (f"{one}, for a solution", shape[1:])
        hint = "" if batched else "; a function of a whole batch is torch_evaluator(function, batched=True)"
        raise MisuseError(f"torch_evaluator: {name}: expected {expected}, got {got}{hint}")
    if "feasible" in told and str(told["feasible"].dtype) != "torch.bool":
        kind = told["feasible"].dtype
        raise MisuseError(f"torch_evaluator: feasible: expected booleans, such as x.sum() < 1, got {kind}")


# Gradients ------------------------------------------------------------------------------------------------------------


def check_attached(objective: Tensor, measures: Tensor, leaf: Tensor) -> None:
    """Whether all that was returned for one solution is tied to it: a zero gradient is one, a lost one a mistake."""
    parts = {"the objective": objective.grad_fn, "the measures": measures.grad_fn}
    parts |= {f"measure {j}": node for j, node in enumerate(_columns(measures))}
    for part, node in parts.items():
        if not _reaches(node, leaf):
            raise MisuseError(DETACHED.format(part=part))


def _columns(measures: Tensor) -> list[Any]:
    """The nodes of measures that were stacked from single ones; nothing if they came otherwise."""
    node = measures.grad_fn
    while node is not None and len(node.next_functions) == 1:
        node = node.next_functions[0][0]
    if node is None or not node.name().startswith(("StackBackward", "CatBackward")):
        return []
    nodes = [before for before, _ in node.next_functions]
    return nodes if len(nodes) == measures.shape[-1] else []


def _reaches(node: Any, leaf: Tensor) -> bool:
    waiting, seen = [node], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if getattr(node, "variable", None) is leaf:
            return True
        seen.add(node)
        waiting += [before for before, _ in node.next_functions]
    return False
