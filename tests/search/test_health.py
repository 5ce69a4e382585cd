"""A search that finds nothing says so, and why."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dqd

GRID = dqd.Grid(lower=[-4, -4], upper=[4, 4], shape=[100, 100])
SHORT = {"x0": jnp.zeros(10), "iterations": 60, "progress": False}


def score(x):
    return -jnp.mean(x**2), jnp.array([x[:5].mean(), x[5:].mean()])


def rounded(x):
    objective, measures = score(x)
    return objective, measures.at[1].set(jnp.round(measures[1]))


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def own_loop(function, emitter):
    evaluate = jax.jit(jax.vmap(function))
    differentiate = jax.jit(jax.vmap(jax.jacobian(lambda x: jnp.hstack(function(x)))))
    search = dqd.AskTell(emitter, GRID, x0=jnp.zeros(10))
    while search.iteration < 60:
        points = search.ask_dqd()
        search.tell_dqd(*evaluate(points), differentiate(points))
        search.tell(*evaluate(search.ask()))
    search.result()


@pytest.mark.parametrize("path", ["compiled", "own loop", "seeds"])
def test_a_search_that_mostly_restarts_says_so_and_what_to_do(path):
    emitter = dqd.cma_mega(sigma=1e-3)
    if path == "own loop":
        (words,) = said(lambda: own_loop(score, emitter))
    else:
        options = {"seeds": [0, 1, 2]} if path == "seeds" else {}
        (words,) = said(lambda: dqd.illuminate(score, emitter, GRID, **SHORT, **options))
    assert "of 60 iterations ended in a restart" in words
    assert int(words.split()[0]) > 30
    assert "sigma=None" in words
    assert "dqd.probe" in words


def test_a_search_that_finds_cells_says_nothing():
    assert said(lambda: dqd.illuminate(score, dqd.cma_mega(sigma=1.0), GRID, **SHORT)) == []


def test_restarts_in_a_full_archive_are_no_fault():
    small = dqd.Grid(lower=[-4, -4], upper=[4, 4], shape=[2, 2])
    found = []
    words = said(lambda: found.append(dqd.illuminate(score, dqd.cma_mega(sigma=1e-3), small, **SHORT)))
    assert found[0].restarts > 30
    assert words == []


def test_a_start_where_gradients_are_zero_is_not_taken_for_all_points():
    arm = dqd.Arm(n=20)  # straight: no gradient of the variance, none of the first measure
    options = {"x0": jnp.zeros(20), "iterations": 20, "chunk": 1, "seeds": range(20), "progress": False}
    assert said(lambda: dqd.illuminate(arm, dqd.cma_mega(0.05, batch_size=9), arm.grid(20), **options)) == []


@pytest.mark.parametrize("path", ["compiled", "own loop"])
@pytest.mark.parametrize("make", [dqd.cma_mega, dqd.omg_mega])
def test_a_gradient_of_zero_is_named_by_its_row(path, make):
    emitter = make(sigma=1.0)
    search = {
        "compiled": lambda: dqd.illuminate(rounded, emitter, GRID, **SHORT),
        "own loop": lambda: own_loop(rounded, emitter),
    }
    words = [line for line in said(search[path]) if "restart" not in line]
    assert len(words) == 1
    assert words[0].startswith("row 2 (measure 1) of the jacobian: zero at all")
    assert "row 1" not in words[0]


def test_gradients_that_nobody_follows_may_be_zero():
    emitter = dqd.og_map_elites(sigma=0.5, step=0.1)
    assert said(lambda: dqd.illuminate(rounded, emitter, GRID, **SHORT)) == []
    both = dqd.combine(emitter, dqd.replicate(dqd.cma_mega(1.0), 2))
    assert any("measure 1" in line for line in said(lambda: dqd.illuminate(rounded, both, GRID, **SHORT)))


def test_a_gradient_that_is_zero_at_the_start_alone_is_no_fault():
    """The hand of a straight arm does not move along it."""
    arm = dqd.Arm(10)
    assert not np.any(arm.evaluate_with_jacobian(jnp.zeros((1, 10))).jacobian[0, 1])
    assert said(lambda: dqd.illuminate(arm, dqd.cma_mega(0.1), arm.grid(), **SHORT)) == []


@pytest.mark.parametrize("seeds", [{}, {"seeds": [0, 1]}])
def test_objectives_that_no_threshold_lets_in_are_no_secret(seeds):
    emitter = dqd.cma_mae(0.5, batch_size=36, emitters=1)
    (words,) = said(lambda: dqd.illuminate(lambda x: (score(x)[0] - 1, score(x)[1]), emitter, GRID, **SHORT, **seeds))
    assert "no solution was kept" in words
    assert "minimum" in words
    low = dqd.cma_mae(0.5, minimum=-100.0, batch_size=36, emitters=1)
    assert said(lambda: dqd.illuminate(score, low, GRID, **SHORT, **seeds)) == []


def test_where_nothing_is_feasible_sigma_is_not_blamed():
    found = said(lambda: dqd.illuminate(lambda x: (*score(x), False), dqd.map_elites(0.1), GRID, **SHORT))
    assert found == [line for line in found if "infeasible" in line] != []
    found = said(lambda: dqd.illuminate(lambda x: (*score(x), False), dqd.cma_mega(1.0), GRID, **SHORT))
    assert not any("sigma=None" in line for line in found)
