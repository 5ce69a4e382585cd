"""The archive against a dictionary: whatever is added, saved, loaded, merged and sampled, both hold the same elites."""

import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import dqd

B, N = 4, 2  # one batch size, so that nothing is compiled twice
GRID = dqd.Grid([0.0, 0.0], [3.0, 4.0], [3, 4])
add = jax.jit(dqd.Archive.add)
sample = jax.jit(dqd.Archive.sample, static_argnums=2)
total_of = jax.jit(lambda archive: archive.total.share(1))


class Model:
    """An archive as a dictionary: cell -> (objective, measures, solution)."""

    def __init__(self):
        self.elites, self.best = {}, -np.inf

    def add(self, objective, measures, solution):
        """What became of the candidate: 0 rejected, 1 improved, 2 new; and its value."""
        if not np.isfinite([objective, *measures]).all():
            return 0, -np.inf
        self.best = max(self.best, objective)
        cell = self.cell(measures)
        if cell not in self.elites:
            self.elites[cell] = (objective, measures, solution)
            return 2, objective
        stored = self.elites[cell][0]
        if objective > stored:  # of equals the first stays
            self.elites[cell] = (objective, measures, solution)
        return int(objective > stored), objective - stored

    @staticmethod
    def cell(measures):
        x, y = (int(np.clip(np.floor(m + 1e-6), 0, count - 1)) for m, count in zip(measures, GRID.shape, strict=True))
        return x * GRID.shape[1] + y


objectives = st.one_of(st.integers(-2, 3).map(float), st.just(float("nan")), st.floats(-4, 4, width=16))
places = st.one_of(st.integers(-1, 5).map(float), st.floats(-1, 5, width=16), st.just(float("inf")))
candidates = st.lists(st.tuples(objectives, places, places), min_size=B, max_size=B)


class Comparison(RuleBasedStateMachine):
    sequences = 0

    @initialize()
    def start(self):
        self.archive, self.model, self.added = dqd.Archive.empty(GRID, N), Model(), 0
        type(self).sequences += 1

    @rule(batch=candidates)
    def add(self, batch):
        self.archive = self._add(self.archive, self.model, batch)

    def _add(self, archive, model, batch):
        rows = np.array(batch, np.float32)
        solutions = np.arange(self.added, self.added + B * N, dtype=np.float32).reshape(B, N)  # no two alike
        self.added += B * N
        archive, result = add(archive, solutions, dqd.Evaluation(rows[:, 0], rows[:, 1:]))
        expected = [model.add(row[0], tuple(row[1:]), tuple(x)) for row, x in zip(rows, solutions, strict=True)]
        assert np.asarray(result.status).tolist() == [status for status, _ in expected]
        np.testing.assert_array_equal(result.value, [value for _, value in expected])
        return archive

    @rule(batches=st.lists(candidates, min_size=1, max_size=3))
    def merge(self, batches):
        """The elites of another archive are added to this one, as many at a time as a batch holds."""
        other, theirs = dqd.Archive.empty(GRID, N), Model()
        for batch in batches:
            other = self._add(other, theirs, batch)
        elites = other.elites
        for first in range(0, len(elites), B):
            rows = np.arange(first, first + B) % len(elites)  # the last batch is filled up with some once more
            chosen = (elites.objective[rows], elites.measures[rows], elites.solutions[rows])
            self.archive, _ = add(self.archive, chosen[2], dqd.Evaluation(*chosen[:2]))
            for objective, measures, solution in zip(*chosen, strict=True):
                self.model.add(objective, tuple(measures), tuple(solution))

    @rule(suffix=st.sampled_from([".npz", ".safetensors", ".csv", ".parquet"]))
    def save_and_load(self, suffix):
        with tempfile.TemporaryDirectory() as folder:
            saved = dqd.load(self.archive.save(Path(folder) / f"archive{suffix}"))
        best = float(self.archive.best)
        self.archive = dqd.Archive.from_numpy(saved)
        assert float(self.archive.best) == best

    @precondition(lambda self: self.model.elites)
    @rule(seed=st.integers(0, 1000))
    def sample(self, seed):
        stored = {solution for _, _, solution in self.model.elites.values()}
        drawn = {tuple(row) for row in np.asarray(sample(self.archive, jax.random.key(seed), 64))}
        assert drawn <= stored
        assert len(drawn) > len(stored) / 2  # 64 draws among at most 12 elites

    @precondition(lambda self: not self.model.elites)
    @rule()
    def sample_nothing(self):
        with pytest.raises(ValueError, match="the archive is empty"):
            self.archive.sample(jax.random.key(0), 3)

    @rule(measures=st.tuples(st.floats(-1, 5, width=16), st.floats(-1, 5, width=16)))
    def retrieve(self, measures):
        found, expected = self.archive.retrieve(measures), self.model.elites.get(Model.cell(measures))
        assert found.occupied[0] == (expected is not None)
        if expected is not None:
            assert tuple(found.solutions[0]) == expected[2]

    @invariant()
    def they_hold_the_same(self):
        if not hasattr(self, "model"):
            return
        elites, expected = self.archive.elites, sorted(self.model.elites.items())
        assert elites.cell.tolist() == [cell for cell, _ in expected]
        for i, name in enumerate(("objective", "measures", "solutions")):
            assert getattr(elites, name).tolist() == [np.asarray(elite[i]).tolist() for _, elite in expected]
        assert len(self.archive) == len(expected)
        total = sum(float(elite[0]) for _, elite in expected)
        assert float(total_of(self.archive)) == pytest.approx(total, abs=1e-5)


def compare(sequences, first=0):
    """In rounds of their own, as Hypothesis keeps every sequence of a round in memory."""
    Comparison.sequences = 0
    options = {
        "max_examples": min(sequences, 100),
        "stateful_step_count": 12,
        "suppress_health_check": list(HealthCheck),
    }
    while Comparison.sequences < sequences:
        seeded = seed(first + Comparison.sequences)(Comparison)
        run_state_machine_as_test(seeded, settings=settings(**options, database=None))
    return Comparison.sequences


def test_the_archive_is_a_dictionary_of_elites():
    assert compare(40) >= 40


@pytest.mark.long
def test_the_archive_is_a_dictionary_of_elites_for_long():
    assert compare(5_000, first=1_000_000) >= 5_000
