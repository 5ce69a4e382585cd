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
from dqd.emitters.rank import Ranking, drawn_direction, no_direction, rank
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
    direction: Array | None  # (k,) in measure space, that ranks; zeros until it is drawn


@pytree
class Evolution:
    """An evolution strategy in solution space, restarted from a random elite."""

    strategy: Strategy
    threshold: Threshold | None = None  # that it wants the archive to have
    selection: Selection = static(default="filter")
    restart: Restart = static(default="no_improvement")
    ranking: Ranking = static(default="improvement")
    initial_population: int = static(default=0)
    num_points = 0

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        direction = drawn_direction(self.ranking, key, k)
        numbers = normals(normal, (self.batch_size, n))
        return {"normal": numbers, "elite": jax.random.uniform(elite), **direction}

    def init(self, x0: Array, k: int, bounds: Bounds) -> EvolutionState:
        restarts = Restarts.none(*self.strategy.reasons, rule=self.restart)
        return EvolutionState(self.strategy.init(x0), x0, restarts, no_direction(self.ranking, k, x0.dtype))

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
        drawn = {name: values for name, values in noise.items() if name != "normal"}
        return replace(state, strategy=strategy), Proposal(samples, {"samples": samples, **drawn})

    def tell(
        self, state: EvolutionState, archive: Archive, drawn: dict[str, Array], result: AddResult
    ) -> EvolutionState:
        ranked = rank(self.ranking, result, archive, state.direction, drawn.get("direction"))
        parents = num_parents(self.selection, result)
        strategy = self.strategy.tell(state.strategy, drawn["samples"], ranked.ranks, parents)
        tests = self.strategy.stop(strategy, ranked.ranks, ranked.values)
        restart, restarts = state.restarts.after(tests, result)
        elite = archive.pick(drawn["elite"][None], state.x0)[0]
        strategy = self.strategy.reset(strategy, restart, elite)
        return replace(state, strategy=strategy, restarts=restarts, direction=ranked.after(restart))

    def scaled(self, choose: Choose) -> Evolution:
        return replace(self, strategy=chosen(self.strategy, "sigma", "solutions", choose))

    def restarts(self, state: EvolutionState) -> dict[str, Array]:
        return state.restarts.by_name()
