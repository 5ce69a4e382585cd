"""DNS against the paper's rule written down plainly, and against pyribs; elites are told apart by their solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import DNSArchive

import dqd
from dqd.archives import DNS, NEW, Archive, Threshold
from dqd.archives.neighbours import distances
from dqd.types import Evaluation

pytestmark = pytest.mark.x64
BATCH, CAPACITY, K = 7, 20, 2
add = jax.jit(Archive.add)


def scores(objective, measures, neighbours):
    """Mean distance to the nearest of those that are at least as good, one after the other."""
    found = []
    for i in range(len(objective)):
        fitter = [j for j in range(len(objective)) if j != i and objective[j] >= objective[i]]
        nearest = sorted(np.linalg.norm(measures[i] - measures[j]) for j in fitter)[:neighbours]
        found.append(np.mean(nearest) if nearest else np.inf)
    return np.array(found)


class Plain:
    """Everybody is given a score, the highest stay; of equals the earlier one."""

    def __init__(self, neighbours):
        self.neighbours, self.rows = neighbours, []

    def add(self, batch):
        every = self.rows + batch
        score = scores([row[1] for row in every], np.array([row[2] for row in every]), self.neighbours)
        kept = set(sorted(range(len(every)), key=lambda i: (-score[i], i))[:CAPACITY])
        new = [len(self.rows) + i in kept for i in range(len(batch))]
        value = score[len(self.rows) :]
        self.rows = [every[i] for i in sorted(kept)]
        return new, value


def batches(seed, count=12):
    """Objectives of few values: many are equal."""
    random = np.random.default_rng(seed)
    for i in range(count):
        name = np.arange(BATCH)[:, None] + BATCH * i
        yield name.astype(float), random.integers(0, 9, BATCH).astype(float), random.normal(size=(BATCH, K))


def told(batch, **more):
    solutions, objective, measures = map(jnp.asarray, batch)
    return solutions, Evaluation(objective, measures, **more)


@pytest.mark.parametrize("neighbours", [1, 3, 40])
def test_every_batch_leaves_what_the_papers_rule_leaves(neighbours):
    archive, plain = Archive.empty(DNS(K, CAPACITY, neighbours), 1), Plain(neighbours)
    for batch in batches(neighbours):
        archive, result = add(archive, *told(batch))
        new, value = plain.add([(name[0], f, m) for name, f, m in zip(*batch, strict=True)])
        assert (result.status == NEW).tolist() == new
        np.testing.assert_allclose(result.value, value, rtol=1e-12)
        assert set(archive.elites.solutions[:, 0]) == {row[0] for row in plain.rows}
        assert len(archive) == len(plain.rows)
        assert archive.mean == pytest.approx(np.mean([row[1] for row in plain.rows]))


def test_the_remembered_neighbours_are_the_nearest_fitter_ones():
    archive = Archive.empty(DNS(K, CAPACITY), 1)
    for batch in batches(5):
        archive, _ = add(archive, *told(batch))
    apart = np.asarray(distances(archive.measures, archive.measures))
    fitter = (archive.objective[None] >= archive.objective[:, None]) & ~np.eye(CAPACITY, dtype=bool)
    expected = np.sort(np.where(fitter, apart, np.inf), axis=1)[:, :3]
    np.testing.assert_allclose(archive.competition.near, expected, rtol=1e-12)
    known = np.isfinite(expected)
    there = np.take_along_axis(apart, np.asarray(archive.competition.who), axis=1)
    np.testing.assert_allclose(there[known], expected[known], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_kept_elites_equal_those_of_pyribs(seed):
    ours = Archive.empty(DNS(K, CAPACITY), 1)
    theirs = DNSArchive(solution_dim=1, measure_dim=K, capacity=CAPACITY, k_neighbors=3)
    random = np.random.default_rng(seed)
    for solutions, _, measures in batches(seed):
        batch = solutions, random.normal(size=BATCH), measures
        ours, result = add(ours, *told(batch))
        expected = theirs.add(*batch)
        assert result.status.tolist() == expected["status"].tolist()
        np.testing.assert_allclose(result.value, expected["dns"], rtol=1e-12)
    np.testing.assert_array_equal(np.sort(ours.elites.solutions, axis=0), np.sort(theirs.data("solution"), axis=0))
    assert ours.qd_score == pytest.approx(theirs.stats.norm_qd_score)


def test_what_is_not_finite_or_not_feasible_is_rejected():
    archive = Archive.empty(DNS(K, CAPACITY), 1)
    solutions, objective, measures = next(batches(0))
    objective[2], measures[4, 1] = np.nan, np.inf
    batch = told((solutions, objective, measures), feasible=jnp.arange(BATCH) != 0)
    archive, result = add(archive, *batch)
    assert result.status.tolist() == [0, 2, 0, 2, 0, 2, 2]
    assert np.isneginf(result.value).tolist() == [True, False, True, False, True, False, False]
    assert (result.cell == CAPACITY).tolist() == [True, False, True, False, True, False, False]
    assert sorted(archive.elites.solutions[:, 0]) == [1, 3, 5, 6]


def test_thresholds_and_bad_numbers_are_refused_in_words():
    with pytest.raises(ValueError, match=r"threshold: dqd.DNS has no cells .* CMA-MAE"):
        Archive.empty(DNS(K, CAPACITY), 1, threshold=Threshold(0.1, 0.0))
    with pytest.raises(ValueError, match=r"DNS: capacity: expected a whole number, at least 1, got 0"):
        dqd.DNS(2, 0)
