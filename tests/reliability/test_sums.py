"""Random sequences of replacements: the metrics are those of what is stored, whatever stood there before."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.archives import Archive
from dqd.types import Evaluation

ROUNDS, BATCH = 12, 6
GRIDS = [dqd.Grid([0.0], [1.0], [cells]) for cells in (1, 5, 20)]


@jax.jit
def played(archive, objective, measures):
    """One archive after all batches of a sequence, (rounds, batch) and (rounds, batch, 1)."""

    def body(archive, batch):
        return archive.add(jnp.zeros((BATCH, 1)), Evaluation(*batch))[0], None

    archive, _ = jax.lax.scan(body, archive, (objective, measures))
    return archive.objective, archive.standing


def sequences(numbers, count, orders):
    """Objectives of either sign over so many orders of magnitude, that mostly rise, so that elites are replaced."""
    size = 10.0 ** numbers.uniform(-orders / 2, orders / 2, (count, ROUNDS, BATCH))
    rising = np.sort((numbers.choice([-1.0, 1.0], size.shape) * size).reshape(count, -1)).reshape(size.shape)
    mixed = numbers.random((count, 1, 1)) < 0.3
    return np.where(mixed, numbers.permuted(rising, axis=1), rising).astype(np.float32)


def check(seed, count):
    numbers = np.random.default_rng(seed)
    grid, offset = GRIDS[seed % 3], [0.0, -3.0, 1e6, -1e25][seed % 4]
    objective = sequences(numbers, count, orders=60)
    measures = numbers.random((*objective.shape, 1)).astype(np.float32)
    empty = Archive.empty(grid, 1, qd_score_offset=offset)
    stored, standing = jax.vmap(played, (None, 0, 0))(empty, objective, measures)
    metrics = standing.metrics(grid.num_cells, offset)
    for i, elites in enumerate(np.asarray(stored, np.float64)):
        held = elites[elites > -np.inf].tolist()
        fresh = math.fsum([*held, *([-float(np.float32(offset))] * len(held))]) / grid.num_cells
        np.testing.assert_allclose(metrics.qd_score[i], fresh, rtol=1e-6)
        np.testing.assert_allclose(metrics.mean[i], math.fsum(held) / len(held), rtol=1e-6)
        assert metrics.best[i] == objective[i].max()


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_what_is_stored(seed):
    check(seed, 250)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_100_000_sequences(seed):
    check(seed, 1000)
