"""What every evolution strategy is: a distribution that is sampled, told by ranks, and started anew."""

from __future__ import annotations

from typing import Any, Protocol

from jax import Array

from dqd.types import PyTree


class Strategy(Protocol):
    """Interface: a frozen pytree without state. Emitters keep the state it makes, a pytree that holds `mean` (d,).

    Everything is traced, so shapes are fixed and decisions are made with `jnp.where`. Random numbers come from outside.
    """

    @property
    def population(self) -> int:
        """Samples per generation, lambda."""
        ...

    @property
    def reasons(self) -> tuple[str, ...]:
        """The names of its stop tests."""
        ...

    def init(self, mean: Array) -> PyTree:
        """State before the first generation, around `mean` (d,)."""
        ...

    def ask(self, state: Any, normals: Array) -> tuple[Any, Array]:
        """Samples (lambda, d) made of standard normals (lambda, d); the state may change, as by a decomposition."""
        ...

    def tell(self, state: Any, points: Array, ranks: Array, parents: Array | int) -> PyTree:
        """Learn from points (lambda, d) by their ranks (0 is best), using the first `parents`; from 0 nothing."""
        ...

    def stop(self, state: Any, ranks: Array, value: Array) -> Array:
        """Which of the stop tests fire after a generation with these values (lambda,): booleans in order of reasons."""
        ...

    def reset(self, state: Any, when: Array, mean: Array) -> PyTree:
        """Start afresh from `mean` where the scalar `when` holds."""
        ...
