"""An emitter learns from what its model says, and several copies share one model."""

import jax
import jax.numpy as jnp
import numpy as np
from small import Jitted

import dqd
from dqd.archives import Archive
from dqd.emitters.restarts import LIFETIME, Restarts
from dqd.emitters.rewards import Density, Rewarded
from dqd.types import AddResult, replace

GRID = dqd.Grid((0.0, 0.0), (1.0, 1.0), (4, 4))
ARCHIVE = Archive.empty(GRID, 2)


def told(measures, valid=None):
    measures = np.asarray(measures, np.float32)
    valid = np.ones(len(measures), bool) if valid is None else valid
    zeros = np.zeros(len(measures), np.float32)
    cell = np.where(valid, 0, GRID.num_cells)
    return AddResult(zeros.astype(int), zeros, cell, zeros.astype(bool), objective=zeros, measures=measures)


def after(emitter, state, measures, valid=None):
    noise = emitter.noise(jax.random.key(0), 2, 2)
    points = emitter.points(state, ARCHIVE, noise)
    state, proposal = emitter.ask(state, ARCHIVE, points, None, noise)
    return emitter.tell(state, ARCHIVE, proposal.drawn, told(measures, valid)), proposal


def test_parents_are_those_that_the_model_finds_worth_most_and_never_one_that_is_not_finite():
    """Crowded at 0, so what lies at 1 leads; the archive said nothing of them (status 0, value 0)."""
    emitter = Jitted(dqd.dds(0.5, 0.1, batch_size=4, emitters=1, buffer=8))
    state = emitter.init(jnp.zeros(2), 2, None)
    crowded = state.reward.buffer, jnp.asarray(8)
    state = replace(state, reward=replace(state.reward, buffer=crowded[0], met=crowded[1]))
    found, proposal = after(emitter, state, [[0.0, 0.0], [0.6, 0.6], [1.0, 1.0], [0.9, 0.9]], [True, True, True, False])
    weights = np.log(2.5) - np.log([1.0, 2.0])
    expected = weights / weights.sum() @ np.asarray(proposal.solutions)[[2, 1]]
    np.testing.assert_allclose(found.emitter.strategy.mean, expected, rtol=1e-5)


def test_copies_share_one_model():
    emitter = Jitted(dqd.dds(0.5, 0.1, batch_size=8, emitters=2, buffer=16))
    state, _ = after(emitter, emitter.init(jnp.zeros(2), 2, None), np.random.default_rng(0).uniform(size=(8, 2)))
    assert int(state.reward.met) == 8
    assert state.emitter.strategy.mean.shape == (2, 2)


def test_a_lifetime_ends_and_begins_again():
    restarts, ages = Restarts.none("other", rule=3), []
    for i in range(8):
        stops, restarts = restarts.after(jnp.array([i == 4]), None)
        ages.append((bool(stops), int(restarts.age)))
    assert ages == [(False, 1), (False, 2), (True, 0), (False, 1), (True, 0), (False, 1), (False, 2), (True, 0)]
    assert {name: int(count) for name, count in restarts.by_name().items()} == {"other": 1, LIFETIME: 2}


def test_it_tells_what_the_emitter_within_tells():
    emitter = dqd.dms_mega(1.0, batch_size=26, emitters=2, restart=5)
    assert isinstance(emitter, Rewarded)
    assert (emitter.num_points, emitter.batch_size, emitter.initial_population, emitter.threshold) == (2, 24, 0, None)
    assert isinstance(dqd.dds(0.5).reward, Density)
    names = jax.eval_shape(lambda: emitter.restarts(emitter.init(jnp.zeros(3), 2, None)))
    assert LIFETIME in names
