"""Several emitters in one search: different ones side by side, or copies of one by `vmap`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.threshold import Threshold
from dqd.emitters.emitter import Emitter, asks_blindly, check_emitter
from dqd.emitters.scale import Choose, scaled
from dqd.types import AddResult, Bounds, Evaluation, Points, Proposal, PyTree, pytree, replace, static


def alike(points: Points) -> Points:
    """The same in one form, whether or not some of them are known."""
    return replace(points, known=jnp.zeros_like(points.mask)) if points.known is None else points


@pytree
class Combined:
    """Different emitters on one archive. Their points and solutions are inserted in the emitters' order."""

    emitters: tuple[Emitter, ...]

    @property
    def num_points(self) -> int:
        return sum(emitter.num_points for emitter in self.emitters)

    @property
    def batch_size(self) -> int:
        return sum(emitter.batch_size for emitter in self.emitters)

    @property
    def initial_population(self) -> int:
        return max(emitter.initial_population for emitter in self.emitters)

    @property
    def threshold(self) -> Threshold | None:
        """The one that its emitters want of the archive they share."""
        wanted = [threshold for emitter in self.emitters if (threshold := getattr(emitter, "threshold", None))]
        if any(threshold != wanted[0] for threshold in wanted):
            raise ValueError(f"combine: one archive has one threshold, got {wanted}; give illuminate(threshold=)")
        return wanted[0] if wanted else None

    @property
    def follows_measures(self) -> bool:
        return any(getattr(emitter, "follows_measures", True) for emitter in self.emitters if emitter.num_points)

    def noise(self, key: Array, n: int, k: int) -> tuple[Any, ...]:
        keys = jax.random.split(key, len(self.emitters))
        return tuple(emitter.noise(key, n, k) for emitter, key in zip(self.emitters, keys, strict=True))

    def init(self, x0: Array, k: int, bounds: Bounds) -> tuple[Any, ...]:
        return tuple(emitter.init(x0, k, bounds) for emitter in self.emitters)

    def points(self, state: tuple[Any, ...], archive: Archive, noise: tuple[Any, ...]) -> Points:
        parts = [
            alike(emitter.points(own, archive, drawn))
            for emitter, own, drawn in zip(self.emitters, state, noise, strict=True)
        ]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def ask(
        self, state: tuple[Any, ...], archive: Archive, points: Points, evaluation: Evaluation, noise: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], Proposal]:
        splits = self._split([emitter.num_points for emitter in self.emitters], (points, evaluation))
        asked = [
            emitter.ask(own, archive, its_points, its_evaluation, drawn)
            for emitter, own, (its_points, its_evaluation), drawn in zip(
                self.emitters, state, splits, noise, strict=True
            )
        ]
        solutions = jnp.concatenate([proposal.solutions for _, proposal in asked])
        drawn = tuple(proposal.drawn for _, proposal in asked)
        return tuple(own for own, _ in asked), Proposal(solutions, drawn)

    def tell(
        self, state: tuple[Any, ...], archive: Archive, drawn: tuple[Any, ...], result: AddResult
    ) -> tuple[Any, ...]:
        results = self._split([emitter.batch_size for emitter in self.emitters], result)
        return tuple(
            emitter.tell(own, archive, its, told)
            for emitter, own, its, told in zip(self.emitters, state, drawn, results, strict=True)
        )

    def restarts(self, state: tuple[Any, ...]) -> dict[str, Array]:
        total: dict[str, Array] = {}
        for emitter, own in zip(self.emitters, state, strict=True):
            for reason, count in emitter.restarts(own).items():
                total[reason] = total.get(reason, jnp.zeros((), jnp.int32)) + count
        return total

    def scaled(self, choose: Choose) -> Combined:
        return replace(self, emitters=tuple(scaled(emitter, choose) for emitter in self.emitters))

    def _split(self, sizes: list[int], tree: Any) -> list[Any]:
        ends = np.cumsum(sizes)
        return [
            jax.tree.map(lambda leaf, a=end - size, b=end: leaf[a:b], tree)
            for size, end in zip(sizes, ends, strict=True)
        ]


@pytree
class Replicated:
    """Copies of one emitter, each with a state and randomness of its own."""

    emitter: Emitter
    copies: int = static()

    @property
    def num_points(self) -> int:
        return self.copies * self.emitter.num_points

    @property
    def batch_size(self) -> int:
        return self.copies * self.emitter.batch_size

    @property
    def initial_population(self) -> int:
        return self.emitter.initial_population

    @property
    def threshold(self) -> Threshold | None:
        return getattr(self.emitter, "threshold", None)

    @property
    def follows_measures(self) -> bool:
        return getattr(self.emitter, "follows_measures", True)

    @property
    def asks_blindly(self) -> bool:
        return asks_blindly(self.emitter)

    def noise(self, key: Array, n: int, k: int) -> PyTree:
        return jax.vmap(lambda key: self.emitter.noise(key, n, k))(jax.random.split(key, self.copies))

    def init(self, x0: Array, k: int, bounds: Bounds) -> PyTree:
        one = self.emitter.init(x0, k, bounds)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.copies, *leaf.shape)), one)

    def points(self, state: Any, archive: Archive, noise: Any) -> Points:
        return self._flat(jax.vmap(self.emitter.points, (0, None, 0))(state, archive, noise))

    def ask(
        self, state: Any, archive: Archive, points: Points, evaluation: Evaluation, noise: Any
    ) -> tuple[Any, Proposal]:
        points, evaluation = self._per_copy((points, evaluation))
        state, proposal = jax.vmap(self.emitter.ask, (0, None, 0, 0, 0))(state, archive, points, evaluation, noise)
        return state, Proposal(self._flat(proposal.solutions), proposal.drawn)

    def tell(self, state: Any, archive: Archive, drawn: Any, result: AddResult) -> PyTree:
        return jax.vmap(self.emitter.tell, (0, None, 0, 0))(state, archive, drawn, self._per_copy(result))

    def restarts(self, state: Any) -> dict[str, Array]:
        return {reason: jnp.sum(counts) for reason, counts in jax.vmap(self.emitter.restarts)(state).items()}

    def scaled(self, choose: Choose) -> Replicated:
        return replace(self, emitter=scaled(self.emitter, choose))

    def _per_copy(self, tree: Any) -> PyTree:
        return jax.tree.map(lambda leaf: leaf.reshape(self.copies, leaf.shape[0] // self.copies, *leaf.shape[1:]), tree)

    def _flat(self, tree: Any) -> PyTree:
        return jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), tree)


@pytree
class Staggered(Replicated):
    """Copies of one emitter whose rounds begin and end at times of their own, as evaluations do (`search.rounds`)."""


def combine(*emitters: Emitter) -> Combined:
    """One search with different emitters on one archive; a batch is their batches one after the other.

    An iteration costs what theirs cost together. They teach each other only through the archive.

    >>> both = dqd.combine(dqd.cma_mega(sigma=1.0), dqd.map_elites(sigma=0.1))
    >>> both.num_points, both.batch_size
    (1, 71)
    """
    if not emitters:
        raise ValueError("combine: give at least one emitter")
    for emitter in emitters:
        check_emitter("combine", emitter)
    return Combined(tuple(emitters))


def replicate(emitter: Emitter, copies: int) -> Replicated:
    """One search with several copies of an emitter, each with a state and random numbers of its own.

    They run side by side by `vmap`: on a GPU several cost little more than one.

    >>> dqd.replicate(dqd.cma_mega(sigma=1.0), 4).batch_size
    140
    """
    check_emitter("replicate", emitter)
    if isinstance(copies, bool) or not isinstance(copies, Integral) or copies < 1:
        raise ValueError(f"replicate: expected a whole number of copies, at least 1, got {copies!r}")
    return Replicated(emitter, int(copies))
