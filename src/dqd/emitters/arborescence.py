"""CMA-MEGA: a gradient arborescence (Fontaine & Nikolaidis 2021).

From one point theta with jacobian J, CMA-ES draws coefficients c_i and the branches are theta + c_i J. The branches
that improve the archive most teach CMA-ES which coefficients pay, and their weighted mean is the direction in which an
optax optimiser moves theta. When no branch changes the archive, theta restarts from a random elite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dqd.archives.archive import REJECTED, Archive
from dqd.emitters.emitter import no_restarts, normalized, usable
from dqd.emitters.evolution import NO_CHANGE, count_restart
from dqd.emitters.rank import improvement_ranks
from dqd.strategies.cma_es import CMAES, CMAESState
from dqd.types import AddResult, Evaluation, Points, Proposal, matmul, pytree, replace, select, static

NOT_FINITE = 5  # restart reason: the jacobian at theta


@pytree
class ArborescenceState:
    theta: Array  # (n,)
    strategy: CMAESState  # in coefficient space, dimension 1 + k
    optimizer: Any
    x0: Array
    restarts: Array


@pytree
class Arborescence:
    """`optimizer` is a factory such as `optax.adam`, `arguments` what it is called with: numbers, so they are traced.

    `keep_step_count` leaves the optimiser's step counter running across restarts, as the authors' Adam does.
    """

    strategy: CMAES
    arguments: dict[str, Any]
    optimizer: Callable[..., optax.GradientTransformation] = static(default=optax.sgd)
    keep_step_count: bool = static(default=True)
    normalize: bool = static(default=True)
    initial_population: int = static(default=0)
    num_points = 1

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        return {"normal": jax.random.normal(normal, (self.batch_size, 1 + k)), "elite": jax.random.uniform(elite)}

    def init(self, x0: Array, k: int) -> ArborescenceState:
        coefficients = jnp.zeros(1 + k, x0.dtype)
        optimizer = self.optimizer(**self.arguments).init(x0)
        return ArborescenceState(x0, self.strategy.init(coefficients), optimizer, x0, no_restarts())

    def points(self, state: ArborescenceState, archive: Archive, noise: dict[str, Array]) -> Points:
        return Points(state.theta[None], jnp.ones(1, bool))

    def ask(
        self,
        state: ArborescenceState,
        archive: Archive,
        points: Points,
        evaluation: Evaluation,
        noise: dict[str, Array],
    ) -> tuple[ArborescenceState, Proposal]:
        assert evaluation.jacobian is not None
        finite = usable(points, evaluation)[0]
        jacobian = jnp.where(finite, evaluation.jacobian[0], 0)
        jacobian = normalized(jacobian) if self.normalize else jacobian  # (1 + k, n)
        # Without a jacobian the branches would repeat whatever is wrong at theta: they repeat an elite instead.
        theta = jnp.where(finite, points.solutions[0], self._elite(archive, noise["elite"], state.x0))
        strategy, coefficients = self.strategy.ask(state.strategy, noise["normal"])
        branches = theta + matmul(coefficients, jacobian)
        drawn = {"coefficients": coefficients, "jacobian": jacobian, "finite": finite, "elite": noise["elite"]}
        return replace(state, theta=theta, strategy=strategy), Proposal(branches, drawn)

    def tell(
        self, state: ArborescenceState, archive: Archive, drawn: dict[str, Array], result: AddResult
    ) -> ArborescenceState:
        ranks = improvement_ranks(result, archive)
        strategy = self.strategy.tell(state.strategy, drawn["coefficients"], ranks, self.batch_size // 2)
        # The weighted mean of the branches is theta + mean(c) J: recombined among coefficients, not solutions.
        direction = matmul(strategy.mean, drawn["jacobian"])
        steps = self.optimizer(**self.arguments)
        update, optimizer = steps.update(-direction, state.optimizer, state.theta)  # optax descends, we ascend

        reason = self.strategy.stop(strategy, ranks, result.value)
        changed = jnp.any(result.status != REJECTED)
        reason = jnp.where((reason == 0) & ~changed, NO_CHANGE, reason)
        reason = jnp.where(drawn["finite"], reason, NOT_FINITE)
        restart = reason > 0
        return replace(
            state,
            theta=jnp.where(restart, self._elite(archive, drawn["elite"], state.x0), state.theta + update),
            strategy=self.strategy.reset(strategy, restart, jnp.zeros_like(strategy.mean)),
            optimizer=select(restart, self._fresh(optimizer, state.theta), optimizer),
            restarts=count_restart(state.restarts, reason),
        )

    def _elite(self, archive: Archive, uniform: Array, x0: Array) -> Array:
        return archive.pick(uniform[None], x0)[0]

    def _fresh(self, old: Any, theta: Array) -> Any:
        """The optimiser's initial state, with its step counter kept if so set."""
        fresh = self.optimizer(**self.arguments).init(theta)
        if not self.keep_step_count:
            return fresh
        return jax.tree_util.tree_map_with_path(
            lambda path, old, new: old if getattr(path[-1], "name", None) == "count" else new, old, fresh
        )

    def restarts(self, state: ArborescenceState) -> Array:
        return state.restarts
