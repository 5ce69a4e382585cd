"""An emitter that is rewarded by a model of its own: the archive keeps what is found, the model says what it is worth.

The emitter within, such as CMA-ME or CMA-MEGA and however many copies of it, ranks its candidates by that worth alone.
Then the model learns from the same candidates; all copies share one.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import IMPROVED, REJECTED, Archive
from dqd.archives.threshold import Threshold
from dqd.emitters.emitter import Emitter
from dqd.emitters.scale import Choose, scaled
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace


class Reward(Protocol):
    """Interface: a frozen pytree without state. What it is told of a batch are objectives (b,) and measures (b, k)."""

    def noise(self, key: Array, batch: int, k: int) -> tuple[PyTree, PyTree]:
        """Everything random of one iteration: what belongs to candidates, arrays (batch, ...), and all else."""
        ...

    def init(self, k: int, dtype: jnp.dtype) -> PyTree:
        """State before iteration 1."""
        ...

    def worth(self, state: Any, archive: Archive, result: AddResult) -> Array:
        """What each candidate is worth, (b,): higher is better."""
        ...

    def learn(self, state: Any, archive: Archive, result: AddResult, valid: Array, noise: Any) -> PyTree:
        """State for the next iteration, from candidates whose numbers are finite where `valid` (b,) holds."""
        ...


@pytree
class RewardedState:
    emitter: Any
    reward: Any


@pytree
class Rewarded:
    """`emitter` searches, `reward` judges."""

    emitter: Emitter
    reward: Reward

    @property
    def num_points(self) -> int:
        return self.emitter.num_points

    @property
    def batch_size(self) -> int:
        return self.emitter.batch_size

    @property
    def initial_population(self) -> int:
        return self.emitter.initial_population

    @property
    def threshold(self) -> Threshold | None:
        return getattr(self.emitter, "threshold", None)

    @property
    def follows_measures(self) -> bool:
        return getattr(self.emitter, "follows_measures", True)

    def noise(self, key: Array, n: int, k: int) -> dict[str, Any]:
        emitter, reward = jax.random.split(key)
        candidates, rest = self.reward.noise(reward, self.batch_size, k)
        return {"emitter": self.emitter.noise(emitter, n, k), "candidates": candidates, "rest": rest}

    def init(self, x0: Array, k: int, bounds: Bounds) -> RewardedState:
        return RewardedState(self.emitter.init(x0, k, bounds), self.reward.init(k, x0.dtype))

    def points(self, state: RewardedState, archive: Archive, noise: dict[str, Any]) -> Points:
        return self.emitter.points(state.emitter, archive, noise["emitter"])

    def ask(
        self, state: RewardedState, archive: Archive, points: Points, evaluation: Evaluation, noise: dict[str, Any]
    ) -> tuple[RewardedState, Proposal]:
        emitter, proposal = self.emitter.ask(state.emitter, archive, points, evaluation, noise["emitter"])
        return replace(state, emitter=emitter), replace(proposal, drawn={**noise, "emitter": proposal.drawn})

    def tell(self, state: RewardedState, archive: Archive, drawn: dict[str, Any], result: AddResult) -> RewardedState:
        valid = result.cell < archive.num_cells
        worth = jnp.where(valid, self.reward.worth(state.reward, archive, result), -jnp.inf)
        status = jnp.where(valid, IMPROVED, REJECTED)  # all alike: ranked by their worth alone
        judged = replace(result, status=status, value=worth)
        noise = drawn["candidates"], drawn["rest"]
        return RewardedState(
            self.emitter.tell(state.emitter, archive, drawn["emitter"], judged),
            self.reward.learn(state.reward, archive, result, valid, noise),
        )

    def scaled(self, choose: Choose) -> Rewarded:
        return replace(self, emitter=scaled(self.emitter, choose))

    def restarts(self, state: RewardedState) -> dict[str, Array]:
        return self.emitter.restarts(state.emitter)
