"""The unstructured archive against pyribs, insertion by insertion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import ProximityArchive

import dqd
from dqd.archives import Archive, Novelty, Threshold
from dqd.types import Evaluation

pytestmark = pytest.mark.x64
BATCH, CAPACITY, K, THRESHOLD = 7, 60, 2, 0.5
add = jax.jit(Archive.add)


def batches(seed, count=10):
    random = np.random.default_rng(seed)
    for i in range(count):
        name = np.arange(BATCH)[:, None] + BATCH * i
        yield name.astype(float), random.normal(size=BATCH), random.normal(size=(BATCH, K))


def told(batch):
    solutions, objective, measures = map(jnp.asarray, batch)
    return solutions, Evaluation(objective, measures)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("neighbours", [1, 4])
def test_a_batch_is_what_pyribs_makes_of_its_candidates_one_by_one(neighbours, local):
    ours = Archive.empty(Novelty(K, THRESHOLD, CAPACITY, neighbours, local), 1, qd_score_offset=-3.0)
    theirs = ProximityArchive(
        solution_dim=1, measure_dim=K, k_neighbors=neighbours, novelty_threshold=THRESHOLD, local_competition=local
    )
    for batch in batches(neighbours):
        expected = [theirs.add_single(*row) for row in zip(*batch, strict=True)]
        ours, result = add(ours, *told(batch))
        assert result.status.tolist() == [int(row["status"][0]) for row in expected]
        values = [row["value" if local else "novelty"][0] for row in expected]
        np.testing.assert_allclose(result.value, values, rtol=1e-12)
    data, elites = theirs.data(), ours.elites
    assert 10 < len(ours) == len(theirs) < CAPACITY
    np.testing.assert_array_equal(elites.solutions, data["solution"])
    np.testing.assert_array_equal(elites.objective, data["objective"])
    np.testing.assert_array_equal(elites.measures, data["measures"])
    assert ours.qd_score == pytest.approx((theirs.data("objective") + 3).sum() / CAPACITY)
    assert sorted(np.asarray(ours.occupied)[: len(ours)]) == list(range(len(ours)))
    at = np.random.default_rng(1).normal(size=(20, K))
    np.testing.assert_array_equal(ours.retrieve(at).solutions, theirs.retrieve(at)[1]["solution"])


def test_a_full_archive_takes_nobody_but_those_who_beat_their_neighbour():
    for local in (False, True):
        archive = Archive.empty(Novelty(K, THRESHOLD, 5, local_competition=local), 1)
        for batch in batches(0):
            archive, result = add(archive, *told(batch))
        assert len(archive) == 5
        assert set(result.status.tolist()) <= ({0, 1} if local else {0})


def test_thresholds_and_bad_numbers_are_refused_in_words():
    with pytest.raises(ValueError, match=r"threshold: dqd.Novelty has no cells"):
        Archive.empty(Novelty(K, THRESHOLD), 1, threshold=Threshold(0.1, 0.0))
    with pytest.raises(ValueError, match=r"Novelty: threshold: expected a distance"):
        dqd.Novelty(2, -1.0)
