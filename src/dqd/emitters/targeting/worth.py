"""Which of two ways: what both lately gained says how often the second is taken."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.types import pytree

MEMORY = 0.9


@pytree
class Worth:
    """Gains are squared, so that the better way is taken mostly; never less than `least` of the time either."""

    gains: Array  # (..., 2)

    def share(self, least: float) -> Array:
        """Of the second way, (...)."""
        gains = jnp.maximum(self.gains, 0)
        relative = (gains / jnp.maximum(jnp.max(gains, axis=-1, keepdims=True), 1e-30)) ** 2
        return jnp.clip(relative[..., 1] / jnp.maximum(jnp.sum(relative, axis=-1), 1e-30), least, 1 - least)

    def after(self, gain: Array, taken: Array) -> Worth:
        """Those that were taken gained so much; what is not finite teaches nothing."""
        newest = MEMORY * self.gains + (1 - MEMORY) * gain
        return Worth(jnp.where(taken & jnp.isfinite(newest), newest, self.gains))
