import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ribs.emitters import rankers
from small import add

import dqd
from dqd.archives import REJECTED, Archive, Grid, Threshold
from dqd.emitters.rank import RULES, rank
from dqd.types import AddResult, Evaluation, replace

PLAIN = Archive.empty(Grid([0], [1], [4]), 1)
ANNEALED = Archive.empty(Grid([0], [1], [4]), 1, threshold=Threshold(0.1, 0.0))
ranks = jax.jit(lambda result, archive: rank("improvement", result, archive).ranks)
few_values = st.sampled_from([-math.inf, -2.0, -0.5, 0.0, 0.5, 3.0])  # many ties
results = st.lists(st.tuples(st.integers(0, 2), few_values | st.floats(-1e6, 1e6, width=32)), min_size=12, max_size=12)


def told(status, value):
    return AddResult(jnp.array(status), jnp.array(value, float), jnp.arange(len(status)), jnp.zeros(len(status), bool))


def ranks_of(result, archive=PLAIN):
    return ranks(result, archive)


@pytest.mark.x64
@given(results)
def test_ranks_equal_sorting_by_status_value_and_index_descending(results):
    order = sorted(range(12), key=lambda i: (*results[i], i), reverse=True)
    ranks = ranks_of(told(*zip(*results, strict=True)))
    assert [order.index(i) for i in range(12)] == ranks.tolist()


def test_a_new_cell_stands_above_any_improvement_and_that_above_any_rejection():
    result = told([0, 1, 2, 1, 0, 2], [-0.1, 900.0, -50.0, 1.0, -7.0, 3.0])
    assert ranks_of(result).tolist() == [4, 2, 1, 3, 5, 0]


def test_of_exact_ties_the_later_candidate_ranks_higher():
    assert ranks_of(told([1, 1, 2, 1], [5.0, 5.0, 1.0, 5.0])).tolist() == [3, 2, 0, 1]


def test_with_thresholds_the_value_alone_decides():
    result = told([0, 1, 2, 1, 0, 2], [-0.1, 900.0, 50.0, 1.0, -7.0, 3.0])
    assert ranks_of(result, ANNEALED).tolist() == [4, 0, 1, 3, 5, 2]


@pytest.mark.x64
def test_with_learning_rate_0_the_ranking_is_that_of_the_objective():
    archive = Archive.empty(Grid([0], [1], [4]), 1, threshold=Threshold(0.0, 0.0))
    generator = np.random.default_rng(0)
    for _ in range(5):
        objective, measures = jnp.asarray(generator.uniform(1, 9, 12)), jnp.asarray(generator.uniform(0, 1, (12, 1)))
        archive, result = add(archive, jnp.zeros((12, 1)), Evaluation(objective, measures))
        order = np.argsort(-np.asarray(objective))
        assert np.argsort(ranks_of(result, archive)).tolist() == order.tolist()


# The appendix's theorem -----------------------------------------------------------------------------------------------

CELLS = 12
elites = st.lists(st.none() | st.integers(0, 50), min_size=CELLS, max_size=CELLS)
batches = st.tuples(st.permutations(range(CELLS)), st.lists(st.integers(0, 50), min_size=8, max_size=8))


def j2(archive, bonus):
    """J2(A) = sum over the cells of f + b C: b is 1 in an occupied cell, f is 0 in an empty one. In exact integers."""
    return sum(0 if f is None else f + bonus for f in archive)


@pytest.mark.x64
@given(elites, batches)
def test_improvement_ranking_sorts_accepted_candidates_by_their_gain_in_j2(elites, batch):
    """f >= 0 and candidates in distinct cells, as the theorem asks; ties in J2 are broken by the batch index."""
    cells, objectives = batch
    everything = [f for f in elites if f is not None] + objectives
    bonus = 2 * (max(everything) - min(everything)) + 1  # C, eq. 2 of the appendix

    def gain(i):
        with_it = list(elites)
        with_it[cells[i]] = max(objectives[i], -1 if elites[cells[i]] is None else elites[cells[i]])
        return j2(with_it, bonus) - j2(elites, bonus)

    result = inserted(elites, cells, objectives)
    accepted = [i for i in range(8) if result.status[i] != REJECTED]
    by_rank = sorted(accepted, key=lambda i: int(ranks_of(result)[i]))
    assert by_rank == sorted(accepted, key=lambda i: (gain(i), i), reverse=True)
    assert all(gain(i) == 0 for i in range(8) if i not in accepted)


def inserted(elites, cells, objectives):
    """What the archive says of the batch, once it holds the elites."""
    archive = Archive.empty(Grid([0], [CELLS], [CELLS]), 1)
    stored = np.array([math.nan if f is None else float(f) for f in elites])  # a NaN leaves its cell empty
    middles = np.arange(CELLS)[:, None] + 0.5
    archive, _ = add(archive, jnp.zeros((CELLS, 1)), Evaluation(jnp.asarray(stored), jnp.asarray(middles)))
    evaluation = Evaluation(jnp.array(objectives, float), jnp.asarray(middles[list(cells[:8])]))
    return add(archive, jnp.zeros((8, 1)), evaluation)[1]


PEERS = {
    "imp": rankers.ImprovementRanker,
    "2imp": rankers.TwoStageImprovementRanker,
    "obj": rankers.ObjectiveRanker,
    "2obj": rankers.TwoStageObjectiveRanker,
    "rd": rankers.RandomDirectionRanker,
    "2rd": rankers.TwoStageRandomDirectionRanker,
}


@pytest.mark.x64
@pytest.mark.parametrize("name", PEERS)
def test_every_rule_orders_as_pyribs_does(name):
    archive = Archive.empty(Grid([-1, 0], [1, 10], [4, 5]), 3)
    random, theirs = np.random.default_rng(0), PEERS[name]()
    direction, drawn = np.zeros(2), random.normal(size=2)
    theirs._target_measure_dir = drawn * [2, 10]
    for _ in range(8):
        objective = random.normal(size=12)
        measures = random.normal(size=(12, 2)) * [1, 5]
        archive, result = add(archive, jnp.zeros((12, 3)), Evaluation(jnp.asarray(objective), jnp.asarray(measures)))
        told = replace(result, objective=jnp.asarray(objective), measures=jnp.asarray(measures))
        ranked = rank(name, told, archive, *((jnp.asarray(direction), jnp.asarray(drawn)) if "rd" in name else ()))
        info = {"status": np.asarray(result.status), "value": np.asarray(result.value)}
        order, values = theirs.rank(None, None, {"objective": objective, "measures": measures}, info)
        assert np.argsort(ranked.ranks).tolist() == order.tolist()
        np.testing.assert_allclose(ranked.values, values if values.ndim == 1 else values[:, 1])
        direction = ranked.after(jnp.array(False)) if "rd" in name else direction
        drawn = random.normal(size=2)  # counts only after a restart


def test_after_a_restart_another_direction_is_drawn():
    archive = Archive.empty(Grid([-1, 0], [1, 10], [4, 5]), 1)
    result = replace(told([1, 1], [0.0, 0.0]), objective=jnp.zeros(2), measures=jnp.array([[1.0, 0.0], [0.0, 1.0]]))
    one = rank("rd", result, archive, jnp.zeros(2), jnp.array([1.0, -1.0]))
    assert one.direction.tolist() == [2.0, -10.0]
    assert one.ranks.tolist() == [0, 1]
    other = rank("rd", result, archive, one.after(jnp.array(True)), jnp.array([-1.0, 1.0]))
    assert other.ranks.tolist() == [1, 0]


@pytest.mark.parametrize("name", [name for name in RULES if name != "improvement"])
def test_invalid_candidates_come_last(name):
    archive = Archive.empty(Grid([-1, 0], [1, 10], [4, 5]), 1)
    objective, measures = jnp.array([jnp.nan, -9.0, 1.0]), jnp.array([[1.0, 1.0], [-1.0, 0.0], [0.5, 1.0]])
    archive, result = add(archive, jnp.zeros((3, 1)), Evaluation(objective, measures))
    told = replace(result, objective=objective, measures=measures)
    direction = (jnp.zeros(2), jnp.ones(2)) if "rd" in name else ()
    assert rank(name, told, archive, *direction).ranks[0] == 2


def test_an_unknown_ranking_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"unknown ranking '2im'; did you mean '2imp'"):
        dqd.cma_me(0.5, ranking="2im")
