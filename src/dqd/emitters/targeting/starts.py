"""Where from: the elite at which the next jacobian is taken.

An iteration explores or polishes. To explore, elites beside open cells count by the hope for these, and by their
objective: what is found from a good elite is good. To polish, every other time, the elite that is most ahead of its
neighbours: they may learn from it; or else any elite. But if one of those looked at is so bad that it alone spoils the
QD-score, every other time the best elite beside it, or else itself.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import Archive
from dqd.compiler.unfused import once
from dqd.emitters.gain import ruinous
from dqd.emitters.targeting.misses import Misses
from dqd.emitters.targeting.worth import Worth
from dqd.tessellations.tessellation import neighbourhood
from dqd.types import pytree

SAMPLED = 64  # elites among which one is chosen; the archive is never scanned
HOPELESS = 1e-6
GOOD = 0.5  # how much a standard deviation of the objective counts, in powers of e of hope
ANY = 0.5  # share of polished elites that are any, not the one most ahead of its neighbours
SAVE = 0.5  # share of iterations that save an elite that spoils the QD-score, where one is seen
LEAST = 0.05  # share of iterations that explore, and that polish, at least


@pytree
class Start:
    cell: Array  # () of an elite
    explores: Array  # ()


def noise(key: Array) -> dict[str, Array]:
    elite, gumbel, coin, any_ = jax.random.split(key, 4)
    return {
        "elite": jax.random.uniform(elite, (SAMPLED,)),
        "gumbel": jax.random.gumbel(gumbel, (SAMPLED,)),
        "coin": jax.random.uniform(coin),
        "any": jax.random.uniform(any_),
    }


def next_start(archive: Archive, misses: Misses, exploring: Worth, drawn: dict[str, Array]) -> Start:
    """Polish or explore, by what each lately gained."""
    elites = _sampled(archive, drawn["elite"])
    tessellation = neighbourhood(archive.tessellation)
    beside, _ = tessellation.near(once(archive.measures[elites]), 1 + 2 * tessellation.num_measures)
    stored = once(archive.objective[beside])
    is_open = (beside >= 0) & jnp.isneginf(stored)
    hope = jnp.sum(jnp.where(is_open, 0.5 ** misses.of(beside).astype(stored.dtype), 0), axis=1)

    explores = (drawn["coin"] < exploring.share(LEAST)) & jnp.any(hope > HOPELESS)
    objective = once(archive.objective[elites])
    rank = jnp.sum(objective[:, None] > objective, axis=1) + jnp.sum(objective[:, None] >= objective, axis=1)
    standard = 3**0.5 * (rank / SAMPLED - 1)  # as far from its mean, in standard deviations; outliers do not count more
    hopeful = jnp.argmax(jnp.log(hope) + GOOD * standard + drawn["gumbel"])
    ahead = jnp.sum(jnp.where(is_open | (beside < 0), 0, jnp.maximum(objective[:, None] - stored, 0)), axis=1)
    useful = jnp.argmax(jnp.where(jnp.arange(SAMPLED) < SAMPLED // 2, -jnp.inf, ahead))
    polished = jnp.where(drawn["any"] < ANY, SAMPLED - 1, useful)
    chosen = elites[jnp.where(explores, hopeful, polished)]

    spoils = ruinous(objective, archive)
    worst = jnp.argmax(spoils)
    saves = spoils[worst] & (drawn["any"] < SAVE)
    saviour = beside[worst, jnp.argmax(jnp.where(beside[worst] < 0, -jnp.inf, stored[worst]))]
    return Start(jnp.where(saves, saviour, chosen), explores & ~saves)


def _sampled(archive: Archive, uniform: Array) -> Array:
    """Cells of elites: the first half are the youngest, most of which lie at the border; the others are any.

    The k-th youngest of the first half is drawn with probability 1/k or so: new cells have open neighbours.
    """
    count = archive.count
    any_age, young = uniform * count, jnp.exp(uniform * jnp.log(count.astype(uniform.dtype)))
    age = jnp.where(jnp.arange(SAMPLED) < SAMPLED // 2, young, any_age).astype(jnp.int32)
    return archive.occupied[jnp.clip(count - 1 - age, 0)]
