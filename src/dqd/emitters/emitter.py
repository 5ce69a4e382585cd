"""What every emitter is: a description that proposes solutions and learns from what became of them.

An iteration has two phases. In the first the emitter names points at which it wants jacobians; in the second it
proposes solutions. All random numbers of an iteration are drawn by `noise`, before it starts, from its own key.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.threshold import Threshold
from dqd.inputs.names import lacking
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, all_finite


@runtime_checkable
class Emitter(Protocol):
    """Interface: a frozen pytree without state. The search keeps the state that it makes, any pytree of arrays.

    Everything is traced, so shapes are fixed, and the state that `ask` and `tell` return has the types of `init`.
    `num_points` and `batch_size` are sizes: jacobians at most, and solutions, per iteration.
    """

    @property
    def num_points(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def initial_population(self) -> int:
        """Solutions drawn around x0 and evaluated before iteration 1."""
        ...

    def noise(self, key: Array, n: int, k: int) -> PyTree:
        """Everything random of one iteration, from its key; real numbers arrive in the precision of the search."""
        ...

    def init(self, x0: Array, k: int, bounds: Bounds) -> PyTree:
        """State before iteration 1. Proposals are held within the bounds, whether the emitter heeds them or not."""
        ...

    def points(self, state: Any, archive: Archive, noise: Any) -> Points:
        """Where jacobians are wanted: `num_points` rows, or `no_points(n, dtype)`.

        What is computed here, beyond picking elites, goes through `dqd.compiler.unfused.apart`: else the compiled loop
        and that of AskTell may round differently.
        """
        ...

    def ask(
        self, state: Any, archive: Archive, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[Any, Proposal]:
        """Solutions to evaluate, given what was found at the points."""
        ...

    def tell(self, state: Any, archive: Archive, drawn: Any, result: AddResult) -> PyTree:
        """State for the next iteration; the archive already holds what was accepted."""
        ...

    def restarts(self, state: Any) -> dict[str, Array]:
        """How often it started anew, by the name of the reason; empty for one that never does."""
        ...


def check_emitter(name: str, thing: Any) -> None:
    """Raise TypeError unless the thing is an emitter."""
    if isinstance(thing, type) or not isinstance(thing, Emitter):
        call = f"; call it: {thing.__name__}(...)" if callable(thing) and hasattr(thing, "__name__") else ""
        raise TypeError(
            f"{name}: expected an emitter such as dqd.cma_mega(sigma=1.0), got {type(thing).__name__}"
            f"{call or lacking(thing, Emitter)}"
        )
    if any(leaf is thing for leaf in jax.tree.leaves(thing)):
        raise TypeError(f"{name}: the class {type(thing).__name__} needs the decorator @dqd.types.pytree")


def asks_blindly(emitter: Emitter) -> bool:
    """Whether its `ask` never looks at the archive, as it says (`asks_blindly`): by default it may.

    Then the points of an iteration and its solutions can be judged as one batch.
    """
    return bool(emitter.num_points and getattr(emitter, "asks_blindly", False))


def threshold_of(emitter: Emitter, given: Threshold | None) -> Threshold:
    """What counts as progress: as the user says, else as the emitter does (`threshold`, CMA-MAE), else MAP-Elites."""
    threshold = getattr(emitter, "threshold", None) if given is None else given
    if not isinstance(threshold, Threshold | None):
        raise TypeError(f"threshold: expected a dqd.Threshold, got {type(threshold).__name__}")
    return Threshold() if threshold is None else threshold


def no_points(n: int, dtype: jnp.dtype) -> Points:
    return Points(jnp.zeros((0, n), dtype), jnp.zeros(0, bool))


def usable(points: Points, evaluation: Evaluation) -> Array:
    """Points that were wanted and whose jacobian is finite, (p,)."""
    assert evaluation.jacobian is not None
    return points.mask & jnp.all(all_finite(evaluation.jacobian), axis=1)


def normalized(jacobian: Array) -> Array:
    """Every row divided by its length; a zero gradient stays zero."""
    return jacobian / (jnp.sqrt(jnp.sum(jacobian * jacobian, axis=-1, keepdims=True)) + 1e-8)
