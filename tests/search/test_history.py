"""The history of a run: every iteration of a short one, a bounded number of rows of a long one."""

import jax.numpy as jnp
import numpy as np
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

import dqd
from dqd.archives.exact_sum import ExactSum
from dqd.archives.metrics import Standing
from dqd.search import history
from dqd.search.history import COLUMNS, History
from dqd.search.search import Tally


@pytest.fixture(autouse=True, scope="module")
def few_rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "MOST_ROWS", 10)
        patch.setattr(history, "MANY_PARTS", 3)
        yield


def infos(first, count, seeds):
    """Metrics that tell the iteration, the name and the seed."""
    rows = np.arange(first, first + count, dtype=float).reshape(-1, *([1] * bool(seeds)))
    rows = rows + np.arange(seeds) / 10 if seeds else rows
    return {name: 1000 * number + rows for number, name in enumerate(COLUMNS)}


def grown(chunks, seeds=0, found=None):
    found = found or History()
    for count in chunks:
        found.append(infos(found.done + 1, count, seeds))
    return found


chunk_lists = st.lists(st.integers(1, 30), max_size=20)


@given(chunk_lists, st.sampled_from([0, 1, 3]))
def test_rows_stand_at_the_multiples_of_a_power_of_two_and_at_the_end(chunks, seeds):
    found, total = grown(chunks, seeds), sum(chunks)
    stride = next(2**power for power in range(20) if total // 2**power <= 10)
    expected = sorted({*range(stride, total + 1, stride), *([total] if total else [])})
    arrays = found.arrays()
    assert found.done == total
    assert arrays["iteration"].tolist() == expected
    assert len(expected) <= 11
    for number, name in enumerate(COLUMNS):
        rows = arrays[name] - 1000 * number
        np.testing.assert_allclose(rows[:, 0] if seeds and total else rows, expected)
    if total:
        assert found.latest()["coverage"] == pytest.approx(2000 + total + (seeds - 1) / 20 * bool(seeds))


@given(chunk_lists, chunk_lists, st.sampled_from([0, 2]))
def test_one_that_was_stored_goes_on_as_if_it_had_not_been(before, after, seeds):
    undisturbed = grown([*before, *after], seeds).arrays()
    resumed = grown(after, seeds, History.restored(grown(before, seeds).arrays())).arrays()
    for name, rows in undisturbed.items():
        np.testing.assert_array_equal(resumed[name], rows)


def test_other_rows_are_refused():
    arrays = grown([25]).arrays()
    with pytest.raises(ValueError, match="other rows"):
        History.restored({name: rows[1:] for name, rows in arrays.items()})


def test_evaluations_are_those_of_every_iteration_and_of_the_initial_population():
    emitter = dqd.combine(dqd.omg_mega(0.5, batch_size=8, initial_population=20), dqd.map_elites(0.5, batch_size=3))
    result = small.illuminate(emitter=emitter, seeds=[1, 2], iterations=5, initial_sigma=0.1)
    begun = emitter.initial_population
    assert result.history["evaluations"].tolist() == [[begun + 11 * i] * 2 for i in range(1, 6)]
    assert result[1].history["evaluations"][-1] == result[1].evaluations
    assert [row["evaluations"] for row in result[0].to_numpy().metrics] == [begun + 11 * i for i in range(1, 6)]


def test_counts_beyond_32_bits_are_read():
    tally = Tally(jnp.full(7, 3_000), jnp.full(7, 5), jnp.zeros(3, bool))
    rows = Standing.of(ExactSum.zero(jnp.float32), jnp.array(0), jnp.array(0.0), tally.spent)
    assert rows.columns(10, 0.0)["evaluations"] == 2 * (3_000 * 2**20 + 5) == tally.evaluations
