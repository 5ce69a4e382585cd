"""CMA-ME's improvement emitter (Fontaine et al. 2020) with filter selection: the parents are exactly the samples that
changed the archive, so their number varies from 0 to all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import REJECTED, Archive
from dqd.emitters.emitter import no_points, no_restarts
from dqd.emitters.rank import improvement_ranks
from dqd.strategies.cma_es import CMAES, CMAESState
from dqd.types import AddResult, Evaluation, Points, Proposal, pytree, replace, static

NO_CHANGE = 4  # after the strategy's own reasons 1-3


@pytree
class EvolutionState:
    strategy: CMAESState
    x0: Array
    restarts: Array


@pytree
class Evolution:
    """CMA-ES in solution space, restarted from a random elite."""

    strategy: CMAES
    initial_population: int = static(default=0)
    num_points = 0

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        return {"normal": jax.random.normal(normal, (self.batch_size, n)), "elite": jax.random.uniform(elite)}

    def init(self, x0: Array, k: int) -> EvolutionState:
        return EvolutionState(self.strategy.init(x0), x0, no_restarts())

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
        reason = self.strategy.stop(strategy, ranks, result.value)
        reason = jnp.where((reason == 0) & (parents == 0), NO_CHANGE, reason)
        elite = archive.pick(drawn["elite"][None], state.x0)[0]
        return replace(
            state,
            strategy=self.strategy.reset(strategy, reason > 0, elite),
            restarts=count_restart(state.restarts, reason),
        )

    def restarts(self, state: EvolutionState) -> Array:
        return state.restarts


def count_restart(restarts: Array, reason: Array) -> Array:
    """Reasons count from 1; 0 is no restart."""
    return restarts + (jnp.arange(1, restarts.size + 1) == reason)
