"""Our batched insertion against pyribs' `add_single`, called in batch order, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import CVTArchive, GridArchive

from dqd.archives import Archive, Grid, Threshold
from dqd.tessellations import CVT
from dqd.types import Evaluation

pytestmark = pytest.mark.x64

add = jax.jit(Archive.add)


def batches(seed, k=2):
    """Few cells and many candidates, most of them outside the range; none on an edge, where pyribs rounds otherwise."""
    generator = np.random.default_rng(seed)
    for _ in range(6):
        yield generator.normal(size=(36, 3)), generator.normal(2, 3, 36), generator.uniform(-2, 3, (36, k))


def insert_both(learning_rate, minimum, seed):
    ours = Archive.empty(Grid([-1, 0], [1, 2], [4, 3]), 3, threshold=Threshold(learning_rate, minimum))
    theirs = GridArchive(
        solution_dim=3, dims=[4, 3], ranges=[(-1, 1), (0, 2)], learning_rate=learning_rate, threshold_min=minimum
    )
    return inserted(ours, theirs, batches(seed)), theirs


def inserted(ours, theirs, batches):
    """Our archive, after every batch was given to both, and both said the same of it."""
    for solutions, objective, measures in batches:
        ours, result = add(ours, jnp.asarray(solutions), Evaluation(jnp.asarray(objective), jnp.asarray(measures)))
        expected = [theirs.add_single(*row) for row in zip(solutions, objective, measures, strict=True)]
        assert result.status.tolist() == [int(row["status"]) for row in expected]
        assert result.cell.tolist() == theirs.index_of(measures).tolist()
        np.testing.assert_allclose(result.value, [row["value"] for row in expected], rtol=0, atol=1e-12)
    return ours


@pytest.mark.parametrize(("k", "cells"), [(2, 12), (2, 300), (10, 40), (10, 5000)])
@pytest.mark.parametrize(("learning_rate", "minimum"), [(1.0, -np.inf), (0.3, 0.0)])
def test_cells_around_given_centroids_equal_those_of_pyribs(k, cells, learning_rate, minimum):
    centroids = np.random.default_rng(cells).uniform(-1, 2, (cells, k))
    ours = Archive.empty(CVT(centroids), 3, threshold=Threshold(learning_rate, minimum))
    theirs = CVTArchive(
        solution_dim=3,
        centroids=centroids,
        ranges=[(-1, 2)] * k,
        learning_rate=learning_rate,
        threshold_min=minimum,
    )
    ours = inserted(ours, theirs, batches(cells, k))
    assert len(ours) == len(theirs)
    if learning_rate == 1.0:
        data = theirs.data()
        order = np.argsort(data["index"])
        np.testing.assert_array_equal(ours.elites.cell, data["index"][order])
        np.testing.assert_array_equal(ours.elites.solutions, data["solution"][order])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("learning_rate", "minimum"), [(1.0, -np.inf), (1.0, 1.5), (0.3, 0.0), (0.01, -5.0)])
def test_status_value_and_thresholds_equal_those_of_pyribs(learning_rate, minimum, seed):
    ours, theirs = insert_both(learning_rate, minimum, seed)
    assert len(ours) == len(theirs)
    data = theirs.data(["index", "threshold"])
    thresholds = ours.objective if ours.threshold is None else ours.threshold
    np.testing.assert_allclose(np.asarray(thresholds)[data["index"]], data["threshold"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_stored_elites_and_figures_equal_those_of_pyribs(seed):
    # Only with learning rate 1: below it pyribs lets an accepted but worse solution replace a better one.
    ours, theirs = insert_both(1.0, -np.inf, seed)
    data, elites = theirs.data(), ours.elites
    order = np.argsort(data["index"])
    for name, field in {
        "index": elites.cell,
        "solution": elites.solutions,
        "objective": elites.objective,
        "measures": elites.measures,
    }.items():
        np.testing.assert_array_equal(field, data[name][order])
    assert ours.metrics.qd_score == pytest.approx(theirs.stats.norm_qd_score, rel=1e-12)
    assert ours.metrics.coverage == pytest.approx(100 * theirs.stats.coverage, rel=1e-12)
    assert ours.metrics.mean == pytest.approx(theirs.stats.obj_mean, rel=1e-12)
    assert ours.metrics.best == theirs.stats.obj_max
