"""Emitters that take turns: who gains goes on, who does not is asked again, and nobody else's state changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import GRID, add, illuminate

import dqd
from dqd.archives.archive import IMPROVED, NEW, REJECTED, Archive
from dqd.emitters.arborescence import Arborescence
from dqd.emitters.gain import POOR, gained
from dqd.emitters.presets import usual
from dqd.emitters.share import PATIENCE, TURN, Shared
from dqd.types import AddResult, Evaluation, replace

BATCH = 4
PAIR = Shared(dqd.combine(*[dqd.map_elites(sigma, batch_size=BATCH) for sigma in (0.1, 0.2)]), ("fine", "coarse"))


def archive_of(objective, measures, offset=0.0):
    empty = Archive.empty(GRID, 3, qd_score_offset=offset)
    evaluation = Evaluation(jnp.asarray(objective), jnp.asarray(measures))
    return add(empty, jnp.zeros((len(objective), 3)), evaluation, 1)[0]


ARCHIVE = archive_of([4.0, 2.0], [[0.1, 0.1], [1.1, 1.1]])


def turns(gains, count):
    """Whose the turns are, when an iteration of each gains so much."""
    state, found = PAIR.init(jnp.zeros(3), 2, None), []
    drawn = ((), ())
    for _ in range(count):
        found.append(int(state.turn))
        value = jnp.full(BATCH, gains[found[-1]] / BATCH)
        result = AddResult(jnp.full(BATCH, IMPROVED), value, jnp.zeros(BATCH, jnp.int32), jnp.zeros(BATCH, bool))
        for _ in range(TURN):
            assert int(state.turn) == found[-1]
            state = tell(state, drawn, result)
    return found, state


tell = jax.jit(lambda state, drawn, result: PAIR.tell(state, ARCHIVE, drawn, result))


@pytest.mark.parametrize(("gains", "every"), [((8.0, 0.0), PATIENCE), ((4.0, 8.0), PATIENCE // 2), ((-8.0, -2.0), 9)])
def test_who_gains_most_goes_on_and_the_other_is_asked_again(gains, every):
    """The one behind, by a share 1 - r of the best, has a turn after PATIENCE (1 - r) of the other's."""
    found, _ = turns(gains, 60)
    behind = int(np.argmin(gains))
    assert set(found[:2]) == {0, 1}
    waits = np.diff(np.flatnonzero(np.array(found[2:]) == behind)) - 1
    assert set(waits) <= {every, every + 1}  # one more where both stand equal
    assert len(waits) > 2


def test_gains_are_halves_of_old_and_new_and_iterations_are_counted():
    found, state = turns((8.0, 2.0), 4)
    assert found == [0, 1, 0, 0]
    assert state.gains.tolist() == [8.0, 2.0]
    assert state.iterations.tolist() == [3 * TURN, TURN]
    assert PAIR.account(state) == (
        "fine made 75% of the iterations and lately gained 8, coarse made 25% of the iterations and lately gained 2 "
        "in each (objectives, summed over cells)"
    )


def test_only_the_one_whose_turn_it_is_learns():
    result = illuminate(emitter=share_of_two(), iterations=TURN)
    first, second = result.state.emitter.members
    assert np.abs(second.theta).max() == 0
    assert np.abs(first.theta).max() > 0
    assert result.state.emitter.turn == 1
    assert result.account.startswith("first made 100% of the iterations and lately gained ")


def share_of_two():
    return Shared(dqd.combine(*[dqd.cma_mega(sigma, batch_size=9) for sigma in (0.5, 0.2)]), ("first", "second"))


def test_sizes_must_be_equal():
    with pytest.raises(ValueError, match=r"need equal \(num_points, batch_size\), got \[\(1, 8\), \(1, 9\)\]"):
        Shared(dqd.combine(dqd.targeting(batch_size=9), dqd.cma_mega(0.1, batch_size=10)), ("a", "b"))


# What is gained -------------------------------------------------------------------------------------------------------

RESULT = AddResult(
    jnp.array([REJECTED, IMPROVED, NEW]), jnp.array([9.0, 0.5, 1.0]), jnp.zeros(3, jnp.int32), jnp.zeros(3, bool)
)


def test_a_new_cell_is_worth_what_lies_above_the_offset():
    archive = archive_of([4.0, 2.0], [[0.1, 0.1], [1.1, 1.1]], offset=-2.0)
    assert gained(RESULT, archive).tolist() == [0.0, 0.5, 3.0]


def test_below_the_offset_a_new_cell_is_worth_the_same_whatever_the_sign_of_objectives():
    for shift in (0.0, -100.0):
        archive = archive_of([shift - 4.0, shift - 2.0], [[0.1, 0.1], [1.1, 1.1]])
        new = replace(RESULT, value=jnp.array([9.0, 0.5, shift - 3.0]))  # as good as the mean
        np.testing.assert_allclose(gained(new, archive), [0.0, 0.5, POOR * 1.0], atol=1e-4)


# Without an emitter ---------------------------------------------------------------------------------------------------


def test_a_search_without_an_emitter_takes_the_usual_one(monkeypatch):
    for home in ("runners.task", "own_loop", "ask_tell_async"):
        monkeypatch.setattr(f"dqd.{home}.usual", lambda cells, threshold: share_of_two())
    assert isinstance(illuminate(emitter=None, iterations=3).search.emitter, Shared)
    assert len(dqd.AskTell(None, GRID, x0=np.zeros(6)).ask_dqd()) == 1
    assert dqd.AskTellAsync(None, GRID, x0=np.zeros(6), rounds=2).ask().jacobian


def test_the_usual_emitter_aims_where_it_can_and_has_nothing_to_choose():
    shared = usual(GRID, None)
    assert shared.names == ("targeting", "CMA-MEGA")
    assert shared.all.emitters[1].strategy.sigma is None
    stretching, annealed = dqd.UnboundedGrid([100, 100]), dqd.Threshold(0.1, 0.0)
    for alone in (usual(dqd.DNS(2, 100), None), usual(stretching, None), usual(GRID, annealed)):
        assert isinstance(alone, Arborescence)
        assert alone.strategy.sigma is None
