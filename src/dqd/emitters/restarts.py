"""When emitters start anew, and why, by name."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import REJECTED
from dqd.types import AddResult, pytree, replace, static

NO_CHANGE = "no change in the archive"
NOT_FINITE = "jacobian not finite"
LIFETIME = "end of its lifetime"

# Besides when the strategy has converged: when nothing of a batch changed the archive; never; or so many iterations
# after the last time at latest.
Restart = Literal["no_improvement", "basic"] | int
RULES = {"no_improvement": (NO_CHANGE,), "basic": ()}  # and their reasons


@pytree
class Restarts:
    """How often an emitter started anew, by reason."""

    counts: Array  # (reasons,)
    age: Array  # () iterations since the last time
    reasons: tuple[str, ...] = static()
    rule: Restart = static()

    @staticmethod
    def none(*reasons: str, rule: Restart) -> Restarts:
        """With reasons of the emitter's own, for which it has tests, and that of the rule."""
        named = (*reasons, *(RULES[rule] if isinstance(rule, str) else (LIFETIME,)))
        return Restarts(jnp.zeros(len(named), jnp.int32), jnp.zeros((), jnp.int32), named, rule)

    def after(self, tests: Array, result: AddResult) -> tuple[Array, Restarts]:
        """Whether to start anew, because of the emitter's own tests or by the rule; the first that says so counts."""
        age = self.age + 1
        if self.rule == "no_improvement":
            tests = jnp.append(tests, jnp.all(result.status == REJECTED))
        elif self.rule != "basic":
            tests = jnp.append(tests, age >= self.rule)
        first, stops = tests & (jnp.cumsum(tests) == 1), jnp.any(tests)
        return stops, replace(self, counts=self.counts + first, age=jnp.where(stops, 0, age))

    def by_name(self) -> dict[str, Array]:
        return {reason: self.counts[i] for i, reason in enumerate(self.reasons)}
