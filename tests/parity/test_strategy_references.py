"""LM-MA-ES and OpenAI-ES against pyribs, xNES against a transcription of its paper: update by update, in float64."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from ribs.emitters.opt import LMMAEvolutionStrategy, OpenAIEvolutionStrategy
from small import Jitted

from dqd.strategies import LMMAES, XNES, OpenAIES
from dqd.strategies.openai_es import RATE

pytestmark = pytest.mark.x64
GENERATIONS = 12


def uneven(points):
    """A function to be maximised, with no symmetry to hide a mistake behind."""
    weights = 1.0 + np.arange(points.shape[1]) % 5
    return -np.sum(weights * (points - 0.3 * weights) ** 2, axis=1) + points[:, 0] * points[:, -1]


def ranked(points):
    """Indices from best to worst, and the rank of each."""
    order = np.argsort(-uneven(np.asarray(points)), kind="stable")
    return order, np.argsort(order)


def close(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# LM-MA-ES -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "population", "parents"), [(60, 12, [6]), (200, 36, [18, 3, 36, 1])])
def test_lm_ma_es_updates_equal_those_of_pyribs(d, population, parents):
    strategy, mean = Jitted(LMMAES(0.7, population)), np.linspace(-1, 1, d)
    state = strategy.init(jnp.asarray(mean))
    es = LMMAEvolutionStrategy(0.7, d, population, seed=1, n_vectors=len(state.paths))
    es.reset(mean)
    for generation in range(len(state.paths) + 3):  # until all paths take part, and beyond
        theirs, mu = es.ask(), parents[generation % len(parents)]
        state, points = strategy.ask(state, es._solution_z)
        close(points, theirs)
        order, ranks = ranked(theirs)
        es.tell(order, np.zeros(population), mu)
        state = strategy.tell(state, points, ranks, mu)
        for ours, its in ((state.mean, es.mean), (state.sigma, es.sigma), (state.path_s, es.ps), (state.paths, es.m)):
            close(ours, its, 1e-8)
    assert np.linalg.norm(np.asarray(state.paths)[0]) > 2  # the samples were really stretched
    assert len(state.paths) == 4 + int(3 * np.log(d))


# OpenAI-ES ------------------------------------------------------------------------------------------------------------


def test_openai_es_updates_equal_those_of_pyribs():
    """pyribs divides a mirrored gradient by lambda / 2, ours by lambda: the same to Adam, its epsilon aside."""
    d, population, sigma = 30, 12, 0.7
    strategy, mean = Jitted(OpenAIES(sigma, population)), np.linspace(-1, 1, d)
    es = OpenAIEvolutionStrategy(sigma, d, population, seed=1, lr=RATE * sigma, epsilon=0.0)
    es.reset(mean)
    state = strategy.init(jnp.asarray(mean))
    for _ in range(GENERATIONS):
        theirs = es.ask()
        state, points = strategy.ask(state, es.noise)
        close(points, theirs, 1e-6)
        order, ranks = ranked(theirs)
        es.tell(order, np.zeros(population), 6)
        state = strategy.tell(state, points, ranks, 6)
        close(state.mean, es.adam_opt.theta, 1e-6)
        close(state.moved, es.last_update_ratio, 1e-6)
    assert np.abs(state.mean - mean).max() > sigma


def test_an_odd_number_of_samples_leaves_the_last_one_without_a_mirror():
    strategy, normals = Jitted(OpenAIES(2.0, 5)), np.random.default_rng(0).normal(size=(5, 3))
    _, points = strategy.ask(strategy.init(jnp.ones(3)), normals)
    close(np.asarray(points) - 1, 2 * np.stack([normals[0], normals[1], -normals[0], -normals[1], normals[4]]))


# xNES -----------------------------------------------------------------------------------------------------------------


class Transcription:
    """Algorithm 1 of the paper, line by line: A = sigma B, the exponential by scipy's Pade approximants."""

    def __init__(self, mean, sigma, population):
        self.mu, self.sigma, self.B = np.array(mean), sigma, np.eye(len(mean))
        k = np.arange(1, population + 1)
        raw = np.maximum(0, np.log(population / 2 + 1) - np.log(k))
        self.u = raw / raw.sum() - 1 / population
        d = len(mean)
        self.eta = 3 / 5 * (3 + np.log(d)) / (d * np.sqrt(d))

    def tell(self, s):
        """s from best to worst."""
        d = len(self.mu)
        G_delta = sum(u * one for u, one in zip(self.u, s, strict=True))
        G_M = sum(u * (np.outer(one, one) - np.eye(d)) for u, one in zip(self.u, s, strict=True))
        G_sigma = np.trace(G_M) / d
        G_B = G_M - G_sigma * np.eye(d)
        self.mu = self.mu + self.sigma * self.B @ G_delta
        self.sigma = self.sigma * np.exp(self.eta / 2 * G_sigma)
        self.B = self.B @ scipy.linalg.expm(self.eta / 2 * G_B)


@pytest.mark.parametrize(("d", "population"), [(2, 6), (3, 34), (12, 20)])
def test_xnes_updates_equal_a_transcription_of_its_paper(d, population):
    strategy, mean, generator = Jitted(XNES(0.7, population)), np.linspace(-1, 1, d), np.random.default_rng(d)
    state, expected = strategy.init(jnp.asarray(mean)), Transcription(mean, 0.7, population)
    for _ in range(GENERATIONS):
        normals = generator.normal(size=(population, d))
        state, points = strategy.ask(state, normals)
        close(points, expected.mu + expected.sigma * normals @ expected.B.T)
        order, ranks = ranked(points)
        state = strategy.tell(state, points, ranks, population // 2)
        expected.tell(normals[order])
        for ours, theirs in ((state.mean, expected.mu), (state.sigma, expected.sigma), (state.shape, expected.B)):
            close(ours, theirs)
    shape = np.asarray(state.shape)
    close(shape @ state.inverse, np.eye(d), 1e-12)
    close(np.linalg.det(shape), 1.0, 1e-12)
    assert np.abs(shape - np.eye(d)).max() > 0.1


# All ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LMMAES, XNES, OpenAIES])
def test_a_generation_without_parents_teaches_nothing_and_a_reset_forgets(kind):
    strategy = Jitted(kind(0.5, 12))
    fresh = strategy.init(jnp.ones(60))
    state, points = strategy.ask(fresh, np.random.default_rng(0).normal(size=(12, 60)))
    unchanged = strategy.tell(state, points, np.arange(12), np.array(0))
    learnt = strategy.tell(state, points, np.arange(12), 6)
    again = strategy.reset(learnt, jnp.array(True), jnp.ones(60))
    for name in fresh.__dataclass_fields__:
        if name != "adam":
            np.testing.assert_array_equal(getattr(unchanged, name), getattr(fresh, name))
            np.testing.assert_array_equal(getattr(again, name), getattr(fresh, name))
    assert np.abs(learnt.mean - fresh.mean).max() > 0.01


@pytest.mark.parametrize("kind", [LMMAES, XNES, OpenAIES])
def test_the_order_of_a_batch_teaches_nothing(kind):
    strategy, generator = Jitted(kind(0.5, 12)), np.random.default_rng(0)
    state = strategy.init(jnp.ones(60))
    for _ in range(3):
        state, points = strategy.ask(state, generator.normal(size=(12, 60)))
        _, ranks = ranked(points)
        order = generator.permutation(12)
        one, other = (
            strategy.tell(state, points, ranks, 6),
            strategy.tell(state, np.asarray(points)[order], ranks[order], 6),
        )
        close(one.mean, other.mean, 1e-12)
        state = one


@pytest.mark.parametrize("kind", [LMMAES, XNES, OpenAIES])
def test_values_that_are_all_the_same_stop_it_and_others_do_not(kind):
    strategy = Jitted(kind(0.5, 4))
    state, names = strategy.init(jnp.ones(3)), kind.reasons
    flat = strategy.stop(state, np.arange(4), np.full(4, 2.0))
    assert [name for name, fires in zip(names, flat, strict=True) if fires] == ["flat values"]
    assert not np.any(strategy.stop(state, np.arange(4), np.arange(4.0)))


@pytest.mark.parametrize("kind", [LMMAES, XNES, OpenAIES])
def test_one_sample_is_refused_in_words(kind):
    with pytest.raises(ValueError, match="needs at least 2 samples, got 1"):
        kind(1.0, 1)
