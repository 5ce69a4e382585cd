"""A function of a batch of tensors as a part of something larger: its values, and cotangents pulled back through it.

`torch_evaluator` is for a whole score. A part stands between others, which may be JAX's: arrays pass by DLPack where
both lie on one GPU, and as NumPy's elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dqd.console import saying
from dqd.inputs.evaluator import MisuseError
from dqd.interop import torch_modes as modes
from dqd.interop.torch_arrays import is_tensor, on_one_gpu, to_jax, to_torch

if TYPE_CHECKING:
    from jax import Array
    from torch import Tensor

PullBack = Callable[[Any], Any]  # what the values are weighed with -> the gradient with respect to the batch


class TorchPart:
    """A frozen function in PyTorch: a module, or anything that takes a batch (b, ...) and returns one (b, ...).

    Args:
        function: rows of a batch must not depend on each other.
        device: where it computes; by default where the modules and tensors that it uses lie.
        chosen: what it was given as, for messages.
    """

    def __init__(self, function: Callable[..., Any], device: Any = None, chosen: str = "function") -> None:
        modes.check_torch()
        if not callable(function):
            raise TypeError(f"{chosen}: expected a function of tensors or a module, got {type(function).__name__}")
        used = modes.used_by(function)
        modes.check_finite(used, chosen)
        self.function, self.chosen, self.weights = function, chosen, modes.digest(used, [])
        self.device, self.dtype = modes.place(used, device)
        self._layers, self._tried = modes.layers_with_modes(used), False

    def values(self, batch: Any) -> Tensor:
        """Without gradients."""
        import torch

        with torch.inference_mode(False), torch.no_grad():
            return self._called(self._tensor(batch))

    def linearised(self, batch: Any) -> tuple[Tensor, PullBack]:
        """The values, and how to pull back through them; as often as one likes."""
        import torch

        with torch.inference_mode(False), torch.enable_grad():
            leaf = self._tensor(batch).detach().clone().requires_grad_()
            values = self._called(leaf)
        if values.grad_fn is None:
            raise MisuseError(modes.DETACHED.format(part=f"what the {self.chosen} returns"))

        def pull_back(cotangent: Any) -> Tensor:
            weighed = to_torch(cotangent, values.device).to(values.dtype)
            return torch.autograd.grad(values, leaf, weighed, retain_graph=True)[0]

        return values.detach(), pull_back

    def _tensor(self, batch: Any) -> Tensor:
        rows = to_torch(batch, self.device)
        rows = rows.clone() if rows.is_inference() else rows
        return rows if self.dtype is None else rows.to(self.dtype)

    def _called(self, rows: Tensor) -> Tensor:
        modes.check_layers(self._layers)
        dice = None if self._tried else modes.dice(rows.device)
        try:
            values = self.function(rows)
        except Exception as error:
            note = f"the {self.chosen} was given a batch of shape {tuple(rows.shape)}"
            modes.explain(error, len(rows), note, "images")
            raise
        if not is_tensor(values):
            raise MisuseError(f"{self.chosen}: expected it to return a tensor, got {type(values).__name__}")
        if not values.ndim or len(values) != len(rows):
            raise MisuseError(f"{self.chosen}: expected {len(rows)} rows for {len(rows)}, got {tuple(values.shape)}")
        if dice is not None:
            self._try_again(rows, values, dice)
        return values

    def _try_again(self, rows: Tensor, values: Tensor, dice: Tensor) -> None:
        """Once, and only a function that has drawn random numbers; it may have fixed their seed itself."""
        import torch

        self._tried = True
        if torch.equal(dice, modes.dice(rows.device)):
            return
        with torch.no_grad():
            again = self.function(rows)
        if not torch.allclose(again, values, rtol=1e-3, atol=1e-4):
            saying.warn(modes.DRAWING.format(part=self.chosen), stacklevel=2)


def as_jax(array: Any) -> Array:
    """A tensor, or any array, as JAX's; in at least float32."""
    import jax
    import jax.numpy as jnp

    if not is_tensor(array):
        return jnp.asarray(array)
    if on_one_gpu(array, _here()):
        return to_jax(array.float(), np.float32)
    with jax.default_device(jax.devices()[0]):
        return jnp.asarray(as_numpy(array))


@functools.cache
def _here() -> Array:
    """An array where JAX computes; made once, since to make one takes as long as a program."""
    import jax.numpy as jnp

    return jnp.zeros(())


def as_numpy(array: Any) -> np.ndarray:
    """The same as NumPy's."""
    return array.detach().float().cpu().numpy() if is_tensor(array) else np.asarray(array)
