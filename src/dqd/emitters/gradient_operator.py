"""Gradient operators on elites: OG-MAP-Elites steps up the objective, OMG-MEGA branches over all gradients.

Both spend half of an iteration on points with jacobians and half on the solutions made from them.
A point whose jacobian is not finite gives its solution back unchanged.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.random import normals
from dqd.compiler.unfused import apart
from dqd.emitters.emitter import normalized, usable
from dqd.emitters.operators import Noise, Operator
from dqd.emitters.scale import Choose, chosen, scaled
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, pytree, replace, static


@pytree
class GradientOperator:
    """Points made by an operator, then moved along their gradients by a move."""

    operator: Operator
    move: ObjectiveStep | Branching
    num_points: int = static()
    initial_population: int = static(default=100)

    @property
    def batch_size(self) -> int:
        return self.num_points

    @property
    def follows_measures(self) -> bool:
        """Whether the gradients of the measures are used, or the objective's alone."""
        return isinstance(self.move, Branching)

    def noise(self, key: Array, n: int, k: int) -> dict[str, Any]:
        operator, move = jax.random.split(key)
        return {
            "operator": self.operator.noise(operator, self.num_points, n),
            "move": self.move.noise(move, self.num_points, k),
        }

    def init(self, x0: Array, k: int, bounds: Bounds) -> Array:
        return x0

    def points(self, state: Array, archive: Archive, noise: dict[str, Any]) -> Points:
        solutions = apart(archive.count >= 0, self.operator.apply, archive, noise["operator"], state)
        return Points(solutions, jnp.ones(self.num_points, bool))

    def ask(
        self, state: Array, archive: Archive, points: Points, evaluation: Evaluation, noise: dict[str, Any]
    ) -> tuple[Array, Proposal]:
        assert evaluation.jacobian is not None
        jacobian = jnp.where(usable(points, evaluation)[:, None, None], evaluation.jacobian, 0)
        return state, Proposal(points.solutions + self.move.offset(jacobian, noise["move"]), drawn=())

    def scaled(self, choose: Choose) -> GradientOperator:
        return replace(self, operator=scaled(self.operator, choose), move=scaled(self.move, choose))

    def tell(self, state: Array, archive: Archive, drawn: object, result: AddResult) -> Array:
        return state

    def restarts(self, state: Array) -> dict[str, Array]:
        return {}


@pytree
class ObjectiveStep:
    """step * grad f, with the raw gradient as it is (OG-MAP-Elites)."""

    step: float

    def noise(self, key: Array, size: int, k: int) -> Noise:
        return {}

    def offset(self, jacobian: Array, noise: Noise) -> Array:
        return self.step * jacobian[:, 0]


@pytree
class Branching:
    """|c_0| grad f + sum_j c_j grad m_j with c ~ N(0, sigma^2 I) (OMG-MEGA). sigma is a standard deviation."""

    sigma: float  # None: to be chosen
    normalize: bool = static(default=True)

    def noise(self, key: Array, size: int, k: int) -> Noise:
        return {"normal": normals(key, (size, 1 + k))}

    def offset(self, jacobian: Array, noise: Noise) -> Array:
        c = self.sigma * noise["normal"]
        c = c.at[:, 0].set(jnp.abs(c[:, 0]))
        rows = normalized(jacobian) if self.normalize else jacobian
        return jnp.sum(c[:, :, None] * rows, axis=1)

    def scaled(self, choose: Choose) -> Branching:
        return chosen(self, "sigma", "unit gradients" if self.normalize else "gradients", choose)
