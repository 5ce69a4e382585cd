"""Evaluations that JAX cannot trace: of NumPy, a simulator, another library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from dqd.types import Evaluation


Answer: TypeAlias = "Evaluation | tuple[Any, ...]"  # objective and measures, and the jacobian where it was asked for


class MisuseError(TypeError):
    """The evaluator itself is wrong, whatever solution it is given."""


@runtime_checkable
class Evaluator(Protocol):
    """Interface: evaluates batches of solutions (b, n), as NumPy arrays, in arrays of its own.

    Both return an `Evaluation`, or a plain tuple: objective (b,), measures (b, k) and the jacobian (b, 1 + k, n), whose
    row 0 belongs to the objective and row 1 + j to measure j. A `dqd.Domain` is one that JAX can trace as well.
    """

    def evaluate(self, solutions: Any) -> Answer:
        """Objective and measures."""
        ...

    def evaluate_with_jacobian(self, solutions: Any) -> Answer:
        """Objective, measures and jacobian."""
        ...


@dataclass(frozen=True)
class BatchFunction:
    """A function of a batch as an evaluator; see `evaluator`."""

    function: Callable[[Any], Any]
    jacobian: Callable[[Any], Any] | None = None

    def evaluate(self, solutions: Any) -> Answer:
        return self.function(solutions)

    def evaluate_with_jacobian(self, solutions: Any) -> Answer:
        return (self.function if self.jacobian is None else self.jacobian)(solutions)


def evaluator(function: Callable[[Any], Any], jacobian: Callable[[Any], Any] | None = None) -> BatchFunction:
    """A function of a whole batch, accepted wherever a score is. It may use NumPy or a simulator.

    For PyTorch there is `dqd.torch_evaluator`, which finds gradients by itself.

    Args:
        function: solutions (b, n) -> objective (b,) and measures (b, k). Without `jacobian`, and for an algorithm with
            gradients, it returns the jacobian (b, 1 + k, n) as well: row 0 of the objective, row 1 + j of measure j.
        jacobian: solutions (p, n) -> objective, measures and jacobian; called for the few points per iteration at which
            an algorithm wants gradients, so that all other solutions cost a plain evaluation only.

    >>> import numpy as np
    >>> sphere = evaluator(lambda x: (-(x**2).sum(axis=1), x[:, :2]))
    >>> objective, measures = sphere.evaluate(np.ones((4, 3)))
    >>> objective.tolist(), measures.shape
    ([-3.0, -3.0, -3.0, -3.0], (4, 2))
    """
    for name, given in (("function", function), ("jacobian", jacobian)):
        if not callable(given) and not (name == "jacobian" and given is None):
            raise TypeError(f"evaluator: {name}: expected a function of a batch (b, n), got {type(given).__name__}")
    return BatchFunction(function, jacobian)
