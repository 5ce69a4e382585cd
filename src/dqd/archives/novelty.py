"""An unstructured archive: who lies far enough from those that are there is kept (Lehman & Stanley 2011).

The novelty of a candidate is its mean distance, in measure space, to the `neighbours` nearest elites. One whose novelty
reaches `threshold` becomes a new elite. With local competition (Lehman & Stanley 2011b) one that does not may still
replace the elite nearest to it, by being better.

Candidates come one by one, each of them to what those before it have left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.competition import IMPROVED, NEW, REJECTED, Verdict, growth, refuse_thresholds
from dqd.archives.dominated import scattered
from dqd.archives.neighbours import check_count, distances, least
from dqd.archives.threshold import Threshold
from dqd.tessellations.scattered import Scattered
from dqd.types import AddResult, Evaluation, pytree, static

if TYPE_CHECKING:
    from dqd.archives.archive import Archive


@pytree
class Novelty:
    """Elites that lie at least about `threshold` apart: measures need no range, and no cells.

    A batch of b costs b passes over the elites. When there are `capacity` of them, nobody is new any more. Without
    local competition the objective decides nothing, and candidates are ranked by their novelty; with it, by their
    objective and by how much they improve. QD-score and coverage are relative to the capacity; to compare with other
    archives, keep a result archive beside it.

    Args:
        measures: how many there are.
        threshold: novelty that is enough, in the units of the measures.
        capacity: elites at most.
        neighbours: nearest elites whose mean distance is the novelty.
        local_competition: whether a better candidate that is not new replaces the elite nearest to it.

    >>> Novelty(measures=2, threshold=0.1, local_competition=True).num_cells
    10000
    """

    measures: int = static()
    threshold: float
    capacity: int = static(default=10_000)
    neighbours: int = static(default=15)
    local_competition: bool = static(default=False)
    new_first = True
    moving = True

    def __post_init__(self) -> None:
        for name in ("measures", "capacity", "neighbours"):
            check_count("Novelty", name, getattr(self, name))
        if not (isinstance(self.threshold, int | float) and 0 <= self.threshold < math.inf):
            raise ValueError(f"Novelty: threshold: expected a distance between measures, got {self.threshold!r}")

    @property
    def num_cells(self) -> int:
        return self.capacity

    @property
    def num_measures(self) -> int:
        return self.measures

    @property
    def in_objectives(self) -> bool:
        return self.local_competition

    def begun(self, threshold: Threshold, dtype: jnp.dtype) -> Novelty:
        refuse_thresholds("Novelty", threshold)
        return self

    def prepared(self, archive: Archive, evaluation: Evaluation, allowed: Array) -> Archive:
        return archive

    def judge(self, archive: Archive, objective: Array, measures: Array, valid: Array) -> Verdict:
        numbers = jnp.arange(objective.size, dtype=jnp.int32)
        nobody = jnp.full(self.capacity, -1, jnp.int32)
        begin = (archive.objective, archive.measures, archive.count, nobody)
        (*_, last), (status, value, row) = jax.lax.scan(
            self._one, begin, (jnp.where(valid, objective, -jnp.inf), measures, valid, numbers)
        )
        kept = (status != REJECTED) & (
            last.at[row].get(mode="fill", fill_value=-1) == numbers
        )  # and not replaced since
        before = archive.objective.at[row].get(mode="fill", fill_value=-jnp.inf)
        return Verdict(
            result=AddResult(status, value, row, jnp.zeros_like(valid)),
            row=jnp.where(kept, row, self.capacity),
            fresh=kept & (row >= archive.count),
            gains=growth(kept, objective, before, archive.qd_score_offset),
            best=jnp.max(jnp.where(valid, objective, -jnp.inf), initial=-jnp.inf),
            learnt=(),
        )

    def _one(self, there: Any, candidate: Any) -> tuple[Any, Any]:
        """One candidate comes: the elites after it; its status, its value, and the row that is its own or nearest."""
        (held, places, count, last), (objective, measures, valid, number) = there, candidate
        apart = distances(measures[None], places)
        nearest, index = least(jnp.where(jnp.arange(self.capacity) < count, apart, jnp.inf), self.neighbours)
        some = jnp.minimum(count, self.neighbours)
        novelty = jnp.sum(jnp.where(jnp.isfinite(nearest), nearest, 0)) / jnp.maximum(some, 1)
        novelty = jnp.where(count > 0, novelty, self.threshold)
        new = valid & (count < self.capacity) & (novelty >= self.threshold)
        closest = index[0, 0]
        improved = valid & ~new & (objective > held[closest]) & self.local_competition
        row = jnp.where(new, count, closest)
        written = jnp.where(new | improved, row, self.capacity)
        status = jnp.where(new, NEW, jnp.where(improved, IMPROVED, REJECTED))
        worth = jnp.where(new, objective, objective - held[closest]) if self.local_competition else novelty
        after = (
            held.at[written].set(objective, mode="drop"),
            places.at[written].set(measures, mode="drop"),
            count + new,
            last.at[written].set(number, mode="drop"),
        )
        return after, (status, jnp.where(valid, worth, -jnp.inf), jnp.where(valid, row, self.capacity))

    def after(self, verdict: Verdict) -> Novelty:
        return self

    def placing(self, archive: Archive) -> Scattered:
        return scattered(archive)

    def settings(self) -> dict[str, Any]:
        return {"grid": self}
