"""Elites whose cells have moved: every one in its new cell, the best of each kept.

That reads and writes the whole archive, so it happens rarely and within a loop that usually makes no round: a branch
would cost a copy in every iteration, and under `vmap` both of its sides. The loop works in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from dqd.types import replace

if TYPE_CHECKING:
    from dqd.archives.archive import Archive

Cells = TypeVar("Cells")
Batch = TypeVar("Batch")
ROWS = ("solutions", "objective", "measures", "found", "occupied", "count", "total", "fields")  # what moves with them


def rebinned_if(
    archive: Archive,
    cells: Cells,
    batch: Batch,
    due: Callable[[Cells, Batch], Array],
    moved: Callable[[Archive, Cells, Batch], tuple[Cells, Array]],
) -> tuple[Archive, Cells]:
    """The archive and its cells, after `moved` if a batch makes that `due`.

    `cells` are arrays; `moved` says where they are from then on, and the cell (rows,) of every elite there.
    """

    def onward(carry: tuple[dict[str, Array], Cells]) -> tuple[dict[str, Array], Cells]:
        # The barrier ties everything to the loop's state: XLA would take out what does not change, and always do it.
        (rows, cells), met = jax.lax.optimization_barrier((carry, batch))
        here = replace(archive, **rows)
        cells, cell = moved(here, cells, met)
        return _rows(rebinned(here, cell)), cells

    rows, cells = jax.lax.while_loop(lambda carry: due(carry[1], batch), onward, (_rows(archive), cells))
    return replace(archive, **rows), cells


def rebinned(archive: Archive, cell: Array) -> Archive:
    """The elites of all rows in other cells (rows,): of those that share one the best, of equals that of the first row.

    What is empty is as it was in the beginning.
    """
    count, there = archive.num_cells, archive.objective > -jnp.inf
    rows = jnp.arange(count, dtype=jnp.int32)
    cell = jnp.where(there, cell, count)  # beyond the last: dropped
    best = jnp.full_like(archive.objective, -jnp.inf).at[cell].max(archive.objective, mode="drop")
    leads = there & (archive.objective == best.at[cell].get(mode="fill", fill_value=jnp.inf))
    source = jnp.full(count, count, jnp.int32).at[jnp.where(leads, cell, count)].min(rows, mode="drop")
    kept = leads & (source.at[cell].get(mode="fill", fill_value=-1) == rows)

    def taken(values: Array, nothing: float) -> Array:
        return values.at[source].get(mode="fill", fill_value=nothing)

    lost = jnp.where(there & ~kept, archive.objective, 0)
    offsets = jnp.where(there & ~kept, archive.qd_score_offset, 0).astype(lost.dtype)
    return replace(
        archive,
        solutions=taken(archive.solutions, 0),
        objective=taken(archive.objective, -jnp.inf),
        measures=taken(archive.measures, 0),
        found=taken(archive.found, -1),
        occupied=_occupied(archive, kept, cell),
        count=jnp.sum(kept, dtype=jnp.int32),
        total=archive.total.add(-lost).add(offsets),
        fields=archive.fields and {name: taken(values, jnp.nan) for name, values in archive.fields.items()},
    )


def rebinned_levels(level: Array, archive: Archive, cell: Array, minimum: Array | float) -> Array:
    """The acceptance thresholds (rows,) of the new cells: the highest of those that came together."""
    there = archive.objective > -jnp.inf
    return jnp.full_like(level, minimum).at[jnp.where(there, cell, level.size)].max(level, mode="drop")


def _occupied(archive: Archive, kept: Array, cell: Array) -> Array:
    """The cells of the elites that are kept, in the order in which theirs were first occupied."""
    stays = kept[archive.occupied] & (jnp.arange(kept.size) < archive.count)
    place = jnp.where(stays, jnp.cumsum(stays) - 1, kept.size)
    return jnp.zeros_like(archive.occupied).at[place].set(cell[archive.occupied], mode="drop")


def _rows(archive: Archive) -> dict[str, Array]:
    return {name: getattr(archive, name) for name in ROWS}
