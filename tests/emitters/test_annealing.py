"""CMA-MAE and CMA-MAEGA: thresholds that reach the archive, the better half as parents, restarts by convergence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import GRID, Jitted, score

import dqd
from dqd.archives import NEW, REJECTED, Archive
from dqd.emitters.restarts import NO_CHANGE
from dqd.types import AddResult

ANNEALED = dqd.cma_mae(0.5, 0.1, -20.0, batch_size=8, emitters=1)
WITH_GRADIENTS = dqd.cma_maega(0.5, annealing=0.1, minimum=-20.0, batch_size=18, emitters=2)
X0 = jnp.zeros(6)


def told(emitter, status, values):
    """The state after one generation of which the archive said this."""
    emitter, state = Jitted(emitter), emitter.init(X0, 2, None)
    archive = Archive.empty(GRID, 6, threshold=emitter.threshold or dqd.Threshold())
    noise = emitter.noise(jax.random.key(0), 6, 2)
    state, proposal = emitter.ask(state, archive, emitter.points(state, archive, noise), None, noise)
    result = AddResult(jnp.asarray(status), jnp.asarray(values), jnp.zeros(8, int), jnp.zeros(8, bool))
    return emitter.tell(state, archive, proposal.drawn, result), np.asarray(proposal.solutions)


@pytest.mark.parametrize("emitter", [ANNEALED, WITH_GRADIENTS])
def test_the_thresholds_reach_the_archive(emitter):
    archive = dqd.AskTell(emitter, GRID, x0=X0).archive
    assert (archive.competition.learning_rate, archive.competition.minimum) == pytest.approx((0.1, -20.0))
    assert float(archive.threshold[0]) == -20.0


def test_a_threshold_that_is_given_has_the_last_word():
    given = dqd.Threshold(0.5, 1.0)
    result = dqd.illuminate(score, ANNEALED, GRID, x0=X0, iterations=0, threshold=given, progress=False)
    assert (float(result.archive.competition.learning_rate), float(result.archive.competition.minimum)) == (0.5, 1.0)


def test_emitters_of_one_archive_agree_on_its_threshold():
    other = dqd.cma_mae(0.5, 0.3, batch_size=8, emitters=1)
    assert dqd.combine(dqd.map_elites(0.1), ANNEALED).threshold == ANNEALED.threshold
    with pytest.raises(ValueError, match="one archive has one threshold"):
        dqd.AskTell(dqd.combine(ANNEALED, other), GRID, x0=X0)


def test_something_else_than_a_threshold_is_refused():
    with pytest.raises(TypeError, match=r"threshold: expected a dqd.Threshold, got float"):
        dqd.AskTell(ANNEALED, GRID, x0=X0, threshold=0.1)


def test_the_mean_moves_towards_the_better_half_by_value_alone():
    values = np.array([1.0, 9.0, 3.0, 8.0, 2.0, 7.0, 4.0, 6.0])
    state, samples = told(ANNEALED, [NEW, REJECTED] * 4, values)
    best = samples[np.argsort(-values)[:4]]
    weights = np.log(4.5) - np.log(np.arange(1, 5))
    np.testing.assert_allclose(state.strategy.mean, weights @ best / weights.sum(), rtol=1e-5, atol=1e-6)


def test_annealing_goes_on_when_nothing_changed():
    annealed, other = ANNEALED, dqd.cma_me(0.5, batch_size=8)
    values, nothing = -np.arange(8.0), [REJECTED] * 8
    assert NO_CHANGE not in annealed.restarts(told(annealed, nothing, values)[0])
    assert sum(annealed.restarts(told(annealed, nothing, values)[0]).values()) == 0
    assert other.restarts(told(other, nothing, values)[0])[NO_CHANGE] == 1


def test_annealing_starts_anew_when_its_strategy_has_converged():
    restarts = ANNEALED.restarts(told(ANNEALED, [REJECTED] * 8, np.zeros(8))[0])
    assert restarts["flat values"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 10, "emitters": 3}, "a multiple of the 3 emitters that share it, got 10"),
        ({"emitters": 0}, "emitters: expected a whole number, at least 1, got 0"),
        ({"batch_size": 15}, "at least 30"),
        ({"annealing": 1.5}, r"learning_rate: expected a number in \[0, 1\]"),
    ],
)
def test_wrong_settings_are_explained(options, words):
    with pytest.raises(ValueError, match=words):
        dqd.cma_mae(0.5, **options)


def test_annealing_is_adjusted_for_the_number_of_cells():
    tuned = dqd.Threshold(0.01, 3.0)
    assert tuned.for_cells(10_000).learning_rate == pytest.approx(0.01)
    larger = tuned.for_cells(20_000)
    assert 1 - larger.learning_rate == pytest.approx((1 - 0.01) ** 2)
    assert larger.minimum == 3.0
