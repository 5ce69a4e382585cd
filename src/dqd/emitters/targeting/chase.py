"""The chase: Gauss-Newton after one open cell that was missed before. Its line search are branches, which cost nothing.

    pursuer_i = theta + t_i J^T A z + s_i (theta - theta before)      z: to the near edge of the cell

The one that comes nearest to the cell is the next theta, while that is nearer than before. Plain steps overshoot where
measures bend, and zigzag where they bend unequally: shorter ones, and what is left of the last one, do not.

A first shot that misses begins a chase, too, if that lately paid: theta goes where it landed, to see what went wrong
(footing).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.unfused import once
from dqd.emitters.gain import ruinous
from dqd.emitters.targeting.targets import SPARE, Shots, View
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import AddResult, pytree

NEAR_EDGE = 0.45  # of a cell from its middle, at most: where hard shots aim
LONGEST = 16  # steps in a row after one open cell
NEARER = 0.97  # each of them must come so much nearer
LENGTHS = (1, 0.5, 0.25, 0.5, 0.5, 0.25, 0.25)  # t of every pursuer: the first branch and the spare ones
ONWARDS = (0, 0, 0, 0.5, 1, 1, 0.5)  # s


@pytree
class Chase:
    goal: Array  # () the open cell
    left: Array  # () steps left; 0: there is no chase
    step: Array  # (n,) the last one, from where the iteration stood

    @staticmethod
    def none(x0: Array) -> Chase:
        return Chase(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), jnp.zeros_like(x0))

    def joined(self, view: View, shots: Shots, explores: Array) -> tuple[Shots, Array]:
        """The first shot goes on with the chase, if its goal is in sight; and the steps that are left after this one.

        To explore, spare branches join the first one, if that goes to an open cell.
        """
        place = jnp.argmax(view.cells == self.goal).astype(shots.place.dtype)
        goes_on = (self.left > 0) & (view.cells[place] == self.goal) & jnp.isneginf(view.stored[place])
        first = jnp.where(goes_on, place, shots.place[0])
        joins = shots.spare & explores & (goes_on | shots.is_open[0])
        place = jnp.where(joins, first, shots.place).at[0].set(first)
        left = jnp.where(goes_on, self.left - 1, LONGEST)
        return Shots(place, (shots.is_open | joins).at[0].set(goes_on | shots.is_open[0]), shots.spare), left


@pytree
class Pursuit:
    """What the pursuers of an iteration do, and what becomes of the chase if one of them comes nearer."""

    goal: Array  # () the cell
    on: Array  # () whether there are any
    looks: Array  # () whether a first shot that misses is looked at
    left: Array  # () of the chase after this step
    away: Array  # () how far theta is from the goal, in cells
    middle: Array  # (k,) of the goal
    steps: Array  # (pursuers, n)


def pursuers(branches: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Their numbers: the first branch, and the spare ones; and t and s of every branch."""
    numbers = np.array([0, *range(max(branches - SPARE, 1), branches)])
    lengths, onwards = np.ones(branches), np.zeros(branches)
    lengths[numbers], onwards[numbers] = LENGTHS[: numbers.size], ONWARDS[: numbers.size]
    return numbers, lengths, onwards


def away(offsets: Array) -> Array:
    """How far from the part of a cell at which shots are aimed, (..., k) in cells from its middle."""
    return jnp.max(jnp.maximum(jnp.abs(offsets) - NEAR_EDGE, 0), axis=-1)


def after(pursuit: Pursuit, archive: Archive, result: AddResult) -> Chase:
    assert result.measures is not None
    assert result.objective is not None
    numbers, _, _ = pursuers(len(result.cell))
    measures, sound = result.measures[numbers], ~ruinous(result.objective[numbers], archive)
    distance = away((measures - pursuit.middle) / neighbourhood(archive.tessellation).widths(pursuit.middle))
    distance = jnp.where(sound & jnp.isfinite(distance), distance, jnp.inf)
    nearest = jnp.argmin(distance)
    is_open = jnp.isneginf(once(archive.objective[pursuit.goal]))
    goes_on = pursuit.on & is_open & (distance[nearest] < NEARER * pursuit.away)
    looks = pursuit.looks & is_open & ~goes_on
    step = pursuit.steps[jnp.where(goes_on, nearest, 0)]
    left = jnp.where(goes_on, pursuit.left, LONGEST) * ((goes_on | looks) & jnp.all(jnp.isfinite(step)))
    return Chase(pursuit.goal, left, jnp.where(left > 0, step, 0))
