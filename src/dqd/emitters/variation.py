"""The gradient-free MAP-Elites family: a variation operator and nothing to learn (Mouret & Clune 2015)."""

from __future__ import annotations

from jax import Array

from dqd.archives.archive import Archive
from dqd.emitters.emitter import no_points
from dqd.emitters.operators import Noise, Operator
from dqd.emitters.scale import Choose, scaled
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, pytree, replace, static


@pytree
class Variation:
    """Every solution is made by the operator from elites."""

    operator: Operator
    batch_size: int = static()
    initial_population: int = static(default=100)
    num_points = 0

    def noise(self, key: Array, n: int, k: int) -> Noise:
        return self.operator.noise(key, self.batch_size, n)

    def init(self, x0: Array, k: int, bounds: Bounds) -> Array:
        return x0

    def points(self, state: Array, archive: Archive, noise: Noise) -> Points:
        return no_points(state.size, state.dtype)

    def ask(
        self, state: Array, archive: Archive, points: Points, evaluation: Evaluation, noise: Noise
    ) -> tuple[Array, Proposal]:
        return state, Proposal(self.operator.apply(archive, noise, x0=state), drawn=())

    def tell(self, state: Array, archive: Archive, drawn: object, result: AddResult) -> Array:
        return state

    def scaled(self, choose: Choose) -> Variation:
        return replace(self, operator=scaled(self.operator, choose))

    def restarts(self, state: Array) -> dict[str, Array]:
        return {}
