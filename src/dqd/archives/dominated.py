"""Dominated Novelty Search: elites compete by how far they lie from fitter ones (Bahlous-Boldi et al. 2025).

There are no cells. When a batch comes, everybody, elites and candidates, is given

    score_i = mean distance, in measure space, to the `neighbours` nearest j with f_j >= f_i;  infinite if there is none

and the `capacity` with the highest scores are kept; of equals the earlier ones. So an elite has to be better than those
around it, or lie where nobody is. Two of the same objective count as fitter for each other, as in the authors' code.

Worked out anew, that would be (capacity + batch)^2 distances for every batch. But the archive remembers who the nearest
fitter ones of every elite are: only candidates are new to it, capacity x batch distances, and only those elites whose
neighbours were removed are looked at again.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.competition import NEW, REJECTED, Verdict, growth, refuse_thresholds
from dqd.archives.neighbours import check_count, distances, least
from dqd.archives.threshold import Threshold
from dqd.tessellations.scattered import Scattered
from dqd.types import AddResult, Evaluation, pytree, replace, static

if TYPE_CHECKING:
    from dqd.archives.archive import Archive

AT_ONCE = 32  # elites that are looked at again in one pass


@pytree
class DNS:
    """At most `capacity` elites, those farthest from fitter ones: measures need no range, and no cells.

    A batch of b costs capacity x b distances, and capacity more for every elite whose neighbours were removed. QD-score
    and coverage are relative to the capacity; to compare with other archives, keep a result archive beside it.

    Args:
        measures: how many there are.
        capacity: elites at most.
        neighbours: fitter ones whose mean distance counts.

    >>> DNS(measures=2, capacity=1000).num_cells
    1000
    """

    measures: int = static()
    capacity: int = static()
    neighbours: int = static(default=3)
    near: Array | None = dataclasses.field(default=None, compare=False)  # (capacity, neighbours) distances to the
    who: Array | None = dataclasses.field(default=None, compare=False)  # nearest fitter elites, ascending; their rows
    new_first = True
    in_objectives = False
    moving = True

    def __post_init__(self) -> None:
        for name in ("measures", "capacity", "neighbours"):
            check_count("DNS", name, getattr(self, name))

    @property
    def num_cells(self) -> int:
        return self.capacity

    @property
    def num_measures(self) -> int:
        return self.measures

    def begun(self, threshold: Threshold, dtype: jnp.dtype) -> DNS:
        refuse_thresholds("DNS", threshold)
        shape = (self.capacity, self.neighbours)
        return replace(self, near=jnp.full(shape, jnp.inf, dtype), who=jnp.zeros(shape, jnp.int32))

    def prepared(self, archive: Archive, evaluation: Evaluation, allowed: Array) -> Archive:
        return archive

    def judge(self, archive: Archive, objective: Array, measures: Array, valid: Array) -> Verdict:
        assert self.near is not None
        held, rows = archive.objective, self.capacity  # -inf where there is nobody
        fitness = jnp.where(valid, objective, -jnp.inf)
        crossing = distances(archive.measures, measures)  # (rows, b)
        over_elites = _fitter(held, fitness, crossing)
        over_batch = _fitter(fitness, held, crossing.T)
        within_batch = _fitter(fitness, fitness, distances(measures, measures) + _itself(len(fitness)))

        both = jnp.concatenate([over_batch, within_batch], axis=1)
        score = jnp.concatenate([_mean(self._least(self.near, over_elites)), _mean(self._least(both))])
        stays, enters = self._selected(score, jnp.concatenate([held, fitness]) > -jnp.inf)
        row = self._free_rows(stays, enters)
        near, who = self._neighbours(archive, fitness, measures, row, stays, enters, over_elites, both)
        value = jnp.where(valid, score[rows:], -jnp.inf)
        cell = jnp.where(valid, jnp.minimum(row, rows - 1), rows)
        return Verdict(
            result=AddResult(jnp.where(enters, NEW, REJECTED), value, cell, jnp.zeros_like(valid)),
            row=row,
            fresh=enters & (row >= archive.count),
            gains=growth(enters, fitness, held.at[row].get(mode="fill", fill_value=0), archive.qd_score_offset),
            best=jnp.max(fitness, initial=-jnp.inf),
            learnt=(near, who),
        )

    def _least(self, *distances: Array) -> Array:
        return least(jnp.concatenate(distances, axis=1), self.neighbours)[0]

    def _selected(self, score: Array, there: Array) -> tuple[Array, Array]:
        """Which elites stay and which candidates enter: all but as many of the lowest scores as there are too many."""
        batch = len(score) - self.capacity
        lowest = jnp.where(there, score, jnp.inf)[::-1]  # of equals the last one goes
        _, worst = jax.lax.top_k(-lowest, batch)
        leaving = jnp.arange(batch) < jnp.sum(there) - self.capacity
        kept = there.at[jnp.where(leaving, len(score) - 1 - worst, len(score))].set(False, mode="drop")
        return kept[: self.capacity], kept[self.capacity :]

    def _free_rows(self, stays: Array, enters: Array) -> Array:
        """For every candidate that enters, in their order, the next row that is free: those of who left come first."""
        free = jnp.nonzero(~stays, size=enters.size, fill_value=self.capacity)[0].astype(jnp.int32)
        return jnp.where(enters, free[jnp.cumsum(enters) - 1], self.capacity)

    def _neighbours(
        self,
        archive: Archive,
        fitness: Array,
        measures: Array,
        row: Array,
        stays: Array,
        enters: Array,
        over_elites: Array,
        over_candidates: Array,
    ) -> tuple[Array, Array]:
        """Distances and rows of the nearest fitter ones of everybody who is kept."""
        assert self.near is not None
        assert self.who is not None
        left = (archive.objective > -jnp.inf) & ~stays
        stale = stays & jnp.any(left[self.who] & jnp.isfinite(self.near), axis=1)
        ours = jnp.concatenate([self.near, jnp.where(enters, over_elites, jnp.inf)], axis=1)
        names = jnp.concatenate([self.who, jnp.broadcast_to(row, over_elites.shape)], axis=1)
        near, who = _named(*least(ours, self.neighbours), names)
        kept = jnp.concatenate([stays, enters])
        every = jnp.concatenate([jnp.arange(self.capacity, dtype=jnp.int32), row])
        theirs = least(jnp.where(kept, over_candidates, jnp.inf), self.neighbours)
        entered = _named(*theirs, jnp.broadcast_to(every, over_candidates.shape))
        near, who = (old.at[row].set(new, mode="drop") for old, new in zip((near, who), entered, strict=True))
        held = archive.objective.at[row].set(fitness, mode="drop")
        places = archive.measures.at[row].set(measures, mode="drop")
        return self._looked_again(held, places, stale, near, who)

    def _looked_again(self, held: Array, places: Array, stale: Array, near: Array, who: Array) -> tuple[Array, Array]:
        """The lists of those whose neighbours left, worked out anew, some at a time."""

        def some(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            stale, near, who = carry
            rows = jnp.nonzero(stale, size=min(AT_ONCE, self.capacity), fill_value=self.capacity)[0]
            apart = distances(places[rows], places)
            apart = jnp.where(rows[:, None] == jnp.arange(self.capacity), jnp.inf, apart)
            nearest, index = least(_fitter(held[rows], held, apart), self.neighbours)
            return (
                stale.at[rows].set(False, mode="drop"),
                near.at[rows].set(nearest, mode="drop"),
                who.at[rows].set(index, mode="drop"),
            )

        return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), some, (stale, near, who))[1:]

    def after(self, verdict: Verdict) -> DNS:
        near, who = verdict.learnt
        return replace(self, near=near, who=who)

    def placing(self, archive: Archive) -> Scattered:
        return scattered(archive)

    def settings(self) -> dict[str, Any]:
        return {"grid": self}


def scattered(archive: Archive) -> Scattered:
    """Where the elites of an archive without cells lie."""
    rows = np.flatnonzero(np.asarray(archive.objective) > -np.inf).astype(np.int32)
    return Scattered(rows, np.asarray(archive.measures)[rows], archive.num_cells)


def _fitter(of: Array, others: Array, apart: Array) -> Array:
    """Distances (a, b) to those of the others that are at least as good; infinite elsewhere, and where nobody is."""
    return jnp.where((others >= of[:, None]) & (others > -jnp.inf) & (of[:, None] > -jnp.inf), apart, jnp.inf)


def _itself(size: int) -> Array:
    return jnp.where(jnp.eye(size, dtype=bool), jnp.inf, 0)


def _mean(nearest: Array) -> Array:
    """Of the finite ones, (a, m) -> (a,); infinite where there is none."""
    finite = jnp.isfinite(nearest)
    count = jnp.sum(finite, axis=1)
    return jnp.where(count > 0, jnp.sum(jnp.where(finite, nearest, 0), axis=1) / jnp.maximum(count, 1), jnp.inf)


def _named(nearest: Array, index: Array, names: Array) -> tuple[Array, Array]:
    return nearest, jnp.take_along_axis(names, index, axis=1)
