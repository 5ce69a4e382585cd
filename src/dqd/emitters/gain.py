"""What candidates add to an archive, as a number."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import NEW, REJECTED, Archive
from dqd.archives.competition import called
from dqd.types import AddResult

POOR = 4.0  # how many times further below the mean a worthless elite lies than the best lies above it
RUINOUS = 0.01  # of what all elites lack of the best, lacking in one alone
FEW = 1000  # elites: fewer count as so many, for then a low one is nothing strange


def gained(result: AddResult, archive: Archive) -> Array:
    """What each candidate added to the archive, (b,): how much better an elite became, or what a new one is worth.

    That is its objective above the offset of the QD-score. Where elites lie below it on average, the offset says
    nothing: then a new elite is worth POOR times what the best is ahead of the mean, and what it is itself ahead of it.
    """
    if not archive.competition.in_objectives:
        raise TypeError(
            f"gain: {called(archive.competition)} says how far solutions lie from others and not what they "
            "are worth; who takes turns by gains, such as dqd.auto, needs cells, or local competition"
        )
    mean = mean_objective(archive)
    poor = mean - POOR * (archive.best - mean)
    nothing = jnp.where(mean < archive.qd_score_offset, poor, archive.qd_score_offset)
    return jnp.where(result.status == REJECTED, 0, result.value - jnp.where(result.status == NEW, nothing, 0))


def ruinous(objective: Array, archive: Archive) -> Array:
    """Which objectives lie so far below the mean of the elites that one alone spoils the QD-score.

    It lacks at least a share RUINOUS of what all elites together lack of the best one.
    """
    mean = mean_objective(archive)
    return mean - objective > RUINOUS * jnp.maximum(archive.count, FEW) * (archive.best - mean)


def mean_objective(archive: Archive) -> Array:
    """Of the elites, ()."""
    return archive.qd_score_offset + archive.total.share(jnp.maximum(archive.count, 1).astype(archive.total.dtype))
