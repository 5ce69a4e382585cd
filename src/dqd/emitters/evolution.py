"""CMA-ME's improvement emitter (Fontaine et al. 2020), and CMA-MAE's (Fontaine & Nikolaidis 2023).

With filter selection the parents are exactly the samples that changed the archive, so their number varies from 0 to
all; or else they are the better half. A patient emitter goes on when nothing changed. CMA-MAE is patient, takes the
better half, and has the archive anneal its acceptance thresholds: the ranking follows from these (`rank`).
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import REJECTED, Archive
from dqd.archives.threshold import Threshold
from dqd.compiler.random import normals
from dqd.emitters.emitter import no_points
from dqd.emitters.rank import improvement_ranks
from dqd.emitters.restarts import NO_CHANGE, Restarts
from dqd.emitters.scale import Choose, chosen
from dqd.strategies.strategy import Strategy
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, pytree, replace, static

Parents = Literal["changed", "half"]


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
    parents: Parents = static(default="changed")
    patient: bool = static(default=False)
    lifetime: int = static(default=0)  # iterations after which it starts anew; 0: as long as it learns
    initial_population: int = static(default=0)
    num_points = 0

    @property
    def batch_size(self) -> int:
        return self.strategy.population

    def noise(self, key: Array, n: int, k: int) -> dict[str, Array]:
        normal, elite = jax.random.split(key)
        return {"normal": normals(normal, (self.batch_size, n)), "elite": jax.random.uniform(elite)}

    def init(self, x0: Array, k: int, bounds: Bounds) -> EvolutionState:
        impatient = () if self.patient else (NO_CHANGE,)
        return EvolutionState(
            self.strategy.init(x0), x0, Restarts.none(*self.strategy.reasons, *impatient, lifetime=self.lifetime)
        )

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
        changed = jnp.sum(result.status != REJECTED)
        parents = changed if self.parents == "changed" else self.batch_size // 2
        strategy = self.strategy.tell(state.strategy, drawn["samples"], ranks, parents)
        tests = self.strategy.stop(strategy, ranks, result.value)
        restart, restarts = state.restarts.after(tests if self.patient else jnp.append(tests, changed == 0))
        elite = archive.pick(drawn["elite"][None], state.x0)[0]
        return replace(state, strategy=self.strategy.reset(strategy, restart, elite), restarts=restarts)

    def scaled(self, choose: Choose) -> Evolution:
        return replace(self, strategy=chosen(self.strategy, "sigma", "solutions", choose))

    def restarts(self, state: EvolutionState) -> dict[str, Array]:
        return state.restarts.by_name()
