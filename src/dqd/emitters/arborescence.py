"""CMA-MEGA: a gradient arborescence (Fontaine & Nikolaidis 2021).

From one point theta with jacobian J, CMA-ES draws coefficients c_i and the branches are theta + c_i J. The branches
that improve the archive most teach CMA-ES which coefficients pay, and their weighted mean is the direction in which an
optax optimiser moves theta. When no branch changes the archive, theta restarts from a random elite (`restarts`); that
of CMA-MAEGA (Fontaine & Nikolaidis 2023) goes on, in an archive that anneals its thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.threshold import Threshold
from dqd.compiler.random import normals
from dqd.emitters.emitter import normalized, usable
from dqd.emitters.rank import Ranking, drawn_direction, no_direction, rank
from dqd.emitters.restarts import NOT_FINITE, Restart, Restarts
from dqd.emitters.scale import Choose, chosen
from dqd.emitters.selection import Selection, num_parents
from dqd.strategies.strategy import Strategy
from dqd.types import (
    AddResult,
    Along,
    Bounds,
    Evaluation,
    Points,
    Proposal,
    PyTree,
    affine,
    matmul,
    pytree,
    replace,
    select,
    static,
)


@pytree
class ArborescenceState:
    theta: Array  # (n,)
    strategy: Any  # of the strategy, in coefficient space, dimension 1 + k
    optimizer: Any
    x0: Array
    restarts: Restarts
    direction: Array | None  # (k,) in measure space, that ranks; zeros until it is drawn


@pytree
class Arborescence:
    """`optimizer` is a factory such as `optax.adam`, `arguments` what it is called with: numbers, so they are traced.

    `keep_step_count` leaves the optimiser's step counter running across restarts, as the authors' Adam does.
    """

    strategy: Strategy
    arguments: dict[str, Any]
    optimizer: Callable[..., optax.GradientTransformation] = static(default=optax.sgd)
    keep_step_count: bool = static(default=True)
    normalize: bool = static(default=True)
    threshold: Threshold | None = None  # that it wants the archive to have
    selection: Selection = static(default="mu")
    restart: Restart = static(default="no_improvement")
    ranking: Ranking = static(default="improvement")
    initial_population: int = static(default=0)
    num_points = 1
    asks_blindly = True

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        direction = drawn_direction(self.ranking, key, k)
        numbers = normals(normal, (self.batch_size, 1 + k))
        return {"normal": numbers, "elite": jax.random.uniform(elite), **direction}

    def init(self, x0: Array, k: int, bounds: Bounds) -> ArborescenceState:
        coefficients = jnp.zeros(1 + k, x0.dtype)
        optimizer = self.optimizer(**self.arguments).init(x0)
        restarts = Restarts.none(NOT_FINITE, *self.strategy.reasons, rule=self.restart)
        direction = no_direction(self.ranking, k, x0.dtype)
        return ArborescenceState(x0, self.strategy.init(coefficients), optimizer, x0, restarts, direction)

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
        # Without a jacobian the branches would repeat whatever is wrong at theta: they repeat the beginning instead.
        theta = jnp.where(finite, points.solutions[0], state.x0)
        strategy, coefficients = self.strategy.ask(state.strategy, noise["normal"])
        branches = affine(theta, coefficients, jacobian)
        kept = {name: values for name, values in noise.items() if name != "normal"}
        drawn = {"coefficients": coefficients, "jacobian": jacobian, "finite": finite, **kept}
        return replace(state, theta=theta, strategy=strategy), Proposal(branches, drawn)

    def tell(
        self, state: ArborescenceState, archive: Archive, drawn: dict[str, Array], result: AddResult
    ) -> ArborescenceState:
        ranked = rank(self.ranking, result, archive, state.direction, drawn.get("direction"))
        parents = num_parents(self.selection, result)
        strategy = self.strategy.tell(state.strategy, drawn["coefficients"], ranked.ranks, parents)
        # The weighted mean of the branches is theta + mean(c) J: recombined among coefficients, not solutions.
        mean = strategy.mean if self.selection == "mu" else jnp.where(parents > 0, strategy.mean, 0)  # nobody to follow
        direction = matmul(mean, drawn["jacobian"])
        steps = self.optimizer(**self.arguments)
        update, optimizer = steps.update(-direction, state.optimizer, state.theta)  # optax descends, we ascend

        stops = self.strategy.stop(strategy, ranked.ranks, ranked.values)
        restart, restarts = state.restarts.after(jnp.stack([~drawn["finite"], *stops]), result)
        return replace(
            state,
            theta=jnp.where(restart, self._elite(archive, drawn["elite"], state.x0), state.theta + update),
            strategy=self.strategy.reset(strategy, restart, jnp.zeros_like(strategy.mean)),
            optimizer=select(restart, self._fresh(optimizer, state.theta), optimizer),
            restarts=restarts,
            direction=ranked.after(restart),
        )

    def _elite(self, archive: Archive, uniform: Array, x0: Array) -> Array:
        return archive.pick(uniform[None], x0)[0]

    def _fresh(self, old: Any, theta: Array) -> PyTree:
        """The optimiser's initial state, with its step counter kept if so set."""
        fresh = self.optimizer(**self.arguments).init(theta)
        if not self.keep_step_count:
            return fresh
        return jax.tree_util.tree_map_with_path(
            lambda path, old, new: old if getattr(path[-1], "name", None) == "count" else new, old, fresh
        )

    def scaled(self, choose: Choose) -> Arborescence:
        along: Along = "unit gradients" if self.normalize else "gradients"
        arguments = {
            name: choose("signs of gradients") if value is None else value for name, value in self.arguments.items()
        }
        return replace(self, strategy=chosen(self.strategy, "sigma", along, choose), arguments=arguments)

    def restarts(self, state: ArborescenceState) -> dict[str, Array]:
        return state.restarts.by_name()
