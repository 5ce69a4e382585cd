"""Functions of a batch as evaluators: jacobians estimated, noise averaged out, solutions kept out, and all of it
counted."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from conformance.table import assert_same
from reliability import evaluators

import dqd
from dqd.domains import FunctionDomain
from dqd.inputs.bounds import Box
from dqd.runners.hosted import Hosted
from dqd.search.search import Search

GRID = dqd.Grid([-3, -3], [3, 3], [12, 12])
MEGA = dqd.cma_mega(0.5, batch_size=6)
ELITES = dqd.map_elites(0.5, batch_size=6, initial_population=9)
START = np.linspace(-0.5, 0.7, evaluators.N)
ES = dqd.EvolutionStrategies(samples=8, sigma=0.1)


def run(evaluator, emitter=MEGA, **options):
    settings = {"x0": START, "iterations": 4, "progress": False}
    return dqd.illuminate(evaluator, emitter, GRID, **{**settings, **options})


# Estimated jacobians --------------------------------------------------------------------------------------------------


def test_cma_mega_needs_no_gradients():
    exact = run(evaluators.Sphere(), iterations=60)
    for estimate in ("fd", "es"):
        found = run(dqd.evaluator(evaluators.sphere, estimate), iterations=60)
        assert found.coverage > 0.6 * exact.coverage > 40
        assert found.best > -0.3  # of -1.07 at the start


def counting(calls):
    def function(solutions):
        calls.append(len(solutions))
        return evaluators.sphere(solutions)

    return function


@pytest.mark.parametrize(
    ("estimate", "repetitions", "point", "solution"),
    [("fd", 1, 1 + 2 * evaluators.N, 1), (ES, 1, 9, 1), (ES, 3, 27, 3)],
    ids=["fd", "es", "es, repeated"],
)
def test_every_evaluation_counts(estimate, repetitions, point, solution):
    calls = []
    result = run(dqd.evaluator(counting(calls), estimate, repetitions=repetitions))
    assert calls == [point, 5 * solution] * 4
    assert (result.evaluations, result.gradients, result.nonfinite) == (sum(calls), 4, 0)
    assert result.summary()["evaluations"] == sum(calls)
    assert result.history["evaluations"].tolist() == np.cumsum(calls)[1::2].tolist()  # after every iteration


def test_workers_share_the_samples_and_change_nothing():
    calls = []
    alone = run(dqd.evaluator(evaluators.sphere, ES))
    with ThreadPoolExecutor(3) as pool:
        shared = run(dqd.evaluator(counting(calls), ES), where=dqd.Workers(pool, rows=2))
    assert max(calls) == 2
    assert sum(calls) == shared.evaluations == 4 * (9 + 5)
    assert_same(shared.state, alone.state)


def test_a_run_with_estimates_goes_on_bit_for_bit(tmp_path):
    simulator = dqd.evaluator(evaluators.sphere, ES, repetitions=2)
    whole = run(simulator, iterations=6)
    run(simulator, iterations=2, out=tmp_path / "run")
    assert_same(run(simulator, iterations=6, out=tmp_path / "run").state, whole.state)
    other = dqd.evaluator(evaluators.sphere, dqd.EvolutionStrategies(8, 0.1, seed=5), repetitions=2)
    with pytest.raises(ValueError, match=r"domain\.evaluator\.estimate\.seed: 0 there, 5 here"):
        run(other, iterations=7, out=tmp_path / "run")


def test_bounds_hold_for_samples():
    seen = []

    def function(solutions):
        seen.append(solutions.copy())
        return evaluators.sphere(solutions)

    search = Search(MEGA, Box.of(np.full(evaluators.N, -0.6), np.full(evaluators.N, 0.8), START))
    simulator = dqd.evaluator(function, dqd.EvolutionStrategies(20, sigma=0.5))
    Hosted.of(search, simulator, 2, dqd.Workers(), None).evaluations.evaluate(START[None], 1, "points")
    (rows,) = seen
    assert (len(rows), rows.min(), rows.max()) == (21, np.float32(-0.6), np.float32(0.8))


def test_a_failed_sample_costs_differences_the_jacobian_and_nothing_else():
    def function(solutions):
        objective, measures = evaluators.sphere(solutions)
        return np.where(np.abs(solutions[:, 0] - START[0]) > 1e-4, np.nan, objective), measures

    with pytest.warns(UserWarning, match="none of the last 1 jacobians was finite"):
        result = run(dqd.evaluator(function, "fd"), iterations=1)
    assert (result.nonfinite, result.gradients, len(result.archive)) == (1, 1, 1)


def test_a_jax_score_with_a_useless_gradient_can_be_estimated():
    def score(x):
        return -jax.numpy.abs(jax.numpy.round(5 * x)).sum(), jax.numpy.round(10 * x[:2]) / 10

    batched = jax.jit(jax.vmap(score))
    estimate = dqd.EvolutionStrategies(40, sigma=0.3)
    told = dqd.evaluator(batched, estimate).evaluate_with_jacobian(START[None].astype(np.float32))
    assert (np.abs(told.jacobian).sum(axis=2) > 0.3).all()
    assert told.evaluations.tolist() == [41]
    assert float(np.abs(jax.jacobian(score)(START)[0]).max()) == 0


def test_an_estimate_is_an_evaluator_like_any_other():
    report = dqd.check_jacobian(dqd.evaluator(evaluators.sphere, "fd"), START)
    assert report, report.message
    search = dqd.AskTell(MEGA, GRID, x0=START)
    simulator = dqd.evaluator(evaluators.sphere, ES)
    while search.iteration < 4:
        search.tell_dqd(simulator.evaluate_with_jacobian(search.ask_dqd()))
        search.tell(simulator.evaluate(search.ask()))
    result = search.result()
    assert_same(result.state, run(simulator).state)
    assert result.evaluations == 4 * (9 + 5)


@pytest.mark.parametrize("evaluator", [dqd.evaluator(evaluators.sphere, "es"), dqd.evaluator(evaluators.sphere, "fd")])
def test_of_no_points_nothing_is_known(evaluator):
    told = evaluator.evaluate_with_jacobian(np.zeros((0, evaluators.N)))
    shapes = [np.shape(part) for part in (told.objective, told.measures, told.jacobian, told.evaluations)]
    assert shapes == [(0,), (0, 2), (0, 3, evaluators.N), (0,)]


# Noise ----------------------------------------------------------------------------------------------------------------


def test_repetitions_are_averaged():
    draws = iter(np.arange(100.0))

    def noisy(solutions):
        noise = np.array([next(draws) for _ in solutions])
        return noise, solutions[:, :2] + noise[:, None]

    told = dqd.evaluator(noisy, repetitions=4).evaluate(np.zeros((2, 3)))
    assert told.objective.tolist() == [1.5, 5.5]
    assert told.measures.tolist() == [[1.5, 1.5], [5.5, 5.5]]
    assert told.evaluations.tolist() == [4, 4]


def test_exact_jacobians_are_averaged_as_well():
    one = dqd.evaluator(evaluators.Sphere().evaluate_with_jacobian, repetitions=3)
    two = dqd.evaluator(evaluators.sphere, evaluators.Sphere().evaluate_with_jacobian, repetitions=3)
    exact = evaluators.Sphere().evaluate_with_jacobian(START[None])
    for evaluator in (one, two):
        told = evaluator.evaluate_with_jacobian(START[None])
        np.testing.assert_allclose(told.jacobian, exact[2])
        assert told.evaluations.tolist() == [3]


# Feasibility ----------------------------------------------------------------------------------------------------------


def allowed(solutions):
    return solutions[:, 4] < 0.4


def flagged(solutions):
    """As a worker without JAX would say it."""
    objective, measures = evaluators.sphere(solutions)
    return SimpleNamespace(objective=objective, measures=measures, feasible=allowed(solutions))


def score(x):
    return -jax.numpy.sum(x**2), x[:2], allowed(x[None])[0]


def seen_and_flagged(seen):
    def function(solutions):
        seen.extend(solutions)
        objective, measures = evaluators.sphere(solutions)
        return dqd.Evaluation(objective, measures, feasible=allowed(solutions))

    return function


def test_infeasible_solutions_are_kept_out_and_counted():
    seen = []
    result = run(dqd.evaluator(seen_and_flagged(seen)), ELITES, iterations=20)
    infeasible = int((~allowed(np.array(seen))).sum())
    assert 20 < infeasible < 120
    assert (result.infeasible, result.nonfinite, result.evaluations) == (infeasible, 0, len(seen))
    assert result.summary()["infeasible"] == infeasible
    assert allowed(result.elites.solutions).all()


def test_elites_of_another_search_that_are_infeasible_here_are_no_failures():
    """They are evaluated for their gradients alone, and compete no more."""
    before = run(lambda x: score(x)[:2], dqd.map_elites(0.3, batch_size=9), iterations=10)
    result = run(score, dqd.omg_mega(0.1, batch_size=6), iterations=10, archive=before)
    assert not allowed(before.elites.solutions).all()
    assert result.infeasible > 0
    assert result.nonfinite == 0


def test_the_compiled_score_and_ones_own_loop_keep_the_same_out():
    result = run(score, iterations=10)
    assert allowed(result.elites.solutions).all()
    search, domain = dqd.AskTell(MEGA, GRID, x0=START), FunctionDomain(score)
    while search.iteration < 10:
        told = domain.evaluate_with_jacobian(search.ask_dqd())
        search.tell_dqd(told.objective, told.measures, told.jacobian, feasible=told.feasible)
        search.tell(domain.evaluate(search.ask()))
    assert search.result().infeasible == result.infeasible > 0
    np.testing.assert_allclose(search.result().qd_score, result.qd_score, rtol=1e-4)


def test_what_is_infeasible_once_is_infeasible():
    turns = iter([True, True, False, True])

    def function(solutions):
        objective, measures = evaluators.sphere(solutions)
        return dqd.Evaluation(objective, measures, feasible=np.array([next(turns) for _ in solutions]))

    assert dqd.evaluator(function, repetitions=2).evaluate(np.stack([START, START])).feasible.tolist() == [True, False]


def test_an_infeasible_solution_is_no_failed_one_whatever_its_numbers():
    def function(solutions):
        objective, measures = evaluators.sphere(solutions)
        return dqd.Evaluation(np.where(allowed(solutions), objective, np.nan), measures, feasible=allowed(solutions))

    result = run(dqd.evaluator(function), ELITES, iterations=20)
    assert result.nonfinite == 0
    assert result.infeasible > 20


def test_pieces_that_say_nothing_are_feasible():
    def function(solutions):
        return flagged(solutions) if not allowed(solutions).all() else evaluators.sphere(solutions)

    one = run(dqd.evaluator(function), ELITES, where=dqd.Workers(rows=1))
    assert_same(one.state, run(dqd.evaluator(flagged), ELITES, where=dqd.Workers(rows=1)).state)
    assert one.infeasible > 0


def test_a_search_that_finds_hardly_anything_feasible_says_so():
    def function(solutions):
        return dqd.Evaluation(*evaluators.sphere(solutions), feasible=np.zeros(len(solutions), bool))

    with pytest.warns(UserWarning, match="100% of the solutions were infeasible.*start from a feasible x0"):
        result = run(dqd.evaluator(function), ELITES)
    assert len(result.archive) == 0


# Mistakes -------------------------------------------------------------------------------------------------------------


def told(**extras):
    return dqd.evaluator(lambda x: SimpleNamespace(objective=x[:, 0], measures=x[:, :2], **extras))


MISTAKES = [
    (lambda: dqd.evaluator(evaluators.sphere, "esf"), ValueError, "unknown jacobian 'esf'; did you mean 'es'"),
    (lambda: dqd.evaluator(evaluators.sphere, dqd.EvolutionStrategies), TypeError, r"jacobian: expected a function"),
    (lambda: dqd.evaluator(evaluators.sphere, 3), TypeError, r'jacobian: expected a function .* "fd", "es"'),
    (lambda: dqd.evaluator(evaluators.sphere, repetitions=0), ValueError, "repetitions: expected a whole number"),
    (lambda: run(told(feasible=np.ones(9)), ELITES), TypeError, "feasible: expected bool"),
    (lambda: run(told(feasible=np.ones(3, bool)), ELITES), ValueError, r"feasible: expected \(9,\)"),
    (lambda: run(lambda x: (x[0], x[:2], x[1])), TypeError, "third thing says whether the solution is feasible"),
]


@pytest.mark.parametrize(("call", "kind", "words"), MISTAKES, ids=[words[:30] for _, _, words in MISTAKES])
def test_mistakes_are_explained(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
