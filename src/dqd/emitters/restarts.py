"""Why emitters start anew, by name."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree, static

NO_CHANGE = "no change in the archive"
NOT_FINITE = "jacobian not finite"


@pytree
class Restarts:
    """How often an emitter started anew, by reason."""

    counts: Array  # (reasons,)
    reasons: tuple[str, ...] = static()

    @staticmethod
    def none(*reasons: str) -> Restarts:
        return Restarts(jnp.zeros(len(reasons), jnp.int32), reasons)

    def after(self, tests: Array) -> tuple[Array, Restarts]:
        """Whether any of the tests (reasons,) says stop, and the counts then: the first one that does is the reason."""
        first = tests & (jnp.cumsum(tests) == 1)
        return jnp.any(tests), Restarts(self.counts + first, self.reasons)

    def by_name(self) -> dict[str, Array]:
        return {reason: self.counts[i] for i, reason in enumerate(self.reasons)}
