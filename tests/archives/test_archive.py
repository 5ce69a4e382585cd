import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import mostly_long

from dqd.archives import IMPROVED, NEW, REJECTED, Archive, Grid, Threshold, memory
from dqd.types import Evaluation, replace

INF, NAN = math.inf, math.nan
SMALL = Grid([0, 0], [3, 2], [3, 2])
add = jax.jit(Archive.add)

# learning rates are powers of 2: their products are exact, so compiled and plain arithmetic agree bit for bit
SETTINGS = [(1.0, -INF), (1.0, 0.25), (0.5, -1.0), (0.25, 0.0), (0.0, 0.5)]


def archive_of(*batches, grid=SMALL, n=1, **options):
    """Insert batches of (solutions, objective, measures), numbered from 1; return the archive and all results."""
    archive, results = Archive.empty(grid, n, **options), []
    for iteration, (solutions, objective, measures) in enumerate(batches, 1):
        evaluation = Evaluation(jnp.asarray(objective, float), jnp.asarray(measures, float))
        archive, result = add(archive, jnp.asarray(solutions, float), evaluation, iteration)
        results.append(result)
    return archive, results


@pytest.mark.parametrize(("rate", "in_order"), [(1.0, True), (0.5, False)])
def test_two_batches_leave_what_they_leave_as_one(rate, in_order):
    random, threshold = np.random.default_rng(0), Threshold(rate, -INF if rate == 1 else 0.0)
    one = other = Archive.empty(SMALL, 1, threshold=threshold)
    assert one.takes_in_order == in_order
    for iteration in range(6):
        solutions, objective = random.normal(size=(9, 1)), random.integers(0, 4, 9) + random.random() * iteration
        told = Evaluation(jnp.asarray(objective), jnp.asarray(random.uniform(0, 3, (9, 2))))
        parts = [jax.tree.map(lambda leaf, part=part: leaf[part], told) for part in (slice(2), slice(2, None))]
        one, together = add(one, jnp.asarray(solutions), told, iteration)
        other, first = add(other, jnp.asarray(solutions[:2]), parts[0], iteration)
        other, second = add(other, jnp.asarray(solutions[2:]), parts[1], iteration)
        for a, *b in zip(jax.tree.leaves(together), jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
            np.testing.assert_array_equal(a, np.concatenate(b))
    assert one.qd_score == other.qd_score
    for a, b in zip(*(jax.tree.leaves(replace(each, total=None)) for each in (one, other)), strict=True):
        np.testing.assert_array_equal(a, b)


# Against a dictionary, one candidate after the other ------------------------------------------------------------------


class Dictionary:
    """The archive in the plainest Python. A dict remembers the order of first insertion."""

    def __init__(self, learning_rate, minimum):
        self.rate, self.minimum = learning_rate, minimum
        self.elites, self.thresholds = {}, {}
        self.best, self.judged, self.outside = -INF, 0, 0

    def add(self, solution, f, m, iteration, wanted):
        if not (wanted and math.isfinite(f) and all(map(math.isfinite, m))):
            return REJECTED, -INF, 6
        cell = min(max(int(m[0]), 0), 2) * 2 + min(max(int(m[1]), 0), 1)
        self.best, self.judged = max(self.best, f), self.judged + 1
        self.outside += not (0 <= m[0] <= 3 and 0 <= m[1] <= 2)
        threshold = self.thresholds.get(cell, self.minimum)
        value = f if threshold == -INF else f - threshold
        if f <= threshold:
            return REJECTED, value, cell
        self.thresholds[cell] = f if self.rate == 1 else threshold + self.rate * max(f - threshold, 0)
        status = IMPROVED if cell in self.elites else NEW
        if cell not in self.elites or f > self.elites[cell][0]:
            self.elites[cell] = (f, solution, m, iteration)
        return status, value, cell


quarters = st.integers(-8, 8).map(lambda i: i / 4)
objectives = st.one_of(quarters, quarters, quarters, st.sampled_from([NAN, INF, -INF]))
coordinates = st.sampled_from([0.5, 1.5, 0.25, 1.75, 2.5, -7.5, 1e12, NAN, INF])
candidates = st.tuples(objectives, st.tuples(coordinates, coordinates), st.sampled_from([True, True, True, False]))
batches = st.lists(st.lists(candidates, min_size=8, max_size=8), min_size=1, max_size=4)


@pytest.mark.x64
@pytest.mark.parametrize(("learning_rate", "minimum"), mostly_long(SETTINGS, (1.0, -INF), (0.25, 0.0), (0.0, 0.5)))
@settings(max_examples=30)
@given(batches)
def test_a_batch_is_judged_as_if_its_candidates_came_one_by_one(learning_rate, minimum, batches):
    model = Dictionary(learning_rate, minimum)
    archive = Archive.empty(SMALL, 1, threshold=Threshold(learning_rate, minimum), qd_score_offset=-3.0)
    judged = outside = 0
    for iteration, batch in enumerate(batches):
        solutions = 10.0 * iteration + np.arange(8.0)
        rows = zip(solutions, batch, strict=True)
        expected = [model.add(x, f, m, iteration, wanted) for x, (f, m, wanted) in rows]
        f, m, mask = (jnp.array(column) for column in zip(*batch, strict=True))
        archive, result = add(archive, jnp.asarray(solutions)[:, None], Evaluation(f, m), iteration, mask)
        got = zip(result.status.tolist(), result.value.tolist(), result.cell.tolist(), strict=True)
        assert list(got) == expected
        judged, outside = judged + sum(result.cell < 6), outside + sum(result.outside)

    count = len(model.elites)
    assert archive.count == len(archive) == count
    assert archive.occupied[:count].tolist() == list(model.elites)  # in the order of first occupation
    empty = (-INF, 0.0, (0.0, 0.0), -1)
    for cell in range(6):
        f, solution, m, iteration = model.elites.get(cell, empty)
        assert archive.objective[cell] == f
        assert archive.solutions[cell].tolist() == [solution]
        assert tuple(archive.measures[cell].tolist()) == m
        assert archive.found[cell] == iteration
        if archive.threshold is not None:
            assert archive.threshold[cell] == model.thresholds.get(cell, minimum)
    assert (archive.best, judged, outside) == (model.best, model.judged, model.outside)
    total = sum(f for f, *_ in model.elites.values())
    assert archive.metrics.qd_score == pytest.approx((total + 3.0 * count) / 6, abs=1e-12)
    assert archive.metrics.coverage == pytest.approx(100 * count / 6)
    assert archive.metrics.mean == pytest.approx(total / count if count else NAN, nan_ok=True)


# The insertion rule, case by case -------------------------------------------------------------------------------------


def test_an_archive_that_does_not_fit_says_how_large_it_is(monkeypatch):
    grid = Grid(lower=(0, 0), upper=(1, 1), shape=(100, 100))
    monkeypatch.setattr(memory, "memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"10,000 cells .* of 100 numbers take 0\.0 GB, and the device has 0\.0 GB"):
        Archive.empty(grid, 100)
    Archive.empty(grid, 10)


def test_the_memory_of_this_device_is_known():
    assert memory.memory() > 2**28


def test_an_empty_cell_takes_any_finite_objective_and_its_value_is_the_objective():
    archive, (result,) = archive_of(([[1.0]], [-1e6], [[0.5, 0.5]]))
    assert (result.status.tolist(), result.value.tolist()) == ([NEW], [-1e6])
    assert archive.objective[0] == -1e6


def test_an_equal_objective_never_replaces_the_elite():
    batch = ([[1.0], [2.0], [3.0]], [4.0, 4.0, 4.0], [[0.5, 0.5]] * 3)
    archive, results = archive_of(batch, batch)
    assert [result.status.tolist() for result in results] == [[NEW, REJECTED, REJECTED], [REJECTED] * 3]
    assert [result.value.tolist() for result in results] == [[4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert (archive.solutions[0], archive.found[0]) == (1.0, 1)


def test_of_two_equals_the_earlier_is_stored_even_when_both_beat_the_threshold():
    batch = ([[1.0], [2.0]], [4.0, 4.0], [[0.5, 0.5], [0.25, 0.25]])
    archive, (result,) = archive_of(batch, threshold=Threshold(0.5, 0.0))
    assert (result.status.tolist(), result.value.tolist()) == ([NEW, IMPROVED], [4.0, 2.0])
    assert (archive.solutions[0], archive.threshold[0], archive.count) == (1.0, 3.0, 1)


def test_candidates_of_one_batch_in_one_cell_raise_the_bar_for_each_other():
    archive, (result,) = archive_of((np.arange(5.0)[:, None], [2.0, 1.0, 5.0, 4.0, 9.0], [[0.5, 0.5]] * 5))
    assert result.status.tolist() == [NEW, REJECTED, IMPROVED, REJECTED, IMPROVED]
    assert result.value.tolist() == [2.0, -1.0, 3.0, -1.0, 4.0]
    assert (archive.objective[0], archive.count) == (9.0, 1)


@pytest.mark.parametrize(("learning_rate", "minimum"), SETTINGS)
def test_every_field_of_a_winner_comes_from_the_same_candidate(learning_rate, minimum):
    generator = np.random.default_rng(3)
    objective = generator.integers(0, 6, (4, 64)).astype(float)  # many ties
    measures = generator.integers(0, 3, (4, 64, 2)) + generator.uniform(0.1, 0.9, (4, 64, 2))
    solutions = generator.normal(size=(4, 64, 3)).astype(np.float32)
    rounds = zip(solutions, objective, measures, strict=True)
    archive, _ = archive_of(*rounds, n=3, threshold=Threshold(learning_rate, minimum))
    assert archive.count == 6
    for cell in range(6):
        batch = int(archive.found[cell]) - 1
        (row,) = np.flatnonzero((solutions[batch] == np.asarray(archive.solutions[cell])).all(axis=1))
        assert archive.objective[cell] == objective[batch, row]
        np.testing.assert_array_equal(archive.measures[cell], measures[batch, row].astype(np.float32))


def test_a_threshold_decides_acceptance_but_a_worse_solution_never_replaces_a_better_one():
    cell = [[0.5, 0.5]]
    archive, results = archive_of(
        ([[1.0]], [8.0], cell), ([[2.0]], [6.0], cell), ([[3.0]], [5.0], cell), threshold=Threshold(0.5, 0.0)
    )
    assert [int(result.status[0]) for result in results] == [NEW, IMPROVED, REJECTED]  # thresholds 0, 4, 5
    assert [float(result.value[0]) for result in results] == [8.0, 2.0, 0.0]
    assert (archive.objective[0], archive.solutions[0], archive.found[0]) == (8.0, 1.0, 1)


def test_below_the_minimum_an_empty_cell_stays_empty():
    archive, (result,) = archive_of(([[1.0], [2.0]], [-0.5, 0.5], [[0.5, 0.5]] * 2), threshold=Threshold(1.0, 0.0))
    assert (result.status.tolist(), result.value.tolist()) == ([REJECTED, NEW], [-0.5, 0.5])
    assert archive.solutions[0] == 2.0


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_candidate_that_is_not_finite_costs_one_candidate(bad):
    clean = ([[1.0], [2.0]], [3.0, 1.0], [[0.5, 0.5], [2.5, 1.5]])
    dirty = (
        [[1.0], [9.0], [8.0], [2.0]],
        [3.0, bad, 7.0, 1.0],
        [[0.5, 0.5], [0.5, 0.5], [1.5, bad], [2.5, 1.5]],
    )
    expected, _ = archive_of(clean)
    archive, (result,) = archive_of(dirty)
    jax.tree.map(np.testing.assert_array_equal, archive, expected)
    assert result.status.tolist() == [NEW, REJECTED, REJECTED, NEW]
    assert result.value.tolist() == [3.0, -INF, -INF, 1.0]
    assert result.cell.tolist() == [0, 6, 6, 5]


def test_a_masked_candidate_leaves_no_trace():
    solutions, objective = jnp.arange(3.0)[:, None], jnp.array([1.0, 50.0, 3.0])
    evaluation = Evaluation(objective, jnp.array([[0.5, 0.5], [9.0, 9.0], [1.5, 0.5]]))
    masked, result = add(Archive.empty(SMALL, 1), solutions, evaluation, 1, jnp.array([True, False, True]))
    kept = jnp.array([0, 2])
    expected, _ = add(Archive.empty(SMALL, 1), solutions[kept], jax.tree.map(lambda leaf: leaf[kept], evaluation), 1)
    jax.tree.map(np.testing.assert_array_equal, masked, expected)
    assert result.status.tolist() == [NEW, REJECTED, NEW]


def test_measures_of_1e12_are_stored_in_the_top_border_cell():
    archive, (result,) = archive_of(([[1.0], [2.0]], [1.0, 1.0], [[1e12, 1e12], [-1e12, -1e12]]))
    assert result.cell.tolist() == [5, 0]
    assert archive.measures[5].tolist() == [np.float32(1e12)] * 2


def test_candidates_outside_the_range_are_named_unless_they_are_not_finite():
    measures = [[0.5, 0.5], [3.5, 0.5], [-1.0, 9.0], [NAN, 9.0], [3.0, 2.0]]
    _, results = archive_of((np.zeros((5, 1)), [1.0, 1.0, 1.0, 1.0, NAN], measures), (np.zeros((1, 1)), [0], [[4, 4]]))
    assert [result.outside.tolist() for result in results] == [[False, True, True, False, False], [True]]


def test_best_remembers_what_was_evaluated_not_what_was_stored():
    archive, _ = archive_of(([[1.0]], [8.0], [[0.5, 0.5]]), ([[1.0]], [2.0], [[1.5, 0.5]]))
    assert archive.metrics.best == 8.0
    refused, _ = archive_of(([[1.0]], [-2.0], [[0.5, 0.5]]), threshold=Threshold(minimum=0.0))
    assert (refused.metrics.best, refused.count) == (-2.0, 0)


def test_add_leaves_the_old_archive_and_its_arguments_alone():
    archive, _ = archive_of(([[1.0]], [1.0], [[0.5, 0.5]]))
    before = jax.tree.map(np.array, archive)
    solutions, objective, measures = np.array([[2.0]]), np.array([5.0]), np.array([[0.5, 0.5]])
    add(archive, jnp.asarray(solutions), Evaluation(jnp.asarray(objective), jnp.asarray(measures)))
    jax.tree.map(np.testing.assert_array_equal, archive, before)
    assert (solutions[0, 0], objective[0], measures[0, 0]) == (2.0, 5.0, 0.5)


def test_vmap_over_archives_equals_a_loop():
    generator = np.random.default_rng(0)
    solutions = jnp.asarray(generator.normal(size=(3, 20, 2)))
    found = Evaluation(jnp.asarray(generator.normal(size=(3, 20))), jnp.asarray(generator.uniform(-1, 4, (3, 20, 2))))
    empty = Archive.empty(SMALL, 2)
    together = jax.jit(jax.vmap(empty.add))(solutions, found)
    for i in range(3):
        alone = add(empty, solutions[i], Evaluation(found.objective[i], found.measures[i]))
        jax.tree.map(lambda all, one, i=i: np.testing.assert_array_equal(all[i], one), together, alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 1.5}, r"learning_rate: expected a number in \[0, 1\], got 1.5"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"learning_rate": NAN}, "learning_rate"),
        ({"learning_rate": 0.5}, "minimum: a learning rate of 0.5 needs a finite minimum"),
    ],
)
def test_wrong_settings_are_refused_in_words(options, message):
    with pytest.raises(ValueError, match=message):
        Threshold(**options)


# Reading --------------------------------------------------------------------------------------------------------------


def four_elites():
    """In six cells, first occupied in the order 5, 0, 3, 1."""
    measures = [[2.5, 1.5], [0.5, 0.5], [1.5, 1.5], [0.5, 1.5]]
    return archive_of((np.arange(4.0)[:, None], [5.0, 0.0, 3.0, 1.0], measures))[0]


def test_pick_maps_uniform_numbers_to_elites_in_the_order_of_occupation():
    uniform = jnp.array([0.0, 0.24, 0.26, 0.5, 0.76, np.nextafter(np.float32(1), np.float32(0))])
    assert four_elites().pick(uniform, jnp.zeros(1)).ravel().tolist() == [0, 0, 1, 2, 3, 3]


def test_pick_from_an_empty_archive_is_the_fallback():
    picked = Archive.empty(SMALL, 2).pick(jnp.array([0.0, 0.9]), jnp.array([7.0, -8.0]))
    assert picked.tolist() == [[7.0, -8.0]] * 2


def test_sampling_is_uniform_over_the_elites():
    drawn = np.asarray(four_elites().sample(jax.random.key(1), 40_000)).ravel().astype(int)
    counts = np.bincount(drawn, minlength=4)
    assert np.sum((counts - 10_000) ** 2 / 10_000) < 16.3  # 99.9 % quantile of chi-square with 3 degrees of freedom


def test_sampling_an_empty_archive_is_refused():
    with pytest.raises(ValueError, match="the archive is empty; add solutions first"):
        Archive.empty(SMALL, 1).sample(jax.random.key(0), 3)


def test_elites_come_in_the_order_of_their_cells():
    elites = four_elites().elites
    assert elites.cell.tolist() == [0, 1, 3, 5]
    assert elites.solutions.ravel().tolist() == [1, 3, 2, 0]
    assert elites.objective.tolist() == [0, 1, 3, 5]
    assert elites.found.tolist() == [1] * 4
    assert [(cell, objective) for cell, _, objective, _ in elites] == [(0, 0.0), (1, 1.0), (3, 3.0), (5, 5.0)]


def test_retrieve_finds_the_elite_of_each_cell_and_tells_empty_ones():
    archive, _ = archive_of(([[1.0], [2.0]], [3.0, 4.0], [[0.5, 0.5], [2.5, 1.5]]))
    found = archive.retrieve([[9.0, 9.0], [0.1, 0.2], [1.5, 0.5]])
    assert found.cell.tolist() == [5, 0, 2]
    assert found.occupied.tolist() == [True, True, False]
    assert found.solutions.ravel().tolist() == [2.0, 1.0, 0.0]
    assert found.objective.tolist() == [4.0, 3.0, -INF]
    assert archive.retrieve((0.5, 0.5)).solutions.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("measures", "message"), [([1.0, 2.0, 3.0], r"expected \(batch, 2\), got \(3,\)"), ([[NAN, 1.0]], "finite")]
)
def test_retrieve_refuses_wrong_measures_in_words(measures, message):
    with pytest.raises(ValueError, match=message):
        four_elites().retrieve(measures)


# Sums and copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, -600.0])
def test_running_sums_equal_a_fresh_sum_after_many_float32_insertions(offset):
    def body(archive, step):
        key, number = step
        a, b, c = jax.random.split(key, 3)
        measures = jax.random.uniform(a, (36, 2))
        # rises for ever, so that most insertions improve a cell by a little; half of the cells end far below zero
        objective = 90 + number / 75 + jax.random.normal(b, (36,)) - 700 * (measures[:, 0] < 0.5)
        return archive.add(jax.random.normal(c, (36, 1)), Evaluation(objective, measures))[0], None

    archive = Archive.empty(Grid([0, 0], [1, 1], [40, 40]), 1, qd_score_offset=offset)
    archive = jax.jit(lambda archive, keys: jax.lax.scan(body, archive, keys)[0])(
        archive, (jax.random.split(jax.random.key(0), 5_000), jnp.arange(5_000))
    )
    stored = np.asarray(archive.objective, np.float64)
    assert archive.count == 1600
    assert float(archive.metrics.qd_score) == pytest.approx(np.mean(stored - offset), rel=1e-6)
    assert float(archive.metrics.mean) == pytest.approx(np.mean(stored), rel=1e-6)


def test_the_offset_counts_occupied_cells_only_and_all_cells_divide():
    archive, _ = archive_of(([[1.0], [2.0]], [3.0, -5.0], [[0.5, 0.5], [2.5, 1.5]]), qd_score_offset=-10.0)
    assert archive.metrics.qd_score == pytest.approx((13.0 + 5.0) / 6)
    assert archive.metrics.mean == -1.0


def test_figures_of_an_empty_archive():
    metrics = Archive.empty(SMALL, 1).metrics
    assert (metrics.qd_score, metrics.coverage, metrics.best) == (0, 0, -INF)
    assert np.isnan(metrics.mean)


CELLS = 61 * 67  # a size that nothing else has


def copies_of_the_archive(seeds, learning_rate, minimum, donate):
    """Copy instructions of the archive's size in the compiled scan of `add`."""

    def search(archive, solutions, objective, measures):
        def body(archive, batch):
            iteration, solutions, objective, measures = batch
            archive, result = archive.add(solutions, Evaluation(objective, measures), iteration)
            return archive, result.status

        return jax.lax.scan(body, archive, (jnp.arange(5), solutions, objective, measures))

    archive = Archive.empty(Grid([0, 0], [1, 1], [61, 67]), 7, threshold=Threshold(learning_rate, minimum))
    batches = (jnp.zeros((5, 36, 7)), jnp.zeros((5, 36)), jnp.zeros((5, 36, 2)))
    if seeds:
        search = jax.vmap(search)
        archive, batches = jax.tree.map(lambda leaf: jnp.stack([leaf] * seeds), (archive, batches))
    program = jax.jit(search, donate_argnums=(0,) if donate else ()).lower(archive, *batches).compile().as_text()
    return re.findall(rf"\w+\[(?:\d+,)?{CELLS}\b[^=]* copy\(.*", program)


@pytest.mark.parametrize("seeds", [None, 3])
@pytest.mark.parametrize(("learning_rate", "minimum"), [(1.0, -INF), (0.5, 0.0)])
def test_a_donated_archive_is_never_copied_by_the_compiled_scan(seeds, learning_rate, minimum):
    assert copies_of_the_archive(seeds, learning_rate, minimum, donate=True) == []


def test_the_search_for_copies_sees_them_when_the_archive_is_not_donated():
    assert len(copies_of_the_archive(None, 1.0, -INF, donate=False)) >= 5
