"""A domain written in JAX, evaluated outside the compiled search: by a worker, or as a reference in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from dqd.domains.domain import Domain
from dqd.inputs.arrays import filled
from dqd.types import Evaluation

_evaluate = jax.jit(lambda domain, solutions: domain.evaluate(solutions))
_evaluate_with_jacobian = jax.jit(lambda domain, solutions: domain.evaluate_with_jacobian(solutions))


@dataclass(frozen=True)
class OnHost:
    """Always evaluates `rows` solutions, if so told: one compiled program whatever is asked."""

    domain: Domain
    rows: int | None

    def evaluate(self, solutions: Any) -> Evaluation:
        return self._padded(_evaluate, solutions)

    def evaluate_with_jacobian(self, solutions: Any) -> Evaluation:
        return self._padded(_evaluate_with_jacobian, solutions)

    def _padded(self, function: Callable[[Domain, Any], Evaluation], solutions: np.ndarray) -> Evaluation:
        full = filled(solutions, self.rows or len(solutions))
        with jax.enable_x64(solutions.dtype == np.float64):  # a worker knows nothing of the search's precision
            return jax.tree.map(lambda part: np.asarray(part)[: len(solutions)], function(self.domain, full))
