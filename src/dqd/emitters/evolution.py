"""CMA-ME's improvement emitter (Fontaine et al. 2020), and CMA-MAE's (Fontaine & Nikolaidis 2023).

A strategy samples solutions, learns from those that are selected (`selection`), and starts anew from a random elite
(`restarts`). CMA-MAE learns from the better half, goes on until it has converged, and has the archive anneal its
acceptance thresholds: the ranking follows from these (`rank`).
"""

from __future__ import annotations

from typing import Any

import jax
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.threshold import Threshold
from dqd.compiler.random import normals
from dqd.emitters.emitter import no_points
from dqd.emitters.rank import improvement_ranks
from dqd.emitters.restarts import Restart, Restarts
from dqd.emitters.scale import Choose, chosen
from dqd.emitters.selection import Selection, num_parents
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
    threshold: Threshold | None = None  # that it wants the archive to have
    selection: Selection = static(default="filter")
    restart: Restart = static(default="no_improvement")
    initial_population: int = static(default=0)
    num_points = 0

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        return {"normal": normals(normal, (self.batch_size, n)), "elite": jax.random.uniform(elite)}

    def init(self, x0: Array, k: int, bounds: Bounds) -> EvolutionState:
        return EvolutionState(self.strategy.init(x0), x0, Restarts.none(*self.strategy.reasons, rule=self.restart))

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
        parents = num_parents(self.selection, result)
        strategy = self.strategy.tell(state.strategy, drawn["samples"], ranks, parents)
        restart, restarts = state.restarts.after(self.strategy.stop(strategy, ranks, result.value), result)
        elite = archive.pick(drawn["elite"][None], state.x0)[0]
        return replace(state, strategy=self.strategy.reset(strategy, restart, elite), restarts=restarts)

    def scaled(self, choose: Choose) -> Evolution:
        return replace(self, strategy=chosen(self.strategy, "sigma", "solutions", choose))

    def restarts(self, state: EvolutionState) -> dict[str, Array]:
        return state.restarts.by_name()
