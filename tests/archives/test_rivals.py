"""Both forms of looking at rivals give the same answers, and those of candidates that come one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dqd
from dqd.archives import rivals
from dqd.archives.rivals import Pairs, Runs
from dqd.archives.threshold import Threshold
from dqd.emitters import rank
from dqd.types import Evaluation

SIZE = 23
# Few cells and few values, so that ties and crowds are the rule.
CELLS = st.lists(st.integers(0, 5), min_size=SIZE, max_size=SIZE)
VALUES = st.lists(st.sampled_from([-jnp.inf, -2.0, -0.0, 0.0, 0.5, 3.0]), min_size=SIZE, max_size=SIZE)
FLAGS = st.lists(st.booleans(), min_size=SIZE, max_size=SIZE)


@jax.jit
def answers(cell, values, flags):
    def of(among):
        walked = among.walk(values.clip(-9), lambda met: met + 0.25 * jnp.maximum(values.clip(-9) - met, 0))
        highest = among.highest_before(values), among.highest(values)
        return *highest, among.first(flags), among.best(flags, values), walked

    return of(Pairs.of(cell)), of(Runs.of(cell))


def one_by_one(cell, values, flags):
    before, highest, first, best, walked = [], [], [], [], []
    for i in range(SIZE):
        earlier = [j for j in range(i) if cell[j] == cell[i]]
        before.append(max((values[j] for j in earlier), default=-np.inf))
        highest.append(max(values[j] for j in range(SIZE) if cell[j] == cell[i]))
        first.append(flags[i] and not any(flags[j] for j in earlier))
        others = [j for j in range(SIZE) if cell[j] == cell[i] and flags[j]]
        best.append(flags[i] and i == max(others, key=lambda j: (values[j], -j)))
        met = max(values[i], -9)
        if earlier:
            met, target = walked[earlier[-1]], max(values[earlier[-1]], -9)
            met = met + 0.25 * max(target - met, 0)
        walked.append(met)
    return before, highest, first, best, walked


@given(CELLS, VALUES, FLAGS)
def test_pairs_and_runs_answer_as_candidates_that_come_one_by_one(cell, values, flags):
    # A candidate of which the flag is set has a value.
    flags = [flag and value > -np.inf for flag, value in zip(flags, values, strict=True)]
    wanted = one_by_one(cell, values, flags)
    for form in answers(jnp.array(cell), jnp.array(values), jnp.array(flags)):
        for got, want in zip(form, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want, np.asarray(got).dtype))


@given(st.lists(st.integers(0, 2), min_size=SIZE, max_size=SIZE), VALUES)
def test_counted_and_sorted_ranks_are_the_same(status, value):
    status, value = jnp.array(status), jnp.array(value)
    np.testing.assert_array_equal(jax.jit(rank.counted)(status, value), jax.jit(rank.sorted_out)(status, value))


@pytest.mark.parametrize("learning_rate", [1.0, 0.1])
def test_an_archive_judges_a_batch_alike_in_both_forms(learning_rate, monkeypatch):
    random = np.random.default_rng(3)
    grid = dqd.Grid([0, 0], [1, 1], [4, 5])
    solutions = random.normal(size=(400, 3))
    objective = np.round(random.normal(size=400), 1)  # ties
    objective[::17] = np.nan
    measures = random.uniform(-0.1, 1.1, size=(400, 2))

    def filled(most):
        monkeypatch.setattr(rivals, "MOST_PAIRED", {"cpu": most, "gpu": most})
        add = jax.jit(lambda archive, *batch: archive.add(*batch, iteration=1))  # anew, with another form
        archive = dqd.Archive.empty(grid, 3, threshold=Threshold(learning_rate, -1.0))
        results = []
        for batch in (slice(0, 300), slice(300, 400)):
            rows = Evaluation(jnp.array(objective[batch]), jnp.array(measures[batch]))
            archive, result = add(archive, jnp.array(solutions[batch]), rows)
            results.append(result)
        return archive, results

    pairs, runs = jax.tree.leaves(filled(10_000)), jax.tree.leaves(filled(0))
    assert len(pairs) == len(runs)
    for one, other in zip(pairs, runs, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
