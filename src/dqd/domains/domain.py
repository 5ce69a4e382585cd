"""A domain is a problem: write `score(x)` for one solution, batches and jacobians follow.

`score` returns the *raw* objective, and the algorithms use its gradient. What the archive stores may be an affine
`transform` of it, such as the 0..100 scale of the paper's tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.inputs.evaluator import Evaluator
from dqd.types import Evaluation


class Domain:
    """Base of every domain written in JAX. Subclasses are frozen pytrees that define `score`.

    Batches and jacobians follow from it: an evaluation costs one forward pass, one with its jacobian also 1 + k
    backward passes. `transform` may put the objective on another scale for the archive; gradients are of the raw one.

    >>> @dqd.types.pytree
    ... class Bowl(dqd.Domain):
    ...     centre: float  # data: another value compiles nothing anew
    ...     k: int = dqd.types.static(default=2)  # part of the program
    ...
    ...     def score(self, x):
    ...         return -jnp.sum((x - self.centre) ** 2), x[: self.k]
    >>> Bowl(1.0).evaluate_with_jacobian(jnp.zeros((1, 3))).jacobian.tolist()
    [[[2.0, 2.0, 2.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """

    @property
    def transform(self) -> tuple[float, float]:
        """(scale, offset): the archive stores scale * objective + offset."""
        return 1.0, 0.0

    def score(self, x: Array) -> tuple[Any, ...]:
        """Raw objective () and measures (k,) of one solution (n,).

        More may follow: a boolean (), whether it is feasible; a dictionary of the numbers that `fields=` keeps.
        """
        raise NotImplementedError

    def on_host(self) -> Evaluator:
        """What evaluates: this itself, or an evaluator in its place where JAX cannot trace all of it."""
        return self

    def evaluate(self, solutions: Array) -> Evaluation:
        """Objective and measures of a batch (b, n)."""
        objective, measures, *more = jax.vmap(self.score)(solutions)
        return Evaluation(self.store(objective), measures, None, **_told(more))

    def evaluate_with_jacobian(self, solutions: Array) -> Evaluation:
        """The same with jacobians (b, 1 + k, n): one linearisation per solution, 1 + k pull-backs."""

        def one(x: Array) -> tuple[Any, ...]:
            outputs, pull_back, more = jax.vjp(self._outputs, x, has_aux=True)
            (jacobian,) = jax.vmap(pull_back)(jnp.eye(outputs.size, dtype=outputs.dtype))
            return outputs[0], outputs[1:], jacobian, *more

        objective, measures, jacobian, *more = jax.vmap(one)(solutions)
        return Evaluation(self.store(objective), measures, jacobian, **_told(more))

    def _outputs(self, x: Array) -> tuple[Array, list[Any]]:
        objective, measures, *more = self.score(x)
        return jnp.concatenate([jnp.reshape(objective, 1), measures]), more

    def store(self, objective: Array) -> Array:
        """What the archive stores of raw objectives."""
        scale, offset = self.transform
        return scale * objective + offset


def evaluating(score: Any) -> Any:
    """Who evaluates a score: of a domain that JAX cannot trace, what stands in its place; all else as it is."""
    return score.on_host() if isinstance(score, Domain) else score


def sized(x: Array, n: int) -> Array:
    """A solution of a domain that has n numbers; another is no solution of it."""
    if x.shape != (n,):
        raise ValueError(f"a solution of this domain has n = {n:,} numbers, got an array of shape {x.shape}")
    return x


def _told(more: Sequence[Any]) -> dict[str, Any]:
    """What a score said besides, by its names in an `Evaluation`."""
    return {"fields" if isinstance(part, dict) else "feasible": part for part in more}
