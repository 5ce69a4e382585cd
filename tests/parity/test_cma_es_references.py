"""CMA-ES, update by update, in float64: against `cma.purecma` (textbook) and a plain transcription."""

import cma
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import Jitted

from dqd.strategies import CMAES, SepCMAES

try:
    from cma import purecma
except ImportError:  # cma 4.5 moved it
    from cma.more_algorithms import purecma

pytestmark = pytest.mark.x64

init, ask, tell, covariance = (jax.jit(each) for each in (CMAES.init, CMAES.ask, CMAES.tell, CMAES.covariance))


def ranks_of(values):
    """0 for the largest."""
    return np.argsort(np.argsort(-np.asarray(values), kind="stable"), kind="stable")


def uneven(points):
    """A function to be maximised, with no symmetry to hide a mistake behind."""
    weights = 1.0 + np.arange(points.shape[1])
    return -np.sum(weights * (points - 0.3 * weights) ** 2, axis=1) + points[:, 0] * points[:, -1]


# Textbook -------------------------------------------------------------------------------------------------------------


def pure_cma(mean, sigma, population):
    """purecma with the weights and the damping of ours, where its own differ."""
    es = purecma.CMAES(list(mean), sigma, popsize=population)
    d, mu = len(mean), population // 2
    weights = np.log(mu + 0.5) - np.log(np.arange(1, mu + 1))
    weights /= weights.sum()
    mueff = 1 / np.sum(weights**2)
    par = es.params
    if population % 2 == 0:  # then purecma's own weights are ours
        np.testing.assert_allclose(par.weights[:mu], weights, rtol=1e-14)
    par.weights, par.mueff = [*weights, *[0.0] * (population - mu)], mueff
    par.cc = (4 + mueff / d) / (d + 4 + 2 * mueff / d)
    par.cs = (mueff + 2) / (d + mueff + 5)
    par.c1 = 2 / ((d + 1.3) ** 2 + mueff)
    par.cmu = min(1 - par.c1, 2 * (mueff - 2 + 1 / mueff) / ((d + 2) ** 2 + mueff))
    par.damps = 1 + par.cs + 2 * max(0, np.sqrt((mueff - 1) / (d + 1)) - 1)
    par.lazy_gap_evals = 0.5 * population / (d * (par.c1 + par.cmu))
    return es


@pytest.mark.parametrize(("d", "population"), [(2, 6), (3, 35), (3, 8), (10, 10), (20, 12)])
@pytest.mark.parametrize("updates", [1, 10])
def test_textbook_updates_equal_those_of_purecma(d, population, updates):
    generator = np.random.default_rng(d)
    mean, sigma = generator.normal(size=d), 0.7
    strategy, es = CMAES(sigma, population), pure_cma(mean, sigma, population)
    state = init(strategy, mean)
    for _ in range(updates):
        state, points = ask(strategy, state, generator.normal(size=(population, d)))
        es.C.update_eigensystem(es.counteval, es.params.lazy_gap_evals)
        points = np.asarray(points)
        values = uneven(points)
        state = tell(strategy, state, points, ranks_of(values), population // 2)
        es.tell([list(point) for point in points], list(-values))
    tolerance = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(state.mean, es.xmean, **tolerance)
    np.testing.assert_allclose(state.sigma, es.sigma, **tolerance)
    np.testing.assert_allclose(state.path_s, es.ps, **tolerance)
    np.testing.assert_allclose(state.path_c, es.pc, **tolerance)
    np.testing.assert_allclose(covariance(strategy, state), np.array(es.C), **tolerance)


# The diagonal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "population"), [(2, 6), (10, 10), (20, 36)])
def test_separable_updates_are_the_diagonals_of_those_of_purecma(d, population):
    generator = np.random.default_rng(d)
    mean, sigma = generator.normal(size=d), 0.7
    strategy, es = SepCMAES(sigma, population), pure_cma(mean, sigma, population)
    par, mueff = es.params, es.params.mueff
    par.c1, par.cc = 1 / (d + 2 * d**0.5 + mueff / d), (1 + 1 / d + mueff / d) / (d**0.5 + 1 / d + 2 * mueff / d)
    par.cmu = min(1 - par.c1, (mueff + 1 / mueff - 2) / (d + 4 * d**0.5 + mueff / 2))
    ask_diagonal, tell_diagonal = jax.jit(SepCMAES.ask), jax.jit(SepCMAES.tell)
    state = strategy.init(jnp.asarray(mean))
    for _ in range(8):
        state, points = ask_diagonal(strategy, state, generator.normal(size=(population, d)))
        points = np.asarray(points)
        values = uneven(points)
        state = tell_diagonal(strategy, state, points, ranks_of(values), population // 2)
        es.C.update_eigensystem(es.counteval, 0)
        es.tell([list(point) for point in points], list(-values))
        for i, j in np.argwhere(~np.eye(d, dtype=bool)):
            es.C[i][j] = 0.0
    for ours, theirs in ((state.mean, es.xmean), (state.sigma, es.sigma), (state.path_c, es.pc), (state.path_s, es.ps)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(state.variances, np.diag(np.array(es.C)), rtol=1e-10, atol=1e-10)


def test_the_rates_of_the_diagonal_are_those_of_pycma():
    d, rates = 20, cma.CMAEvolutionStrategy(20 * [0.0], 1.0, {"verbose": -9}).sp
    mueff = rates.weights.mueff
    assert 1 / (d + 2 * d**0.5 + mueff / d) == pytest.approx(rates.c1_sep, rel=1e-12)
    assert (1 + 1 / d + mueff / d) / (d**0.5 + 1 / d + 2 * mueff / d) == pytest.approx(rates.cc_sep, rel=1e-12)


def test_a_generation_without_parents_teaches_nothing_and_a_reset_forgets():
    strategy = Jitted(SepCMAES(0.5, 6))
    state, points = strategy.ask(strategy.init(jnp.ones(4)), np.random.default_rng(0).normal(size=(6, 4)))
    unchanged = strategy.tell(state, points, np.arange(6), np.array(0))
    np.testing.assert_array_equal(unchanged.mean, state.mean)
    assert int(unchanged.evaluations) == 6
    learnt = strategy.tell(state, points, np.arange(6), 3)
    again = strategy.reset(learnt, jnp.array(True), jnp.zeros(4))
    assert jax.tree.map(float, (again.sigma, again.variances.sum(), again.path_s.sum())) == (0.5, 4.0, 0.0)


# The transcription ----------------------------------------------------------------------------------------------------


class Transcription:
    """CMA-ES line by line: an eager covariance matrix and its eigen-decomposition, nothing set aside."""

    def __init__(self, mean, sigma, population, rank_one):
        d = len(mean)
        self.mean, self.sigma, self.population, self.rank_one = np.array(mean), sigma, population, rank_one
        self.C, self.B, self.D = np.eye(d), np.eye(d), np.ones(d)
        self.pc, self.ps = np.zeros(d), np.zeros(d)
        self.E = self.last = self.decompositions = 0
        constants = self.constants(population // 2, d)
        self.gap = 0.5 * population / (d * (constants["c1"] + constants["cmu"]))

    @staticmethod
    def constants(mu, d):
        w = np.log(mu + 0.5) - np.log(np.arange(1, mu + 1))
        w = w / w.sum()
        mueff = 1 / np.sum(w**2)
        cs = (mueff + 2) / (d + mueff + 5)
        c1 = 2 / ((d + 1.3) ** 2 + mueff)
        return {
            "w": w,
            "mueff": mueff,
            "cc": (4 + mueff / d) / (d + 4 + 2 * mueff / d),
            "cs": cs,
            "c1": c1,
            "cmu": min(1 - c1, 2 * (mueff - 2 + 1 / mueff) / ((d + 2) ** 2 + mueff)),
            "damps": 1 + cs + 2 * max(0, np.sqrt((mueff - 1) / (d + 1)) - 1),
        }

    def decompose(self):
        if self.E - self.last > self.gap:
            self.C = np.maximum(self.C, self.C.T)
            self.D, self.B = np.linalg.eigh(self.C)
            self.last = self.E
            self.decompositions += 1

    def tell(self, ranked, mu):
        self.E += self.population
        if mu == 0:
            return
        d, k = len(self.mean), self.constants(mu, len(self.mean))
        w, mueff, cc, cs, c1, cmu = (k[name] for name in ("w", "mueff", "cc", "cs", "c1", "cmu"))
        steps = (ranked[:mu] - self.mean) / self.sigma
        mean = w @ ranked[:mu]
        y = mean - self.mean
        inverse_root = self.B @ np.diag(self.D**-0.5) @ self.B.T
        self.ps = (1 - cs) * self.ps + np.sqrt(cs * (2 - cs) * mueff) / self.sigma * inverse_root @ y
        length = self.ps @ self.ps / d
        h = float(length / (1 - (1 - cs) ** (2 * self.E / self.population)) < 2 + 4 / (d + 1))
        textbook = self.rank_one == "textbook"
        self.pc = (1 - cc) * self.pc + h * np.sqrt(cc * (2 - cc) * mueff) * (y / self.sigma if textbook else y)
        c1a = c1 * (1 - (1 - h**2) * cc * (2 - cc))
        rank_one = (c1 if textbook else c1**2) * np.outer(self.pc, self.pc)
        self.C = (1 - c1a - cmu) * self.C + rank_one + cmu * (steps.T * w) @ steps
        self.sigma *= np.exp(min(1, cs / k["damps"] * (length - 1) / 2))
        self.mean = mean


def compare(state, strategy, expected, tolerance):
    options = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(state.mean, expected.mean, **options)
    np.testing.assert_allclose(state.sigma, expected.sigma, **options)
    np.testing.assert_allclose(state.path_s, expected.ps, **options)
    np.testing.assert_allclose(state.path_c, expected.pc, **options)
    np.testing.assert_allclose(covariance(strategy, state), expected.C, **options)
    assert state.evaluations == expected.E
    assert state.decomposed_at == expected.last


def run_both(d, population, sigma, rank_one, parents, tolerance=1e-10, value=uneven):
    """Generations with the given numbers of parents, compared after each. Sampling goes through our own B and D."""
    generator = np.random.default_rng(7)
    mean = generator.normal(size=d)
    strategy, expected = CMAES(sigma, population, rank_one), Transcription(mean, sigma, population, rank_one)
    state = init(strategy, mean)
    for mu in parents:
        state, points = ask(strategy, state, generator.normal(size=(population, d)))
        expected.decompose()
        points = np.asarray(points)
        ranks = ranks_of(value(points))
        state = tell(strategy, state, points, ranks, mu)
        expected.tell(points[np.argsort(ranks)], mu)
        compare(state, strategy, expected, tolerance)
    return state, expected


@pytest.mark.parametrize("rank_one", ["textbook", "dqd2021"])
@pytest.mark.parametrize(("d", "population", "sigma"), [(3, 35, 10.0), (3, 35, 0.05), (4, 9, 2.0), (10, 12, 0.5)])
def test_updates_equal_the_transcription_with_a_fixed_number_of_parents(d, population, sigma, rank_one):
    run_both(d, population, sigma, rank_one, [population // 2] * 12)


@pytest.mark.parametrize("rank_one", ["textbook", "dqd2021"])
def test_updates_equal_the_transcription_with_a_varying_number_of_parents(rank_one):
    run_both(5, 12, 0.5, rank_one, [6, 12, 1, 0, 3, 0, 0, 11, 2, 12, 1, 7])


@pytest.mark.parametrize("rank_one", ["textbook", "dqd2021"])
def test_lazy_decompositions_equal_the_eager_covariance_with_the_same_gap(rank_one):
    parents = [4, 8, 1, 0, 3, 5] * 7
    state, expected = run_both(60, 8, 0.5, rank_one, parents, tolerance=1e-9)
    assert 3 <= expected.decompositions < len(parents) / 3  # lazy, and yet more than once
    roots = state.decomposition.roots
    assert roots.largest / roots.smallest > 1.05  # C has really been learnt, the comparison is not one of identities


@pytest.mark.parametrize(("rank_one", "path", "rate"), [("textbook", 1.0, 1), ("dqd2021", 2.0, 2)])
def test_one_update_worked_out_by_hand(rank_one, path, rate):
    """d = 3, one parent of two at (2, 0, 0), sigma 2: mueff = h = 1, cc = 13/23, cs = 1/3, cmu = 0, damps = 4/3."""
    strategy = CMAES(2.0, 2, rank_one)
    points = jnp.array([[-5.0, 4.0, 3.0], [2.0, 0.0, 0.0]])
    state = tell(strategy, strategy.init(jnp.zeros(3)), points, jnp.array([1, 0]), 1)
    c1 = 2 / 19.49
    p_c = path * np.sqrt(429) / 23  # sqrt(13/23 * 33/23), times y or y / sigma
    np.testing.assert_allclose(state.mean, [2, 0, 0], atol=1e-15)
    np.testing.assert_allclose(state.path_s, [np.sqrt(5) / 3, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(state.path_c, [p_c, 0, 0], rtol=1e-14)
    np.testing.assert_allclose(state.sigma, 2 * np.exp(-11 / 108), rtol=1e-14)
    expected = np.diag([1 - c1 + c1**rate * p_c**2, 1 - c1, 1 - c1])
    np.testing.assert_allclose(covariance(strategy, state), expected, rtol=1e-14)


def test_the_heaviside_stalls_the_covariance_path_when_the_step_size_path_is_long():
    """A steep slope: every step goes the same way, |p_s| grows, h = 0. Both values of h must have occurred."""
    d, population = 3, 12
    held = []

    class Watched(Transcription):
        def tell(self, ranked, mu):
            before = self.pc.copy()
            super().tell(ranked, mu)
            cc = self.constants(mu, d)["cc"]
            held.append(bool(np.allclose(self.pc, (1 - cc) * before, rtol=1e-12, atol=0)))

    generator = np.random.default_rng(0)
    strategy, expected = CMAES(0.1, population), Watched(np.zeros(d), 0.1, population, "textbook")
    state = strategy.init(jnp.zeros(d))
    for generation in range(12):
        state, points = ask(strategy, state, generator.normal(size=(population, d)))
        expected.decompose()
        points = np.asarray(points) + (generation % 3 == 1) * 40 * float(state.sigma)  # a leap now and then
        ranks = ranks_of(points[:, 0])
        state = tell(strategy, state, points, ranks, 6)
        expected.tell(points[np.argsort(ranks)], 6)
        compare(state, strategy, expected, 1e-10)
    assert True in held
    assert False in held


def test_without_parents_nothing_is_learnt_but_evaluations_count():
    strategy = CMAES(0.5, 8)
    state = strategy.init(jnp.arange(4.0))
    after = tell(strategy, state, jnp.full((8, 4), 9.0), jnp.arange(8), 0)
    assert after.evaluations == 8
    for name in ("mean", "sigma", "path_c", "path_s", "used"):
        np.testing.assert_array_equal(getattr(after, name), getattr(state, name))
    np.testing.assert_array_equal(covariance(strategy, after), np.eye(4))


# Constants worked out by hand -----------------------------------------------------------------------------------------


def constants_by_behaviour(d, population, mu, sigma=2.0):
    """Read the constants out of one update from the origin with C = I, where each leaves its mark alone.

    The best point is e_1, the others are zero: mean = w_1 e_1, p_s = sqrt(cs (2 - cs) mueff) mean / sigma, and so on.
    """
    strategy = CMAES(sigma, population)
    state, ranks = init(strategy, np.zeros(d)), np.arange(population)

    def told(rank):
        points = np.zeros((population, d))
        points[rank, 0] = 1
        return tell(strategy, state, points, ranks, mu)

    weights = np.array([float(told(rank).mean[0]) for rank in range(mu)])
    mueff, told = 1 / np.sum(weights**2), told(0)
    y = weights[0] / sigma
    root = float(told.path_s[0]) / y  # sqrt(cs (2 - cs) mueff)
    cs = 1 - np.sqrt(1 - root**2 / mueff)
    cc = 1 - np.sqrt(1 - (float(told.path_c[0]) / y) ** 2 / mueff)
    C = np.asarray(covariance(strategy, told))
    decay = C[-1, -1]  # 1 - c1 - cmu
    # C_11 = decay + c1 p_c^2 + cmu w_1 / sigma^2 with c1 = 1 - decay - cmu
    p = float(told.path_c[0]) ** 2
    cmu = (C[0, 0] - decay - (1 - decay) * p) / (weights[0] / sigma**2 - p)
    length = float(told.path_s[0]) ** 2 / d
    damps = cs * (length - 1) / 2 / np.log(float(told.sigma) / sigma)
    return {"w": weights, "mueff": mueff, "cs": cs, "cc": cc, "c1": 1 - decay - cmu, "cmu": cmu, "damps": damps}


def test_constants_of_cma_mega_are_those_of_the_specification():
    got = constants_by_behaviour(d=3, population=35, mu=17)
    printed = [
        0.188895, 0.143150, 0.116390, 0.097405, 0.082678, 0.070645, 0.060472, 0.051659, 0.043886, 0.036933, 0.030642,
        0.024900, 0.019618, 0.014727, 0.010173, 0.005914, 0.001913,
    ]  # fmt: skip
    np.testing.assert_allclose(got.pop("w"), printed, atol=6e-7)
    expected = {"mueff": 9.713237, "cc": 0.537104, "cs": 0.661270, "c1": 0.070914, "cmu": 0.450329, "damps": 2.613090}
    assert got == pytest.approx(expected, abs=6e-7)
    assert CMAES(1.0, 35).gap(3) == pytest.approx(11.19, abs=0.005)


@pytest.mark.parametrize(
    ("mu", "mueff", "cs", "cmu"), [(1, 1, 0.00298, 0), (18, 10.246, 0.01206, 1.66e-5), (36, 19.708, 0.02119, 3.54e-5)]
)
def test_constants_of_cma_me_are_those_of_the_specification(mu, mueff, cs, cmu):
    got = constants_by_behaviour(d=1000, population=36, mu=mu)
    assert got["mueff"] == pytest.approx(mueff, abs=6e-4)
    assert got["cs"] == pytest.approx(cs, abs=6e-6)
    assert got["cmu"] == pytest.approx(cmu, abs=6e-8)
    assert got["c1"] == pytest.approx(1.995e-6, rel=0.02)
    assert got["damps"] == pytest.approx(1 + cs, abs=1e-5)


@pytest.mark.parametrize(("n", "gap", "generation"), [(1000, 966.9, 28), (512, 496.9, 15)])
def test_the_first_decomposition_of_cma_me_comes_at_the_generation_of_the_specification(n, gap, generation):
    strategy = CMAES(0.5, 36)
    assert strategy.gap(n) == pytest.approx(gap, abs=0.05)
    assert 36 * (generation - 1) > strategy.gap(n) > 36 * (generation - 2)
