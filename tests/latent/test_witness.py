"""Held-out judges on a toy generator: what they say, where it is kept, and that no search sees them."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from latent import toys
from numpy.testing import assert_allclose

import dqd
from dqd.domains import Problem
from dqd.latent import Judge, held_out
from dqd.latent.witness import with_held_out
from dqd.safe import UnreadableError
from dqd.types import pytree, replace, static

EMITTER = dqd.map_elites(0.5, batch_size=8, initial_population=8)


@pytree
class Brighter:
    """Sees all as `toys.Light` does, the upper half brighter by `by`; and counts in its own way."""

    by: float = 0.1
    names: tuple[str, ...] = static(default=("upper", "contrast", "lower"))

    def scores(self, images):
        upper, lower, contrast = toys.Light().scores(images).T
        return jnp.stack([upper + self.by, contrast - 0.01, lower], axis=1)


def problem(*judges, **options) -> Problem:
    domain = toys.domain(stored=(10.0, 100.0), **options)
    grid = dqd.Grid((-1, -1), (1, 1), (5, 5))
    found = Problem(domain, grid, jnp.zeros(4), "toy", ("contrast", "upper", "lower"))
    return held_out(found, *judges)


def search(searched, **options) -> dqd.Result:
    return dqd.illuminate(searched, EMITTER, iterations=5, progress=False, **options)


def test_a_judge_changes_nothing_of_the_search_and_says_what_it_sees():
    plain, result = search(problem()), search(problem(Judge("b", Brighter(), {"upper": 0.2, "contrast": 0.5})))
    assert plain.agreement is None
    assert "agreement" not in plain.summary()
    np.testing.assert_array_equal(result.elites.solutions, plain.elites.solutions)
    np.testing.assert_array_equal(result.elites.objective, plain.elites.objective)
    fields = result.elites.fields
    assert set(fields) == {"upper_by_b", "contrast_by_b", "disagreement"}
    assert_allclose(fields["upper_by_b"], result.elites.measures[:, 0] + 0.1, atol=1e-5)
    assert_allclose(fields["contrast_by_b"], result.elites.objective - 10 * 0.01, atol=1e-3)  # as it is stored
    assert_allclose(fields["disagreement"], 0.5, atol=1e-3)  # 0.1 of 0.2; 0.01 of 0.5 is less
    assert result.agreement.share == 100.0
    assert result.agreement.qd_score == pytest.approx(result.qd_score, rel=1e-5)
    assert "trusted_qd_score" in repr(result)
    assert result.summary()["opinions"][0]["judge"] == "b"


def test_a_minus_turns_opinions_round_and_a_penalty_holds_for_all():
    judge = Judge("b", Brighter(), {"upper": 0.05, "contrast": 1.0})
    result = search(problem(judge, objective="-contrast", measures=("-upper", "lower"), norm_penalty=0.3))
    fields = result.elites.fields
    assert_allclose(fields["upper_by_b"], result.elites.measures[:, 0] - 0.1, atol=1e-5)
    assert_allclose(fields["contrast_by_b"], result.elites.objective + 10 * 0.01, atol=1e-3)
    assert result.agreement.share == 0.0


def test_provisional_scores_are_judged_again_and_opinions_belong_to_those_that_are_left():
    judge = Judge("b", Brighter(), {"upper": 0.2})
    searched = problem(judge)
    stern = held_out(replace(searched, final=replace(searched.domain, norm_penalty=0.4)), judge)
    result = search(stern)
    assert_allclose(result.elites.fields["upper_by_b"], result.elites.measures[:, 0] + 0.1, atol=1e-5)
    lost = 10 * 0.4 * np.mean(result.elites.solutions**2, axis=1)
    row = np.searchsorted(result.provisional.elites.cell, result.elites.cell)
    assert_allclose(result.elites.objective, result.provisional.elites.objective[row] - lost, atol=1e-3)
    assert result.provisional.agreement is None


def test_every_seed_is_judged():
    results = dqd.illuminate(
        problem(Judge("b", Brighter(), {"upper": 0.2})), EMITTER, iterations=5, seeds=[3, 4], progress=False
    )
    alone = search(problem(Judge("b", Brighter(), {"upper": 0.2})), seed=4)
    assert results[1].agreement.qd_score == pytest.approx(alone.agreement.qd_score, rel=1e-5)
    assert_allclose(results.qd_score, [each.qd_score for each in results], rtol=1e-6)
    assert {"trusted_qd_score", "qd_score"} <= results.summary()["seed-3"].keys()


def test_a_loop_of_ones_own_is_judged_by_the_same_call():
    given = problem(Judge("b", Brighter(), {"upper": 0.2}))
    loop = dqd.AskTell(EMITTER, given.grid, x0=given.x0)
    evaluate = jax.jit(given.domain.evaluate)
    for _ in range(3):
        found = evaluate(loop.ask())
        loop.tell(found.objective, found.measures)
    judged = loop.result().judged_by(given)
    assert judged.agreement.share == 100.0


@pytest.mark.parametrize("seeds", [None, [3, 4]])
def test_what_judges_say_is_kept_beside_the_record_and_loaded_from_there(tmp_path, seeds):
    given = problem(Judge("b", Brighter(), {"upper": 0.2}))
    found = search(given, out=tmp_path / "run", **({} if seeds is None else {"seeds": seeds}))
    result, path = (found, tmp_path / "run") if seeds is None else (found[1], tmp_path / "run" / "seed-4")
    saved = dqd.load(path)
    np.testing.assert_array_equal(saved.fields["upper_by_b"], result.elites.fields["upper_by_b"])
    assert saved.config["summary"]["trusted_qd_score"] == pytest.approx(result.agreement.qd_score)
    again = search(given, out=tmp_path / "run", **({} if seeds is None else {"seeds": seeds}))
    assert (again if seeds is None else again[1]).agreement.qd_score == result.agreement.qd_score


def test_a_judgement_ends_with_the_iteration_it_belongs_to_and_damage_is_named(tmp_path):
    given = problem(Judge("b", Brighter(), {"upper": 0.2}))
    search(given, out=tmp_path / "run")
    dqd.illuminate(problem(), EMITTER, iterations=9, out=tmp_path / "run", progress=False)  # nobody looked at these
    assert dqd.load(tmp_path / "run").fields == {}
    search(replace(given, x0=given.x0 + 1), out=tmp_path / "other")
    kept = tmp_path / "other" / "judged"
    told = json.loads((kept / "summary.json").read_text())
    (kept / "archive.safetensors").write_bytes((kept / "archive.safetensors").read_bytes()[:-1] + b"\1")
    with pytest.raises(UnreadableError, match="it was changed since it was written"):
        dqd.load(tmp_path / "other")
    assert told["step"] == 5
    (kept / "summary.json").write_text("{")
    assert dqd.load(tmp_path / "other").fields == {}


def test_mistakes_are_answered_with_what_there_is():
    for make, words in (
        (lambda: Judge("b", Brighter(), {"uper": 1.0}), "a tolerance for 'uper', but it scores upper, contrast"),
        (lambda: Judge("b", Brighter(), {"upper": 0.0}), "tolerance of upper: expected a number above 0, got 0.0"),
        (lambda: problem(Judge("b", Brighter(), {"lower": 1.0}), measures=("upper",)), "not on what is searched"),
        (lambda: problem(*[Judge("b", Brighter(), {"upper": 1.0})] * 2), "every judge needs a name of its own"),
        (lambda: with_held_out(problem(), {"b": Brighter}, ["c"]), "unknown judge 'c'. Known: b, none"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_judges_by_name_are_those_with_an_opinion_unless_told():
    there_are = {"b": lambda: Judge("b", Brighter(), {"upper": 0.2})}
    assert [o.judge for o in with_held_out(problem(), there_are, None).opinions] == ["b"]
    assert with_held_out(problem(measures=("lower",)), there_are, None).opinions == ()
    assert with_held_out(problem(), there_are, ["none"]).witness is None
