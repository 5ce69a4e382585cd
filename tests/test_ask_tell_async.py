"""AskTellAsync: rounds that overlap, told in any order, and an archive that has judged everything once."""

import numpy as np
import pytest
from conformance.table import quick_to_compile
from reliability import evaluators

import dqd
from dqd.conformance.same import assert_same

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
SPHERE = evaluators.Sphere()
ME, ELITES, MEGA = dqd.cma_me(0.5, batch_size=6), dqd.map_elites(0.5, batch_size=1), dqd.cma_mega(0.5, batch_size=6)


@pytest.fixture(autouse=True)
def quickly():
    with quick_to_compile(True):
        yield


def asking(emitter=ME, rounds=3, **options):
    return dqd.AskTellAsync(emitter, GRID, x0=np.zeros(evaluators.N), rounds=rounds, seed=3, **options)


def found(asked):
    return (SPHERE.evaluate_with_jacobian if asked.jacobian else SPHERE.evaluate)(asked.solutions)


def shuffled(search, iterations, workers=7, seed=0):
    """Workers that end in a random order, one at a time; all that was told."""
    random, busy, told = np.random.default_rng(seed), [], []
    while search.iteration < iterations:
        while len(busy) < workers and len(asked := search.ask(1)):
            busy.append(asked)
        asked = busy.pop(random.integers(len(busy)))
        search.tell(asked.ids, *found(asked))
        told.append(asked)
    return told


def best_by_cell(told):
    best = {}
    for asked in told:
        objective, measures = SPHERE.evaluate(asked.solutions)
        for value, cell in zip(objective, GRID.index_of(measures), strict=True):
            best[int(cell)] = max(best.get(int(cell), -np.inf), value)
    return best


@pytest.mark.parametrize("emitter", [ME, ELITES, MEGA], ids=["cma_me", "map_elites", "cma_mega"])
def test_in_whatever_order_solutions_are_told_all_of_them_are_judged_once(emitter):
    search = asking(emitter)
    told = shuffled(search, 12)
    while search.waiting:  # what is under way ends as well; nothing more is asked for
        told.append(search.waiting[0])
        search.tell(told[-1].ids, *found(told[-1]))
    result = search.result()
    complete = result.evaluations
    incomplete = len(told) - complete  # told in rounds of which not all was handed out
    assert 0 <= incomplete < 3 * emitter.batch_size
    elites, best = result.elites, best_by_cell(told)
    if not incomplete:
        assert dict(zip(elites.cell.tolist(), elites.objective.tolist(), strict=True)) == pytest.approx(best)
    assert all(value <= best[cell] + 1e-6 for cell, value in zip(elites.cell.tolist(), elites.objective, strict=True))
    np.testing.assert_allclose(SPHERE.evaluate(elites.solutions)[0], elites.objective, rtol=1e-5, atol=1e-6)
    assert len({int(number) for asked in told for number in asked.ids}) == len(told)


def test_batches_of_one_are_judged_as_soon_as_they_are_told():
    search = asking(dqd.map_elites(0.5, batch_size=1, initial_population=4), rounds=8)
    initial = search.ask(99)
    assert (len(initial), len(search.ask(99))) == (4, 0)
    search.tell(initial.ids, *found(initial))
    asked = [search.ask(1) for _ in range(8)]
    assert not len(search.ask(1))  # every round waits
    for done, one in enumerate(reversed(asked)):
        assert search.iteration == done
        search.tell(one.ids, *found(one))
        assert search.result().evaluations == 4 + done + 1


def test_a_slow_solution_holds_back_its_own_round_alone():
    search = asking(rounds=2)
    slow = search.ask(1)
    for _ in range(5 + 10 * 6):
        asked = search.ask(1)
        search.tell(asked.ids, *found(asked))
    assert search.iteration == 10
    search.tell(slow.ids, *found(slow))
    assert search.iteration == 11


def test_the_same_order_gives_the_same_archive_and_the_result_says_that_order_counts():
    one, other = asking(), asking()
    shuffled(one, 10)
    shuffled(other, 10)
    assert_same(one.archive, other.archive)
    result = one.result()
    assert result.asynchronous
    assert "asynchronous: its order depended on timing" in repr(result)
    assert result.to_numpy().config["asynchronous"] is True
    third = asking()
    shuffled(third, 10, seed=1)
    assert not np.array_equal(third.archive.solutions, one.archive.solutions)


def test_copies_of_an_emitter_draw_numbers_of_their_own():
    first = asking(rounds=3).ask(18).solutions
    assert len(np.unique(first, axis=0)) == 18


def test_a_tell_that_fails_changes_nothing():
    search = asking()
    asked = search.ask(4)
    objective, measures = found(asked)
    with pytest.raises(ValueError, match=r"tell: objective: expected \(4,\)"):
        search.tell(asked.ids, objective[:2], measures)
    with pytest.raises(ValueError, match="id 3 was told already"):
        search.tell([0, 3, 3], objective[:3], measures[:3])
    with pytest.raises(ValueError, match="id 99 was never handed out"):
        search.tell([99], objective[:1], measures[:1])
    with pytest.raises(TypeError, match="tell: ids: expected whole numbers"):
        search.tell([0.7], objective[:1], measures[:1])
    with pytest.raises(ValueError, match="evaluations: expected how many were needed"):
        search.tell(asked.ids, objective, measures, evaluations=[-30, 1, 1, 2])
    with pytest.raises(ValueError, match="ask: count: expected a whole number"):
        search.ask(1.5)
    assert [one.ids.tolist() for one in search.waiting] == [[0], [1], [2], [3]]
    np.testing.assert_array_equal(search.waiting[2].solutions, asked.solutions[2:3])
    search.tell(asked.ids, objective, measures)
    assert search.waiting == []


def test_points_are_told_with_their_jacobians():
    search = asking(MEGA)
    points = search.ask(99)
    assert (len(points), points.jacobian) == (3, True)
    objective, measures, jacobian = found(points)
    with pytest.raises(TypeError, match="tell: jacobian is missing"):
        search.tell(points.ids, objective, measures)
    search.tell(points.ids[1:2], dqd.Evaluation(objective[1:2], measures[1:2], jacobian[1:2]))
    assert not search.ask(99).jacobian
    assert search.result().gradients == 1


def test_a_sigma_that_was_left_out_is_chosen_first(capsys):
    search = asking(dqd.map_elites(batch_size=2, initial_population=2))
    shuffled(search, 3)
    assert "chosen sigma" in capsys.readouterr().err
    assert search.result().chosen["solutions"] > 0


def test_a_session_that_ended_within_rounds_goes_on_from_those_that_were_complete(tmp_path):
    with asking(out=tmp_path / "run") as search:
        shuffled(search, 10)
        assert search.waiting
        before = search.archive
    with pytest.raises(RuntimeError, match="ask: this search was closed"):
        search.ask()
    with asking(out=tmp_path / "run") as search:
        assert (search.iteration, search.waiting) == (10, [])
        assert_same(search.archive, before)
        shuffled(search, 15)
        assert search.iteration == 15
    assert dqd.load(tmp_path / "run").config["emitter"]["copies"] == 3


@pytest.mark.parametrize("rounds", [0, 2.5, True, None])
def test_rounds_are_counted_in_whole_numbers(rounds):
    with pytest.raises(ValueError, match="rounds: expected a whole number"):
        asking(rounds=rounds)
