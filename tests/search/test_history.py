"""The history of a run: every iteration of a short one, a bounded number of rows of a long one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqd.archives import Metrics
from dqd.inputs.names import METRICS
from dqd.search import history
from dqd.search.history import History


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
    return Metrics(**{name: 1000 * number + rows for number, name in enumerate(METRICS)})


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
    for number, name in enumerate(METRICS):
        rows = arrays[name] - 1000 * number
        np.testing.assert_allclose(rows[:, 0] if seeds and total else rows, expected)
    if total:
        assert found.latest()["coverage"] == pytest.approx(1000 + total + (seeds - 1) / 20 * bool(seeds))


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
