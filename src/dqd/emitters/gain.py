"""What candidates add to an archive, as a number."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dqd.archives.archive import NEW, REJECTED, Archive
from dqd.types import AddResult

POOR = 4.0  # how many times further below the mean a worthless elite lies than the best lies above it


def gained(result: AddResult, archive: Archive) -> Array:
    """What each candidate added to the archive, (b,): how much better an elite became, or what a new one is worth.

    That is its objective above the offset of the QD-score. Where elites lie below it on average, the offset says
    nothing: then a new elite is worth POOR times what the best is ahead of the mean, and what it is itself ahead of it.
    """
    mean = archive.metrics.mean
    poor = mean - POOR * (archive.best - mean)
    nothing = jnp.where(mean < archive.qd_score_offset, poor, archive.qd_score_offset)
    return jnp.where(result.status == REJECTED, 0, result.value - jnp.where(result.status == NEW, nothing, 0))
