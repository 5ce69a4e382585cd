"""Rivals: candidates of one batch that fall into the same cell, and who of them came before whom.

Two forms give the same answers. `Pairs` compares all candidates with each other, which is quickest for tens of them.
`Runs` sorts them by cell, so that rivals stand side by side; its cost grows with the batch and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import how_many, matmul, pytree

MOST_PAIRED = {"cpu": 512, "gpu": 4096}  # candidates; beyond, sorting is quicker
FEW_COUNTED = 256  # flags; up to here one product counts them, which is one kernel


class Rivals(Protocol):
    """What a batch of b candidates knows of itself. All arrays are (b,), in the order of the batch."""

    def highest_before(self, values: Array) -> Array:
        """The highest value of the rivals that came before each candidate; -inf if there is none."""
        ...

    def highest(self, values: Array) -> Array:
        """The highest value of all rivals of each candidate, its own included."""
        ...

    def first(self, flags: Array) -> Array:
        """The first of each cell whose flag is set."""
        ...

    def best(self, flags: Array, values: Array) -> Array:
        """Of those of each cell whose flag is set the one with the highest value, of equals the first."""
        ...

    def walk(self, start: Array, step: Callable[[Array], Array]) -> Array:
        """What each candidate meets when candidates come one by one: `start`, then what `step` made of the last one's.

        `step` maps what all candidates meet to what they leave behind. It is called as often as the fullest cell has
        candidates.
        """
        ...


def rivals(cell: Array) -> Rivals:
    """The rivals among candidates by the cells (b,) that they fall into."""
    return Pairs.of(cell) if few(cell.size) else Runs.of(cell)


def number_before(flags: Array) -> Array:
    """How many flags are set before each, (b,)."""
    if flags.size > FEW_COUNTED:
        return jnp.cumsum(flags, dtype=jnp.int32) - flags
    earlier = np.tri(flags.size, k=-1, dtype=np.float32)  # [i, j]: j comes before i
    return matmul(jnp.asarray(earlier), flags.astype(jnp.float32)).astype(jnp.int32)


def few(candidates: int) -> bool:
    """Whether comparing all pairs is quicker than sorting."""
    return candidates <= MOST_PAIRED["cpu" if jax.default_backend() == "cpu" else "gpu"]


@pytree
class Pairs:
    """[j, i]: what j is to i."""

    same: Array  # (b, b) in the same cell
    earlier: Array  # (b, b) and came before

    @staticmethod
    def of(cell: Array) -> Pairs:
        same = cell[:, None] == cell[None, :]
        return Pairs(same, same & _precedes(cell.size))

    def highest_before(self, values: Array) -> Array:
        return self._highest(self.earlier, values)

    def highest(self, values: Array) -> Array:
        return self._highest(self.same, values)

    def _highest(self, whose: Array, values: Array) -> Array:
        return jnp.max(jnp.where(whose, values[:, None], -jnp.inf), axis=0, initial=-jnp.inf)

    def first(self, flags: Array) -> Array:
        return flags & ~jnp.any(self.earlier & flags[:, None], axis=0)

    def best(self, flags: Array, values: Array) -> Array:
        other, mine = values[:, None], values[None, :]
        beats = (other > mine) | ((other == mine) & _precedes(values.size))
        return flags & ~jnp.any(self.same & flags[:, None] & beats, axis=0)

    def walk(self, start: Array, step: Callable[[Array], Array]) -> Array:
        numbers = jnp.arange(start.size)
        previous = jnp.max(jnp.where(self.earlier, numbers[:, None], -1), axis=0, initial=-1)
        return _walked(start, step, previous, how_many(self.earlier))


@pytree
class Runs:
    """Candidates sorted by cell: those of one cell are a run, in the order of the batch."""

    order: Array  # (b,) which candidate stands at each place
    place: Array  # (b,) the place of each candidate
    behind: Array  # (b,) how many places each place stands behind the beginning of its run

    @staticmethod
    def of(cell: Array) -> Runs:
        numbers = jnp.arange(cell.size, dtype=jnp.int32)
        cells, order = jax.lax.sort((cell, numbers), num_keys=2)
        begins = jnp.concatenate([jnp.ones(1, bool), cells[1:] != cells[:-1]])
        behind = numbers - jax.lax.cummax(jnp.where(begins, numbers, 0))
        return Runs(order, jnp.zeros_like(order).at[order].set(numbers), behind)

    def highest_before(self, values: Array) -> Array:
        """By doubling: the highest of one place, then of two, of four, ... before each."""
        highest = jnp.where(self.behind > 0, jnp.roll(values[self.order], 1), -jnp.inf)
        reach = 1
        while reach < values.size:
            further = jnp.maximum(highest, jnp.roll(highest, reach))
            highest = jnp.where(self.behind > reach, further, highest)
            reach *= 2
        return highest[self.place]

    def highest(self, values: Array) -> Array:
        return jnp.full_like(values, -jnp.inf).at[self._beginning].max(values)[self._beginning]

    def first(self, flags: Array) -> Array:
        numbers = jnp.arange(flags.size, dtype=jnp.int32)
        first = jnp.full_like(numbers, flags.size).at[self._beginning].min(jnp.where(flags, numbers, flags.size))
        return flags & (numbers == first[self._beginning])

    def best(self, flags: Array, values: Array) -> Array:
        values = jnp.where(flags, values, -jnp.inf)
        return self.first(flags & (values == self.highest(values)))

    def walk(self, start: Array, step: Callable[[Array], Array]) -> Array:
        previous = jnp.where(self.behind > 0, jnp.roll(self.order, 1), -1)[self.place]
        return _walked(start, step, previous, self.behind[self.place])

    @property
    def _beginning(self) -> Array:
        """Of each candidate, the place at which its run begins."""
        return self.place - self.behind[self.place]


def _walked(start: Array, step: Callable[[Array], Array], previous: Array, position: Array) -> Array:
    last = jnp.max(position, initial=0)

    def onward(turn: Array, met: Array) -> Array:
        return jnp.where(position == turn, step(met)[previous], met)

    return jax.lax.fori_loop(1, last + 1, onward, start)


def _precedes(size: int) -> Array:
    """[j, i]: j comes before i. Of few a constant: it takes longer to count and compare."""
    numbers: Any = np.arange(size) if size <= FEW_COUNTED else jnp.arange(size)
    return jnp.asarray(numbers[:, None] < numbers[None, :])
