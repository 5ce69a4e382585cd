"""Judging elites once more: with other noise, or with a better judge than the search could afford."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.archive import Archive
from dqd.latent.domain import LatentDomain, batches
from dqd.types import Evaluation, replace


def reevaluate(
    found: Any,
    domain: LatentDomain,
    salts: Sequence[int] = (1,),
    *,
    say: Callable[[int, int], None] = lambda done, total: None,
) -> Archive:
    """A new archive of the elites of a result or archive, by their scores under `domain`, averaged over the salts.

    Elites move to the cells of their new measures, where several may meet: the best stays. A search that was lucky with
    its noise, or that fooled its judge, loses here. `say` is told how many of how many elites are done.
    """
    archive: Archive = getattr(found, "archive", found)
    elites = archive.elites
    objective = np.zeros(len(elites), np.float64)
    measures = np.zeros((len(elites), archive.tessellation.num_measures), np.float64)
    done = 0
    for batch, count in batches(elites.solutions, domain.chunk):
        for salt in salts:
            judged = _evaluate(replace(domain, salt=salt), batch)
            objective[done : done + count] += np.asarray(judged.objective, np.float64)[:count] / len(salts)
            measures[done : done + count] += np.asarray(judged.measures, np.float64)[:count] / len(salts)
        done += count
        say(done, len(elites))
    empty = Archive.empty(
        archive.tessellation,
        archive.solutions.shape[1],
        qd_score_offset=archive.qd_score_offset,
        dtype=archive.solutions.dtype,
    )
    dtype = archive.solutions.dtype
    return _fill(empty, elites.solutions, Evaluation(jnp.asarray(objective, dtype), jnp.asarray(measures, dtype)))


def _fill(archive: Archive, solutions: np.ndarray, evaluation: Evaluation) -> Archive:
    """Add in batches: one of all elites at once would compare each with each."""
    add = jax.jit(lambda archive, *batch: archive.add(*batch)[0])
    for start in range(0, len(solutions), 1000):
        part = slice(start, start + 1000)
        some = Evaluation(evaluation.objective[part], evaluation.measures[part])
        archive = add(archive, jnp.asarray(solutions[part]), some)
    return archive


@jax.jit
def _evaluate(domain: LatentDomain, solutions: Array) -> Evaluation:
    return domain.evaluate(solutions)
