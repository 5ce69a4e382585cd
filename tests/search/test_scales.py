"""A sigma that was left out is chosen, said, recorded and used again, on every path."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd
from dqd.search.scales import Scales
from dqd.search.search import Search

N = 10
GRID = dqd.Grid(lower=[-4, -4], upper=[4, 4], shape=[100, 100])
SHORT = {"x0": jnp.zeros(N), "iterations": 20}


def score(x):
    return -jnp.mean(x**2), jnp.array([x[:5].mean(), x[5:].mean()])


evaluate = jax.jit(jax.vmap(score))
differentiate = jax.jit(jax.vmap(jax.jacobian(lambda x: jnp.hstack(score(x)))))


class Elsewhere:
    """The same as an evaluator that JAX does not see into."""

    def evaluate(self, solutions):
        return evaluate(solutions)

    def evaluate_with_jacobian(self, solutions):
        return *evaluate(solutions), differentiate(solutions)


def own_loop(emitter, iterations=20):
    search = dqd.AskTell(emitter, GRID, x0=jnp.zeros(N))
    while search.iteration < iterations:
        points = search.ask_dqd()
        search.tell_dqd(*evaluate(points), differentiate(points))
        solutions = search.ask()
        assert np.array_equal(solutions, search.ask())
        search.tell(*evaluate(solutions))
    return search.result()


def test_every_path_chooses_the_same_and_says_it(capfd):
    found = dqd.illuminate(score, dqd.cma_mega(), GRID, **SHORT)
    assert list(found.chosen) == ["unit gradients"]
    sigma = found.chosen["unit gradients"]
    assert f"dqd: chosen sigma = {sigma:.3g} along unit gradients" in capfd.readouterr().err
    assert found.search.emitter.strategy.sigma == sigma
    assert found.coverage > 0.5
    same = dqd.illuminate(score, dqd.cma_mega(sigma), GRID, **SHORT, progress=False)
    assert same.chosen == {}
    assert same.qd_score == found.qd_score
    others = [
        dqd.illuminate(Elsewhere(), dqd.cma_mega(), GRID, **SHORT, progress=False),
        own_loop(dqd.cma_mega()),
        *dqd.illuminate(score, dqd.cma_mega(), GRID, **SHORT, seeds=[0, 1], progress=False),
    ]
    for other in others:
        assert other.chosen["unit gradients"] == pytest.approx(sigma, rel=0.02)
    assert capfd.readouterr().err.count("chosen") == 1  # by the loop of one's own


def test_the_initial_population_has_the_scale_of_the_search():
    def tiny(x):
        return score(1e6 * x)

    found = dqd.illuminate(tiny, dqd.map_elites(), GRID, **SHORT, progress=False)
    assert found.chosen["initial_sigma"] < 1e-5
    assert found.search.initial_sigma == found.chosen["initial_sigma"]
    assert found.clamped_share < 0.5
    given = dqd.illuminate(tiny, dqd.map_elites(), GRID, **SHORT, progress=False, initial_sigma=1e-6)
    assert "initial_sigma" not in given.chosen
    assert set(own_loop(dqd.omg_mega(), iterations=1).chosen) == {"unit gradients", "initial_sigma"}


@pytest.mark.parametrize("lost", [False, True])
def test_a_run_goes_on_with_what_it_chose(tmp_path, capfd, monkeypatch, lost):
    whole = dqd.illuminate(score, dqd.cma_mega(), GRID, **SHORT, out=tmp_path / "whole")
    begun = dqd.illuminate(score, dqd.cma_mega(), GRID, **SHORT | {"iterations": 10}, out=tmp_path / "parts")
    config = tmp_path / "parts" / "config.json"
    assert json.loads(config.read_text())["chosen"] == begun.chosen
    assert capfd.readouterr().err.count("chosen") == 2

    monkeypatch.delattr("dqd.domains.survey.Survey.sigma")  # nothing is looked for again
    if lost:
        config.unlink()  # the checkpoints know it, too
    again = dqd.illuminate(score, dqd.cma_mega(), GRID, **SHORT, out=tmp_path / "parts")
    assert "chosen" not in capfd.readouterr().err
    assert again.chosen == begun.chosen
    assert again.qd_score == whole.qd_score


@pytest.mark.parametrize("there", [{}, {"chosen": 3}, {"chosen": {"unit gradients": "1"}}, {"chosen": {"x": 1.0}}])
def test_what_a_record_does_not_name_is_chosen_anew(there):
    scales = Scales.of(Search(dqd.cma_mega()), None)
    assert scales.known(there) is None
    assert scales.known({"chosen": {"unit gradients": 2.5}}) == {"unit gradients": 2.5}


def test_parallel_gradients_are_told_before_the_search():
    def line(x):
        return -jnp.mean(x**2), jnp.array([x[0], x[0] ** 3 + x[0]])

    with pytest.warns(UserWarning, match=r"row 1 \(measure 0\) and row 2 \(measure 1\) .* same direction"):
        dqd.illuminate(line, dqd.cma_mega(), GRID, **SHORT, progress=False)


def test_a_failed_tell_changes_nothing_while_a_sigma_is_looked_for():
    search = dqd.AskTell(dqd.cma_mega(), GRID, x0=jnp.zeros(N))
    with pytest.raises(RuntimeError, match="ask_dqd"):
        search.ask()
    points = search.ask_dqd()
    with pytest.raises(ValueError, match="jacobian"):
        search.tell_dqd(*evaluate(points), np.zeros((1, 2, N)))
    assert np.array_equal(points, search.ask_dqd())
    search.tell_dqd(*evaluate(points), differentiate(points))
    with pytest.raises(ValueError, match="none can be told"):
        search.tell_dqd(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 3, N)))
    assert search.iteration == 0
    assert len(search.archive) == 0
