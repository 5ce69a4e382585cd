"""Targeting as a whole: it arrives where it aims, and asks little of its surroundings."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import quick_to_compile

import dqd
from dqd.archives import Archive
from dqd.emitters.targeting.misses import PLACES, Misses
from dqd.emitters.targeting.sizes import Sizes
from dqd.runners.compiled import iterate
from dqd.search.search import Search
from dqd.types import pytree, replace

GRID = dqd.Grid([-5, -5], [5, 5], [20, 20])
random = np.random.default_rng(0)
ROWS = random.normal(size=(6, 2))


SCORES = {
    "linear": lambda x: (-jnp.sum(x**2), x @ ROWS),
    "no gradient": lambda x: (jnp.round(x[0]), x @ ROWS),
    "flat": lambda x: (-jnp.sum(x**2), jnp.stack([x[0], 0.0 * x[1]])),
}


@pytree
class Chosen(dqd.Domain):
    """One of SCORES, chosen when it runs: compiled once."""

    number: jax.Array

    def score(self, x):
        return jax.lax.switch(self.number, list(SCORES.values()), x)


def found(score="linear", grid=GRID, n=6, iterations=3, **options):
    domain = Chosen(jnp.asarray(list(SCORES).index(score))) if isinstance(score, str) else score
    emitter, x0 = dqd.targeting(batch_size=9), jnp.full(n, 0.1)
    with quick_to_compile():
        return dqd.illuminate(domain, emitter, grid, x0=x0, iterations=iterations, progress=False, **options)


@pytest.mark.parametrize("score", ["linear", "no gradient"])
def test_where_measures_are_linear_every_shot_finds_a_cell(score):
    assert len(found(score).archive) == 1 + 3 * 8


def test_a_measure_that_never_moves():
    result = found("flat", iterations=6)
    assert len(result.archive) >= 10
    assert result.nonfinite == 0


def test_within_bounds_too():
    result = found(bounds=(-0.6, 0.6))
    assert np.abs(result.elites.solutions).max() <= 0.6
    assert len(result.archive) >= 1 + 0.8 * 3 * 8


@pytest.mark.parametrize(("n", "k"), [(2, 3), (12, 10)])
def test_any_number_of_measures(n, k):
    rows = random.normal(size=(n, k))
    grid = dqd.Grid([-1] * k, [1] * k, [4] * k)
    result = found(lambda x: (-jnp.sum(x**2), jnp.tanh(x @ rows)), grid, n)
    assert len(result.archive) > 1
    assert result.nonfinite == 0


def test_a_grid_with_fewer_cells_than_branches():
    assert len(found(grid=dqd.Grid([-1], [1], [3]), score=lambda x: (x[0], x[1:2]), n=3).archive) == 3


CELLS = 61 * 67  # a size that nothing else has


def test_the_compiled_loop_copies_nothing_of_the_size_of_the_archive():
    domain, search = dqd.LinearProjection("sphere", 7), Search(dqd.targeting(batch_size=9))
    state = search.init(Archive.empty(dqd.Grid([-9, -9], [9, 9], [61, 67]), 7), jnp.zeros(7), jax.random.key(0))
    assert all(leaf.shape[:1] != (CELLS,) for leaf in jax.tree.leaves(state.emitter))
    with quick_to_compile():
        loop = jax.jit(lambda state: iterate(search, state, domain, 5, batched=False), donate_argnums=0)
        program = loop.lower(state).compile().as_text()
    assert re.findall(rf"\w+\[{CELLS}\b[^=]* copy\(.*", program) == []


def test_misses_count_once_per_batch_and_end_somewhere():
    misses = Misses.none().after(jnp.array([5, 5, 8]), jnp.array([True, True, False]))
    assert misses.of(jnp.array([5, 8, 5 + PLACES])).tolist() == [1, 0, 1]
    for _ in range(300):
        misses = misses.after(jnp.array([5]), jnp.array([True]))
    assert 100 <= int(misses.of(jnp.array(5))) <= 127


@pytest.mark.parametrize(
    ("new", "factor"),
    [
        ([1, 1, 1, 1], 1.25),
        ([1, 0, 1, 0], 1.25),  # noise makes near and far fail alike: that is no reason to stay near
        ([1, 1, 0, 0], 0.8),
        ([0, 0, 0, 0], 0.8),
    ],
)
def test_the_radius_follows_the_comparison_of_long_with_short_steps(new, factor):
    sizes = replace(Sizes.first(jnp.float32), radius=jnp.ones(()))
    length, tried = jnp.array([1.0, 2.0, 8.0, 9.0]), jnp.ones(4, bool)
    assert float(sizes.with_radius(tried, jnp.array(new, bool), length).radius) == pytest.approx(factor)
    assert float(sizes.with_radius(~tried, jnp.array(new, bool), length).radius) == 1.0


def test_the_units_of_the_stored_objective_are_found_out():
    sizes, linear_ = Sizes.first(jnp.float32), jnp.linspace(-1, 2, 9)
    for _ in range(200):
        sizes = sizes.with_objective(jnp.ones(9, bool), 30 * linear_, linear_, jnp.ones(9))
    assert float(sizes.scale) == pytest.approx(30, rel=1e-2)
