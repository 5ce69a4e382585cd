"""CMA-ME's improvement emitter (Fontaine et al. 2020) with filter selection: the parents are exactly the samples that
changed the archive, so their number varies from 0 to all."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import REJECTED, Archive
from dqd.emitters.emitter import no_points
from dqd.emitters.rank import improvement_ranks
from dqd.emitters.restarts import NO_CHANGE, Restarts
from dqd.emitters.scale import Choose, chosen
from dqd.strategies.strategy import Strategy
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, pytree, replace, static


@pytree
class EvolutionState:
    strategy: Any  # of the strategy, in solution space
    x0: Array
    restarts: Restarts


@pytree
class Evolution:
    """An evolution strategy in solution space, restarted from a random elite."""

    strategy: Strategy
    initial_population: int = static(default=0)
    num_points = 0

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        return {"normal": jax.random.normal(normal, (self.batch_size, n)), "elite": jax.random.uniform(elite)}

    def init(self, x0: Array, k: int, bounds: Bounds) -> EvolutionState:
        return EvolutionState(self.strategy.init(x0), x0, Restarts.none(*self.strategy.reasons, NO_CHANGE))

    def points(self, state: EvolutionState, archive: Archive, noise: dict[str, Array]) -> Points:
        return no_points(state.x0.size, state.x0.dtype)

    def ask(
        self,
        state: EvolutionState,
        archive: Archive,
        points: Points,
        evaluation: Evaluation,
        noise: dict[str, Array],
    ) -> tuple[EvolutionState, Proposal]:
        strategy, samples = self.strategy.ask(state.strategy, noise["normal"])
        return replace(state, strategy=strategy), Proposal(samples, {"samples": samples, "elite": noise["elite"]})

    def tell(
        self, state: EvolutionState, archive: Archive, drawn: dict[str, Array], result: AddResult
    ) -> EvolutionState:
        ranks = improvement_ranks(result, archive)
        parents = jnp.sum(result.status != REJECTED)
        strategy = self.strategy.tell(state.strategy, drawn["samples"], ranks, parents)
        tests = jnp.append(self.strategy.stop(strategy, ranks, result.value), parents == 0)
        restart, restarts = state.restarts.after(tests)
        elite = archive.pick(drawn["elite"][None], state.x0)[0]
        return replace(state, strategy=self.strategy.reset(strategy, restart, elite), restarts=restarts)

    def scaled(self, choose: Choose) -> Evolution:
        return replace(self, strategy=chosen(self.strategy, "sigma", "solutions", choose))

    def restarts(self, state: EvolutionState) -> dict[str, Array]:
        return state.restarts.by_name()
