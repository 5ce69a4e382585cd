"""How candidates are ranked: by what they did to the archive, by their objective, or by where they lie.

The improvement ranking puts new cells first, then improvements, then rejections, each by value. With the acceptance
thresholds of CMA-MAE the value alone counts: a new cell is worth what it lies above its threshold, like any other
(Fontaine & Nikolaidis 2023). With learning rate 0 that ranks by the objective, as plain CMA-ES does.

The others are the emitters of CMA-ME (Fontaine et al. 2020), by the names that pyribs gives them: the optimising one
ranks by the objective, the random-direction one by how far measures lie along a direction, which it draws at every
start: d = N(0, I) times the range of each measure.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.archives.rivals import few
from dqd.emitters.ranges import extent
from dqd.types import AddResult

Ranking = Literal["improvement", "imp", "2imp", "obj", "2obj", "rd", "2rd"]
APART = 2**31  # what splitting a key gives is folding in 0, 1, ...: this is none of them
# By what candidates are ranked, and whether new ones come first, then improvements; None: as the archive has it.
RULES: dict[str, tuple[str, bool | None]] = {
    "improvement": ("value", None),
    "imp": ("value", False),
    "2imp": ("value", True),
    "obj": ("objective", False),
    "2obj": ("objective", True),
    "rd": ("direction", False),
    "2rd": ("direction", True),
}


class Ranked(NamedTuple):
    """Of a batch."""

    ranks: Array  # (b,) 0 best
    values: Array  # (b,) by which they are, within their stage
    direction: Array | None = None  # (k,) along which they lie, in measure space

    def after(self, restart: Array) -> Array | None:
        """The direction for the next batch; another one, which zeros stand for, after a restart."""
        return None if self.direction is None else jnp.where(restart, 0, self.direction)


def no_direction(ranking: Ranking, k: int, dtype: jnp.dtype) -> Array | None:
    """What stands for a direction that is still to be drawn; None where none is needed."""
    return jnp.zeros(k, dtype) if RULES[ranking][0] == "direction" else None


def drawn_direction(ranking: Ranking, key: Array, k: int) -> dict[str, Array]:
    """What a direction would be drawn from, by its name; nothing where none is needed."""
    needed = RULES[ranking][0] == "direction"
    return {"direction": jax.random.normal(jax.random.fold_in(key, APART), (k,))} if needed else {}


def rank(
    ranking: Ranking, result: AddResult, archive: Archive, direction: Array | None = None, drawn: Array | None = None
) -> Ranked:
    """A batch by one of the rules; of equals the later one stands above, as in the authors' code."""
    by, staged = RULES[ranking]
    staged = archive.competition.new_first if staged is None else staged
    if direction is not None and drawn is not None:
        direction = jnp.where(jnp.any(direction != 0), direction, drawn * extent(archive, direction))
    values = result.value if by == "value" else _valued(by, result, archive, direction)
    status = result.status if staged else jnp.zeros_like(result.status)
    return Ranked(_ranks(status, values), values, direction)


def _valued(by: str, result: AddResult, archive: Archive, direction: Array | None) -> Array:
    assert result.objective is not None
    values = result.objective
    if by == "direction":
        assert result.measures is not None
        assert direction is not None
        values = jnp.sum(result.measures * direction, axis=-1)
    return jnp.where(result.cell < archive.num_cells, values, -jnp.inf)


def _ranks(status: Array, value: Array) -> Array:
    return (counted if few(status.size) else sorted_out)(status, value)


def counted(status: Array, value: Array) -> Array:
    """Ranks as the number of those that stand above: quickest for tens of candidates."""
    numbers = jnp.arange(status.size)
    higher_status = status[None, :] > status[:, None]  # [i, j]: j stands above i
    same_status = status[None, :] == status[:, None]
    higher_value = value[None, :] > value[:, None]
    same_value = value[None, :] == value[:, None]
    later = numbers[None, :] > numbers[:, None]  # of equals the later one, as in the authors' code
    above = higher_status | (same_status & (higher_value | (same_value & later)))
    return jnp.sum(above, axis=1, dtype=jnp.int32)


def sorted_out(status: Array, value: Array) -> Array:
    """The same ranks from sorting."""
    numbers = jnp.arange(status.size, dtype=jnp.int32)
    *_, negative = jax.lax.sort((-status, -value, -numbers), num_keys=3)
    return jnp.zeros_like(numbers).at[-negative].set(numbers)
