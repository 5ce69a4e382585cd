"""Why emitters start anew, by name."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree, replace, static

NO_CHANGE = "no change in the archive"
NOT_FINITE = "jacobian not finite"
LIFETIME = "end of its lifetime"


@pytree
class Restarts:
    """How often an emitter started anew, by reason. With a `lifetime` it does so every so many iterations at latest."""

    counts: Array  # (reasons,)
    age: Array  # () iterations since the last time
    reasons: tuple[str, ...] = static()
    lifetime: int = static(default=0)

    @staticmethod
    def none(*reasons: str, lifetime: int = 0) -> Restarts:
        named = (*reasons, LIFETIME) if lifetime else reasons
        return Restarts(jnp.zeros(len(named), jnp.int32), jnp.zeros((), jnp.int32), named, lifetime)

    def after(self, tests: Array) -> tuple[Array, Restarts]:
        """Whether any of the tests (reasons,) says stop, and the counts then: the first one that does is the reason."""
        age = self.age + 1
        tests = jnp.append(tests, age >= self.lifetime) if self.lifetime else tests
        first, stops = tests & (jnp.cumsum(tests) == 1), jnp.any(tests)
        return stops, replace(self, counts=self.counts + first, age=jnp.where(stops, 0, age))

    def by_name(self) -> dict[str, Array]:
        return {reason: self.counts[i] for i, reason in enumerate(self.reasons)}
