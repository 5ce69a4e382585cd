"""Where to: the cells at which an iteration shoots, one for every branch.

Open cells come first, the shortest step first, as far as steps still arrive. A cell that was missed looks twice as far
away each time. Then come elites that the local model says can be beaten, by the gain that it predicts.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.unfused import once
from dqd.emitters.targeting.misses import Misses
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.sizes import Sizes
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import matmul, pytree

WINDOW = 961  # cells that are looked at around theta; 31 x 31 for two measures
OPEN, FAR = 1e30, 1e4  # keys of open cells lie between OPEN / FAR and OPEN, above those of elites
INSIDE = 0.46  # an elite is attacked that far from the middle of its cell, towards the better corner
SPARE = 6  # branches that, unless there are more open cells, join the first one (chase) or stay at home


@pytree
class View:
    """The cells around theta; place 0 is its own."""

    cells: Array  # (w,) -1 beyond the border
    middles: Array  # (w, k) in cells, seen from theta
    stored: Array  # (w,) objective of the elite, -inf where open

    @staticmethod
    def around(archive: Archive, measures: Array) -> View:
        tessellation = neighbourhood(archive.tessellation)
        cells, middles = tessellation.near(measures, WINDOW)
        return View(cells, (middles - measures) / tessellation.widths(measures), once(archive.objective[cells]))


@pytree
class Shots:
    place: Array  # (b,) in the view
    is_open: Array  # (b,)
    spare: Array  # (b,) stays at home, unless it is called


def choose(
    view: View, model: LocalModel, objective: Array, sizes: Sizes, misses: Misses, explores: Array, shots: int
) -> Shots:
    is_open = jnp.isneginf(view.stored)
    z = view.middles + jnp.where(is_open[:, None], 0, INSIDE * jnp.sign(model.slope))
    squared = model.squared_length(z)
    far = squared / sizes.radius**2 * (1 << 2 * jnp.minimum(misses.of(view.cells), 7).astype(jnp.int32))
    beside = explores & jnp.all(jnp.abs(z) <= 1.5, axis=1)
    open_key = jnp.where(beside | (far <= 1), OPEN / (1 + jnp.minimum(far, FAR)), -jnp.inf)
    gain = objective + sizes.predicted(matmul(z, model.slope), squared) - view.stored
    elite_key = jnp.where(squared <= (2 * sizes.radius) ** 2, gain, -jnp.inf)
    key = jnp.where(view.cells < 0, -jnp.inf, jnp.where(is_open, open_key, elite_key))

    key = jnp.pad(key, (0, max(shots - key.size, 0)), constant_values=-jnp.inf)  # a small grid has fewer cells
    best, place = jax.lax.top_k(key, shots)
    at_open = best >= OPEN / (2 * FAR)
    spare = ~at_open & (jnp.arange(shots) >= shots - SPARE)
    place = jnp.where(spare | (best == -jnp.inf), 0, place)
    return Shots(place, is_open[place], spare)
