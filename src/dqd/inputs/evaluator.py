"""Evaluations that JAX cannot trace: of NumPy, a simulator, another library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from dqd.inputs.arrays import EXTRAS, numbers, to_numpy
from dqd.inputs.estimates import ESTIMATES, Bounds, Estimate
from dqd.inputs.fields import flat, nested
from dqd.inputs.names import known

if TYPE_CHECKING:
    from dqd.types import Evaluation


Answer: TypeAlias = "Evaluation | tuple[Any, ...]"  # objective and measures, and the jacobian where it was asked for
Each: TypeAlias = "Callable[[np.ndarray, bool], dict[str, np.ndarray]]"  # rows, and whether with jacobians


class MisuseError(TypeError):
    """The evaluator itself is wrong, whatever solution it is given."""


@runtime_checkable
class Evaluator(Protocol):
    """Interface: evaluates batches of solutions (b, n), as NumPy arrays, in arrays of its own.

    Both return an `Evaluation`, or a plain tuple: objective (b,), measures (b, k) and the jacobian (b, 1 + k, n), whose
    row 0 belongs to the objective and row 1 + j to measure j. What an `Evaluation` says besides (which solutions are
    feasible, how many evaluations they took) any object with these attributes may say. A `dqd.Domain` is one that JAX
    can trace as well. Of a function of a batch, `dqd.evaluator(f)` makes one.

    >>> class Simulator:
    ...     def evaluate(self, solutions):
    ...         return -np.sum(solutions**2, axis=1), solutions[:, :2]
    ...
    ...     def evaluate_with_jacobian(self, solutions):
    ...         rows = np.broadcast_to(np.eye(2, solutions.shape[1]), (len(solutions), 2, solutions.shape[1]))
    ...         return *self.evaluate(solutions), np.concatenate([-2 * solutions[:, None], rows], axis=1)
    >>> isinstance(Simulator(), dqd.Evaluator)
    True
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


@dataclass(frozen=True)
class Sampled:
    """An evaluator whose every answer is made of several evaluations: repetitions, and samples around a point."""

    single: Evaluator
    estimate: Estimate | None = None
    repetitions: int = 1

    def evaluate(self, solutions: Any) -> Answer:
        return self._told(solutions, jacobian=False)

    def evaluate_with_jacobian(self, solutions: Any) -> Answer:
        return self._told(solutions, jacobian=True)

    def _told(self, solutions: Any, jacobian: bool) -> Answer:
        from dqd.types import Evaluation  # loads JAX, which a worker may do without

        def once(rows: np.ndarray, jacobian: bool) -> dict[str, np.ndarray]:
            return answer(self.single, rows, jacobian)

        return Evaluation(**nested(self.answered(to_numpy(solutions), jacobian, once)))

    def answered(
        self, solutions: np.ndarray, jacobian: bool, each: Each, bounds: Bounds | None = None
    ) -> dict[str, np.ndarray]:
        """What is known of solutions (b, n), from what `each` says of all evaluations that takes, in one call."""
        estimate = self.estimate if jacobian else None
        groups = [x[None] if estimate is None else np.vstack([x, estimate.around(x, bounds)]) for x in solutions]
        shape = (len(groups), len(groups[0]) if groups else 1)
        every = np.repeat(np.concatenate([solutions[:0], *groups]), self.repetitions, axis=0)
        told = each(every, jacobian and estimate is None)
        taken = told.pop("evaluations", np.ones(len(every), np.int32)).reshape(len(groups), -1 if groups else 0)
        means = {name: self._mean(name, values) for name, values in told.items()}
        found = {name: values.reshape(*shape, *values.shape[1:]) for name, values in means.items()}
        known = {name: values[:, 0] for name, values in found.items()} | {"evaluations": taken.sum(1, np.int32)}
        if estimate is not None:
            outputs = np.concatenate([found["objective"][..., None], found["measures"]], axis=2)
            each_one = zip(solutions, groups, outputs, strict=True)
            jacobians = [estimate.jacobian(x, group[1:], output[1:]) for x, group, output in each_one]
            known["jacobian"] = np.reshape(jacobians, (len(groups), outputs.shape[2], solutions.shape[1]))
        return known

    def _mean(self, name: str, values: np.ndarray) -> np.ndarray:
        """Over repetitions. What is infeasible once is infeasible."""
        repeated = values.reshape(len(values) // self.repetitions, self.repetitions, *values.shape[1:])
        mean: Any = repeated.all(axis=1) if name == "feasible" else repeated.mean(axis=1, dtype=np.float64)
        return mean


@dataclass(frozen=True)
class Whole:
    """A `Sampled` evaluator in one piece: whoever is given a solution makes all evaluations that it takes."""

    sampled: Sampled
    bounds: Bounds | None

    def evaluate(self, solutions: Any) -> Answer:
        return self._told(solutions, jacobian=False)

    def evaluate_with_jacobian(self, solutions: Any) -> Answer:
        return self._told(solutions, jacobian=True)

    def _told(self, solutions: Any, jacobian: bool) -> Answer:
        def once(rows: np.ndarray, jacobian: bool) -> dict[str, np.ndarray]:
            return answer(self.sampled.single, rows, jacobian)

        told = SimpleNamespace(**nested(self.sampled.answered(solutions, jacobian, once, self.bounds)))
        return cast("Evaluation", told)  # without JAX, which workers do not load


def evaluator(
    function: Callable[[Any], Any],
    jacobian: Callable[[Any], Any] | Estimate | Literal["fd", "es"] | None = None,
    *,
    repetitions: int = 1,
) -> BatchFunction | Sampled:
    """A function of a whole batch, accepted wherever a score is. It may use NumPy or a simulator.

    For PyTorch there is `dqd.torch_evaluator`, which finds gradients by itself.

    Args:
        function: solutions (b, n) -> objective (b,) and measures (b, k). Without `jacobian`, and for an algorithm with
            gradients, it returns the jacobian (b, 1 + k, n) as well: row 0 of the objective, row 1 + j of measure j.
            What returns `dqd.Evaluation(objective, measures, feasible=...)` keeps solutions out of the archive. A
            dictionary of arrays (b, ...) at the end has the numbers that `illuminate(fields=...)` keeps.
        jacobian: solutions (p, n) -> objective, measures and jacobian; called for the few points per iteration at which
            an algorithm wants gradients, so that all other solutions cost a plain evaluation only. Or how to estimate
            it from plain evaluations, which are counted: "fd" is `dqd.FiniteDifferences()`, "es" is
            `dqd.EvolutionStrategies()`.
        repetitions: of every evaluation, whose mean counts; for a function that is noisy.

    >>> import numpy as np
    >>> sphere = evaluator(lambda x: (-(x**2).sum(axis=1), x[:, :2]))
    >>> objective, measures = sphere.evaluate(np.ones((4, 3)))
    >>> objective.tolist(), measures.shape
    ([-3.0, -3.0, -3.0, -3.0], (4, 2))
    """
    if isinstance(jacobian, str):
        jacobian = cast("Any", known("jacobian", jacobian, ESTIMATES))
    if not callable(function):
        raise TypeError(f"evaluator: function: expected a function of a batch (b, n), got {type(function).__name__}")
    usable = jacobian is None or callable(jacobian) or isinstance(jacobian, Estimate)
    if not usable or isinstance(jacobian, type):
        raise TypeError(
            'evaluator: jacobian: expected a function of a batch (b, n), "fd", "es", or an estimate such as '
            f"dqd.EvolutionStrategies(samples=40), got {jacobian!r}"
        )
    check_repetitions("evaluator", repetitions)
    estimate = jacobian if isinstance(jacobian, Estimate) else None
    single = BatchFunction(function, None if estimate is not None else cast("Callable[[Any], Any] | None", jacobian))
    return single if estimate is None and repetitions == 1 else Sampled(single, estimate, int(repetitions))


def check_repetitions(call: str, repetitions: Any) -> None:
    if isinstance(repetitions, bool) or not isinstance(repetitions, int | np.integer) or repetitions < 1:
        raise ValueError(f"{call}: repetitions: expected a whole number, at least 1, got {repetitions!r}")


# What an evaluator said -----------------------------------------------------------------------------------------------


def answer(evaluator: Evaluator, solutions: Any, jacobian: bool) -> dict[str, np.ndarray]:
    """What an evaluator says of a batch, under the names of an `Evaluation`; what it leaves open is not there."""
    told = (evaluator.evaluate_with_jacobian if jacobian else evaluator.evaluate)(solutions)
    wanted = ("objective", "measures", "jacobian") if jacobian else ("objective", "measures")
    if isinstance(told, tuple | list) and len(told) >= 2:
        *plain, last = told
        fields, plain = (last, plain) if isinstance(last, Mapping) else ({}, list(told))
        parts = flat({**dict(zip(wanted, plain, strict=False)), "fields": fields})
    elif hasattr(told, "objective") and hasattr(told, "measures"):
        parts = flat({name: getattr(told, name, None) for name in (*wanted, *EXTRAS, "fields")})
    else:
        raise MisuseError(f"evaluator: expected it to return objective and measures, got {type(told).__name__}")
    if jacobian and "jacobian" not in parts:
        raise MisuseError(
            "evaluator: this algorithm uses gradients; expected objective, measures and jacobian, got two things. "
            "Return all three, or give a function that does: dqd.evaluator(f, jacobian=g); "
            'jacobian="es" and jacobian="fd" estimate it'
        )
    return {name: _numbers(name, part) for name, part in parts.items()}


def _numbers(name: str, part: Any) -> np.ndarray:
    """Looked at before they travel: not all objects can."""
    try:
        return numbers("evaluator", name, part)
    except TypeError as error:
        raise MisuseError(str(error)) from error
