"""NaN and infinity cost themselves only: whatever evaluations and gradients say, the archive holds finite numbers, no
elite ever worsens, and every bad sample is counted once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import quick_to_compile
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from small import mostly_long

import dqd
from dqd.emitters.scale import scaled
from dqd.paper.presets import ALGORITHMS, preset

B, K, N = 6, 2, 3
GRID = dqd.Grid([-2.0, -1.0], [2.0, 3.0], [4, 3])
BAD = [np.nan, np.inf, -np.inf]
HUGE = 3e38  # finite in float32, its square is not

add = jax.jit(dqd.Archive.add)
numbers = st.one_of(
    st.floats(-5, 5, width=32), st.integers(-3, 3).map(float), st.sampled_from([*BAD, HUGE, -HUGE, 0.0, -0.0, 1e-45])
)


# A batch: rows of objective, measures, and a solution that may be bad too.
rows = st.lists(st.lists(numbers, min_size=1 + K + N, max_size=1 + K + N), min_size=B, max_size=B)


def generated(examples, strategy, check, first=0):
    """In rounds of their own, as Hypothesis keeps every example of a round in memory."""
    for number in range(first, first + examples, 500):
        options = {"max_examples": min(examples, 500), "suppress_health_check": list(HealthCheck), "database": None}
        seed(number)(settings(**options)(given(strategy)(check)))()


def assert_sound(before, after):
    """Finite data only, and no elite is worse than it was."""
    elites = after.elites
    for name in ("objective", "measures", "solutions"):
        assert np.isfinite(getattr(elites, name)).all(), name
    assert np.array_equal(elites.cell, np.sort(np.asarray(after.occupied)[: len(after)]))
    assert (np.asarray(after.objective) >= np.asarray(before.objective)).all()


class Growing:
    """One archive that lives through all batches, so that most candidates meet an elite."""

    def __init__(self):
        self.archive, self.batches = dqd.Archive.empty(GRID, N), 0

    def add(self, rows):
        rows = np.array(rows, np.float32)
        objective, measures, solutions = rows[:, 0], rows[:, 1 : 1 + K], rows[:, 1 + K :]
        before = self.archive
        self.archive, result = add(before, solutions, dqd.Evaluation(objective, measures))
        finite = np.isfinite(rows).all(axis=1)
        assert_sound(before, self.archive)
        np.testing.assert_array_equal(result.cell < GRID.num_cells, finite)
        status, value = np.asarray(result.status), np.asarray(result.value)
        assert (status[~finite] == 0).all()
        assert np.isneginf(value[~finite]).all()
        assert not np.isnan(value).any()
        for i in np.flatnonzero(finite):  # the rest of the batch is used
            cell = int(result.cell[i])
            assert self.archive.objective[cell] >= objective[i]
        self.batches += 1
        if self.batches % 200 == 0:
            self.archive = dqd.Archive.empty(GRID, N)


def check_batches(examples, first=0):
    growing = Growing()
    generated(examples, rows, lambda rows: growing.add(rows), first)
    return growing.batches


def test_batches_with_bad_numbers():
    assert check_batches(400) >= 400


@pytest.mark.long
def test_many_batches_with_bad_numbers():
    assert check_batches(20_000, first=1_000_000) >= 20_000


# Through the emitters -------------------------------------------------------------------------------------------------

SIZES = {name: {"batch_size": 12, "stepped": 4} for name in ALGORITHMS if name.endswith("independent")}
SIZES |= {name: {"batch_size": 30} for name in ("cma-mae", "dds", "dms")}  # of 15 emitters
SIZES |= {name: {"batch_size": 45} for name in ("cma-maega", "dds-mega", "dms-mega")}
SIZES |= {"squad": {"batch_size": 8, "scale": 1.0}}  # with nothing to find out before the search


def searching(name, seed):
    emitter = preset("lp-sphere", name, **SIZES.get(name, {"batch_size": 8}))
    emitter = scaled(emitter, lambda along: 1.0)  # a sigma that is left out is looked for in rounds of their own
    return dqd.AskTell(emitter, dqd.Grid([-8.0, -8.0], [8.0, 8.0], [10, 10]), x0=np.zeros(4), seed=seed)


def poisoned(chance, *arrays):
    """Arrays in which some numbers are bad, from none to all."""
    share = chance.choice([0.0, 0.02, 0.2, 0.6, 1.0])
    for array in arrays:
        hit = chance.random(array.shape) < share / array[0].size if len(array) else np.zeros(array.shape, bool)
        array[hit] = chance.choice([*BAD, 1e38, -1e38], size=hit.sum())
    return arrays


def bad_rows(*arrays):
    return ~np.all([np.isfinite(array).reshape(len(array), -1).all(axis=1) for array in arrays], axis=0)


def answers(chance, solutions):
    with np.errstate(all="ignore"):
        objective = -np.sum(np.tanh(solutions) ** 2, axis=1, dtype=np.float32)
        measures = np.clip(solutions[:, :2], -9, 9)  # finite even where the solution is not
    return poisoned(chance, objective, np.array(measures))


def rounds(name, examples, count):
    """Rounds of ask and tell, answered with bad numbers; how many batches were told."""
    told = 0

    def play(number):
        nonlocal told
        chance, search, expected = np.random.default_rng(number), searching(name, number % 1000), 0
        for _ in range(count):
            before, points = search.archive, search.ask_dqd()
            if len(points):
                objective, measures = answers(chance, points)
                (jacobian,) = poisoned(chance, chance.normal(size=(len(points), 3, 4)).astype(np.float32))
                expected += bad_rows(points, objective, measures, jacobian).sum()
                search.tell_dqd(objective, measures, jacobian)
                told += 1
            solutions = search.ask()
            objective, measures = answers(chance, solutions)
            expected += bad_rows(solutions, objective, measures).sum()
            search.tell(objective, measures)
            told += 1
            assert_sound(before, search.archive)
            assert search.result().nonfinite == expected
        fresh = search.ask_dqd() if len(search.ask_dqd()) else search.ask()
        assert np.isfinite(fresh).all()  # the search itself is well

    with quick_to_compile():
        generated(examples, st.integers(0, 2**32 - 1), play)
    return told


@pytest.mark.parametrize(
    "name", mostly_long(ALGORITHMS, "cma-mega", "omg-mega", "cma-mae", "dms", "squad", "targeting")
)
def test_emitters_live_through_bad_numbers(name):
    assert rounds(name, examples=4, count=25) >= 100


@pytest.mark.long
@pytest.mark.parametrize("name", ALGORITHMS)
def test_emitters_live_through_many_bad_numbers(name):
    assert rounds(name, examples=40, count=50) >= 1_700


# A run that is mostly bad ---------------------------------------------------------------------------------------------


def bad_share(share):
    """A function that is NaN for this share of the solutions."""

    def score(x):
        low = jax.scipy.stats.norm.cdf(x[0]) < share  # random sampling draws from N(0, 1)
        return jnp.where(low, jnp.nan, -jnp.sum(x**2)), x[:2]

    return score


def sampled(share):
    emitter = dqd.random_sampling(1.0, batch_size=50)
    return dqd.illuminate(bad_share(share), emitter, GRID, x0=jnp.zeros(3), iterations=200, chunk=20, progress=False)


@pytest.mark.parametrize("share", [0.6, 1.0])
def test_a_run_of_mostly_bad_numbers_stops_and_says_why(share):
    with pytest.raises(dqd.NonFiniteError, match=r"of the last \d,\d{3} evaluations were NaN or infinite"):
        sampled(share)


def test_a_run_of_less_than_half_bad_numbers_goes_on():
    result = sampled(0.4)
    assert result.iterations == 200
    assert 0.37 < result.nonfinite / result.evaluations < 0.43
