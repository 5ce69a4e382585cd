"""Cells that move: against a dictionary that knows every candidate's cell, and against pyribs' boundaries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import SlidingBoundariesArchive

import dqd
from dqd.archives import Archive, SlidingBoundaries, Threshold, UnboundedGrid
from dqd.types import Evaluation

BATCH, N = 9, 3
add = jax.jit(Archive.add)
KINDS = {
    "unbounded": UnboundedGrid(shape=[6, 5]),
    "begun": UnboundedGrid(shape=[6, 5], lower=[-1, -1], upper=[1, 1]),
    "sliding": SlidingBoundaries(shape=[6, 5], every=30, remembered=40),
}


def batches(seed, count=25):
    """Measures that wander outward, of one scale along one axis and of another along the other."""
    random = np.random.default_rng(seed)
    for i in range(count):
        measures = random.normal(size=(BATCH, 2)) * [1 + i / 4, 1000] + [0, 5000]
        yield random.normal(size=(BATCH, N)), random.normal(size=BATCH), measures


def told(batch):
    solutions, objective, measures = (jnp.asarray(part, jnp.zeros(0).dtype) for part in batch)
    return solutions, Evaluation(objective, measures)


@pytest.mark.parametrize("kind", KINDS)
def test_elites_are_those_of_a_dictionary_that_is_filled_anew_whenever_cells_move(kind):
    archive, elites = Archive.empty(KINDS[kind], N, qd_score_offset=-3.0), {}
    moves = 0
    for batch in batches(0):
        before = archive.to_numpy().tessellation.arrays() if len(archive) else None
        archive, result = add(archive, *told(batch))
        cells = archive.to_numpy().tessellation
        if before is None or any(np.any(before[name] != each) for name, each in cells.arrays().items()):
            moves += 1
            elites = best_by_cell(cells, sorted(elites.items()))
        rows = [np.asarray(part, np.float32) for part in batch]
        for objective, measures in zip(rows[1], rows[2], strict=True):
            cell = int(cells.index_of(measures))
            if cell not in elites or objective > elites[cell][0]:
                elites[cell] = (float(objective), measures)
        there = archive.elites
        assert there.cell.tolist() == sorted(elites)
        np.testing.assert_array_equal(there.objective, [elites[cell][0] for cell in there.cell.tolist()])
        np.testing.assert_array_equal(there.measures, [elites[cell][1] for cell in there.cell.tolist()])
        assert sorted(np.asarray(archive.occupied)[: len(archive)].tolist()) == sorted(elites)
        assert archive.qd_score == pytest.approx(sum(f + 3 for f, _ in elites.values()) / 30, rel=1e-5)
        assert result.outside.sum() == 0 or kind == "sliding"
    assert moves >= 5


def best_by_cell(cells, elites):
    """The rows in the order of their old cells; of equals the first stays."""
    found = {}
    for _, (objective, measures) in elites:
        cell = int(cells.index_of(measures))
        if cell not in found or objective > found[cell][0]:
            found[cell] = (objective, measures)
    return found


@pytest.mark.x64
def test_edges_are_those_of_pyribs_for_the_same_candidates():
    theirs = SlidingBoundariesArchive(
        solution_dim=N, dims=[6, 5], ranges=[(-1, 1), (0, 9000)], remap_frequency=45, buffer_capacity=40
    )
    ours = Archive.empty(SlidingBoundaries([6, 5], [-1, 0], [1, 9000], every=45, remembered=40), N)
    nothing = (np.zeros((1, N)), np.zeros(1), np.full((1, 2), np.nan))  # a batch before which edges move, if due
    for batch in batches(1):
        theirs.add(*batch)
        ours, _ = add(ours, *told(batch))
        ours, _ = add(ours, *told(nothing))
        for own, other in zip(ours.to_numpy().tessellation.edges, theirs.boundaries, strict=True):
            np.testing.assert_array_equal(own, other)


def test_thresholds_move_with_their_cells():
    archive = Archive.empty(UnboundedGrid([4, 4]), N, threshold=Threshold(0.1, -5.0))
    for batch in batches(2):
        archive, _ = add(archive, *told(batch))
    empty = np.asarray(archive.objective) == -np.inf
    assert np.all(np.asarray(archive.threshold)[empty] == -5.0)
    assert np.all(np.asarray(archive.threshold)[~empty] > -5.0)


def test_what_is_not_valid_stretches_nothing():
    archive = Archive.empty(UnboundedGrid([4, 4]), N)
    far = jnp.full((BATCH, 2), 1e9)
    solutions, evaluation = told(next(batches(3)))
    archive, _ = add(archive, solutions, evaluation)
    before = archive.to_numpy().tessellation
    for bad in (
        Evaluation(jnp.full(BATCH, jnp.nan), far),
        Evaluation(evaluation.objective, far, feasible=jnp.zeros(BATCH, bool)),
        Evaluation(evaluation.objective, far * jnp.inf),
    ):
        archive, _ = add(archive, solutions, bad)
    assert archive.to_numpy().tessellation == before
    huge, _ = add(archive, solutions, Evaluation(evaluation.objective, far * 1e29))
    assert np.isfinite(huge.to_numpy().tessellation.upper).all()


def test_one_point_alone_makes_a_range_that_can_be_told_apart():
    for place in ([0.0, 0.0], [1e6, -1e-6]):
        archive = Archive.empty(UnboundedGrid([100, 100]), N)
        archive, _ = add(archive, jnp.zeros((1, N)), Evaluation(jnp.ones(1), jnp.asarray([place])))
        archive.to_numpy().tessellation.check_precision(np.float32)
        assert len(archive) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_have_met_nothing_can_be_saved(kind, tmp_path):
    saved = dqd.load(Archive.empty(KINDS[kind], N).save(tmp_path / "empty.npz"))
    assert (len(saved), saved.tessellation.num_cells) == (0, 30)


def test_wrong_descriptions_are_refused_in_words():
    with pytest.raises(ValueError, match=r"UnboundedGrid: a range to begin with has two ends"):
        dqd.UnboundedGrid([10, 10], lower=[0, 0])
    with pytest.raises(ValueError, match=r"SlidingBoundaries: shape must hold whole numbers"):
        dqd.SlidingBoundaries([2.5, 10])
    with pytest.raises(ValueError, match=r"SlidingBoundaries: every: expected a whole number"):
        dqd.SlidingBoundaries([10], every=0)
    with pytest.raises(ValueError, match=r"sigma: dqd.UnboundedGrid has no cells beforehand"):
        dqd.illuminate(lambda x: (x[0], x[:1]), dqd.cma_mega(), UnboundedGrid([5]), x0=jnp.zeros(2), iterations=1)
    with pytest.raises(TypeError, match=r"archive: dqd.UnboundedGrid has no cells that stay"):
        dqd.illuminate(lambda x: (x[0], x[:1]), dqd.targeting(), UnboundedGrid([5]), x0=jnp.zeros(2), iterations=1)
