"""The density estimate beside pyribs', and the buffer as a uniform sample of all that was met."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives._density_archive import gaussian_kde_measures

import dqd
from dqd.archives import Archive
from dqd.emitters.rewards.density import Density, DensityState
from dqd.types import AddResult

LOWER, UPPER = (-1.0, 0.0), (1.0, 5.0)
ARCHIVE = Archive.empty(dqd.Grid(LOWER, UPPER, (4, 4)), 3)
BATCH = 6
learn = jax.jit(Density.learn)


def told(measures):
    measures = jnp.asarray(measures)
    cell = jnp.where(jnp.isfinite(measures).all(axis=1), 0, ARCHIVE.num_cells)
    zeros = jnp.zeros(len(measures))
    return AddResult(zeros.astype(int), zeros, cell, zeros.astype(bool), objective=zeros, measures=measures)


def drawn(density, seed, batch=BATCH):
    return density.noise(jax.random.key(seed), batch, 2)


@pytest.mark.x64
def test_the_density_is_that_of_pyribs_up_to_its_unit():
    generator = np.random.default_rng(0)
    met, candidates = generator.uniform(size=(40, 2)), generator.uniform(size=(7, 2))
    density = Density(0.05, size=64)
    state = DensityState(jnp.zeros((64, 2)).at[:40].set(met), jnp.asarray(40))
    theirs = gaussian_kde_measures(candidates, met, 0.05)  # divides by h and sqrt(2 pi), whatever k is
    unit = 0.05 * np.sqrt(2 * np.pi)
    np.testing.assert_allclose(density.log_density(state, jnp.asarray(candidates)), np.log(theirs / unit), rtol=1e-9)


def test_far_from_everything_there_is_still_an_order():
    state = DensityState(jnp.zeros((4, 2)), jnp.asarray(1))
    near, far = Density(0.01, size=4).log_density(state, jnp.array([[5.0, 5.0], [9.0, 9.0]]))
    assert np.isfinite([near, far]).all()
    assert near > far


def test_worth_is_shares_of_ranges_and_lowest_density_first():
    density = Density(0.1, size=8)
    state = DensityState(jnp.zeros((8, 2)).at[0].set(jnp.array([0.5, 0.5])), jnp.asarray(1))
    worth = density.worth(state, ARCHIVE, told([[0.0, 2.5], [0.4, 2.5], [0.0, 3.5], [1.0, 5.0]]))
    assert worth[1] == pytest.approx(float(worth[2]), rel=1e-4)  # a fifth of the range of either measure
    assert worth[0] < worth[1] < worth[3]


def test_before_anything_was_met_all_are_worth_the_same():
    worth = Density(0.1, size=8).worth(
        Density(0.1, size=8).init(2, jnp.float32), ARCHIVE, told([[0.0, 1.0], [1.0, 4.0]])
    )
    assert worth.tolist() == [0, 0]


def test_the_buffer_holds_everything_until_it_is_full_and_nothing_that_is_not_finite():
    density = Density(0.1, size=16)
    measures = np.random.default_rng(0).uniform(LOWER, UPPER, (BATCH, 2))
    measures[2] = np.nan
    result = told(measures)
    state = learn(density, density.init(2, jnp.float32), ARCHIVE, result, result.cell == 0, drawn(density, 0))
    assert int(state.met) == BATCH - 1
    shares = (np.delete(measures, 2, axis=0) - LOWER) / np.subtract(UPPER, LOWER)
    np.testing.assert_allclose(np.sort(state.buffer[: BATCH - 1, 0]), np.sort(shares[:, 0]), rtol=1e-5)


def test_the_buffer_is_a_uniform_sample_of_all_measures_met():
    """Of 60 measures, 8 are kept: each in 8 of 60 trials, whatever its place."""
    density, trials = Density(0.1, size=8), 1500
    numbers = jnp.arange(60.0).reshape(10, BATCH)

    def trial(seed):
        state = density.init(2, jnp.float32)
        for i in range(10):
            result = told(jnp.stack([numbers[i], numbers[i]], axis=1))
            state = density.learn(state, ARCHIVE, result, jnp.ones(BATCH, bool), drawn(density, 100 * seed + i))
        return state.buffer[:, 0]

    kept = np.asarray(jax.jit(jax.vmap(trial))(jnp.arange(trials))) * 2 - 1  # numbers again
    counts = np.bincount(np.round(kept).astype(int).ravel(), minlength=60)
    assert counts.sum() == 8 * trials
    assert all(len(set(np.round(row))) == 8 for row in kept[:50])  # none twice
    expected = 8 * trials / 60
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
