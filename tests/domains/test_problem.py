"""What counts in the end: the scores of the search, or those of the judges who look at the elites once more."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dqd
from dqd.archives import Archive
from dqd.domains import Arm, Domain, FunctionDomain, Problem, rejudged
from dqd.saved.agreement import Opinion
from dqd.types import Evaluation, pytree

GRID = dqd.Grid(lower=[0.0], upper=[4.0], shape=[4])
ADD = jax.jit(Archive.add)


@pytree
class Drawn(Domain):
    """Objective `salt` + x1 and the measure x0 + `shift`; not finite where x1 is negative."""

    salt: int = 0
    shift: float = 0.0

    def score(self, x):
        return self.salt + jnp.where(x[1] < 0, jnp.nan, x[1]), x[:1] + self.shift


def found(solutions, *, offset=0.0) -> Archive:
    """What a search found: every solution in the cell of its first number, at iterations 5, 6, ..."""
    archive = jax.tree.map(jnp.asarray, Archive.empty(GRID, 2, qd_score_offset=offset))  # arrays all over, as there
    for iteration, x in enumerate(jnp.asarray(solutions), start=5):
        archive, _ = ADD(archive, x[None], Evaluation(jnp.array([9.0]), x[None, :1]), iteration)
    return archive


def problem(**options) -> Problem:
    return Problem(Drawn(), GRID, jnp.zeros(2), "drawn", ("objective", "measure"), **options)


def test_scores_that_are_final_stay_as_they_are():
    archive = found([[0.5, 1.0]])
    assert problem().judges == ()
    assert problem().judged(archive) is archive


def test_the_final_judge_looks_once_as_it_is_or_once_for_every_salt():
    judge = Drawn(salt=3, shift=0.5)
    assert problem(final=judge).judges == (judge,)
    assert problem(final=judge, salts=(7, 8)).judges == (Drawn(7, 0.5), Drawn(8, 0.5))
    again = problem(final=judge, salts=(10, 20)).judged(found([[0.5, 1.0]])).elites
    assert_allclose(again.objective, [16.0])  # 1 + the mean of the salts, not the 9 that the search believed in
    assert_allclose(again.measures, [[1.0]])


@pytest.mark.parametrize(("final", "got"), [(None, "no final judge"), (Arm(2), "a Arm, which has none")])
def test_salts_nobody_could_draw_by_are_found_before_the_search(final, got):
    with pytest.raises(ValueError, match=f"salts: expected a final judge with a field `salt`, got {got}"):
        problem(final=final, salts=(1,))


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_elites_move_to_the_cells_of_their_new_measures_and_the_best_of_a_cell_stays(rows):
    archive = found([[0.5, 1.0], [1.5, 4.0], [2.6, 3.0], [3.5, 2.0]], offset=-1.0)
    said = []
    again = rejudged(archive, [Drawn(shift=1.0)], rows=rows, say=lambda *done: said.append(done))
    elites = again.elites
    assert elites.cell.tolist() == [1, 2, 3]
    assert_allclose(elites.objective, [1.0, 4.0, 3.0])  # the last of them met a better one at the border
    assert elites.found.tolist() == [5, 6, 7]
    assert float(again.metrics.qd_score) == pytest.approx((8 + 3) / 4)
    assert said[-1] == (4, 4)
    assert len(said) == -(-4 // rows)
    assert len(archive) == 4
    assert float(archive.best) == 9
    assert archive.tessellation.index_of(np.array([[1.5]])).tolist() == [1]  # nothing of it was donated


def test_what_any_judge_finds_not_finite_is_dropped_and_nothing_comes_of_nothing():
    archive = found([[0.5, 1.0], [1.5, -1.0]])
    assert rejudged(archive, [Drawn(), Drawn(1)]).elites.cell.tolist() == [0]
    assert len(rejudged(Archive.empty(GRID, 2), [Drawn()])) == 0


@pytest.mark.x64
def test_any_domain_may_judge_and_the_precision_of_the_archive_stays():
    archive = found([[0.1, 1.0], [2.2, 1 / 3]])
    again = rejudged(archive, [FunctionDomain(lambda x: (x[1], x[:1]))]).elites
    assert again.solutions.dtype == again.objective.dtype == jnp.float64
    assert_allclose(again.objective, [1.0, 1 / 3], rtol=1e-15)
    np.testing.assert_array_equal(again.cell, archive.elites.cell)


def test_an_elite_that_any_judge_finds_infeasible_is_dropped():
    judges = [FunctionDomain(lambda x, least=least: (x[1], x[:1], x[0] > least)) for least in (0.0, 1.0)]
    again = rejudged(found([[0.5, 1.0], [1.5, 2.0]]), judges).elites
    assert again.objective.tolist() == [2.0]


# Held-out judges of any domain ----------------------------------------------------------------------------------------


class Doubter:
    """Finds the measure larger by x1, and has no opinion on the objective."""

    opinions = (Opinion("doubter", "place", of=1, tolerance=0.5),)

    def beside(self, domain):
        def score(x):
            objective, measures = domain.score(x)
            return objective, measures, {"place_by_doubter": measures[0] + x[1]}

        return FunctionDomain(score)


def test_opinions_are_fields_and_change_nothing_else():
    archive = found([[0.5, 0.2], [1.5, 0.7], [2.5, 0.1]])
    judged = problem(witness=Doubter()).judged(archive)
    np.testing.assert_array_equal(judged.elites.objective, archive.elites.objective)
    assert_allclose(judged.elites.fields["place_by_doubter"], [0.7, 2.2, 2.6], rtol=1e-6)
    assert_allclose(judged.elites.fields["disagreement"], [0.4, 1.4, 0.2], rtol=1e-5)
    assert judged.qd_score == archive.qd_score
    assert archive.fields is None


def test_opinions_of_elites_that_are_judged_again_belong_to_those_that_stay():
    judged = problem(final=Drawn(shift=1.0), witness=Doubter()).judged(found([[0.5, 0.2], [3.5, 0.7], [2.6, 0.9]]))
    assert judged.elites.cell.tolist() == [1, 3]
    assert_allclose(judged.elites.objective, [0.2, 0.9], rtol=1e-6)
    assert_allclose(judged.elites.fields["place_by_doubter"], [1.7, 4.5], rtol=1e-6)
