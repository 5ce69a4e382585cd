"""Targeting as a whole: it arrives where it aims, and asks little of its surroundings."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import quick_to_compile
from small import Jitted, add

import dqd
from dqd.archives import Archive
from dqd.emitters.gain import ruinous
from dqd.emitters.targeting.chase import Pursuit, after
from dqd.emitters.targeting.misses import PLACES, Misses
from dqd.emitters.targeting.sizes import Sizes
from dqd.runners.compiled import iterate
from dqd.search.search import Search
from dqd.types import AddResult, Evaluation, pytree, replace

GRID = dqd.Grid([-5, -5], [5, 5], [20, 20])
random = np.random.default_rng(0)
ROWS = random.normal(size=(6, 2))


SCORES = {
    "linear": lambda x: (-jnp.sum(x**2), x @ ROWS),
    "no gradient": lambda x: (jnp.round(x[0]), x @ ROWS),
    "walled": lambda x: (jnp.where(x[0] > 0.12, jnp.nan, -jnp.sum((x - 0.3) ** 2)), x @ ROWS / 3),
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


@pytest.mark.parametrize("reach", [0.01, 4.0, 1000.0])
def test_the_first_radius_decides_little(reach):
    """Until most shots go to cells within the radius, it learns from those beyond; it stayed small for ever before."""
    domain, emitter = dqd.LinearProjection("sphere", n=20), replace(dqd.targeting(), reach=reach)
    with quick_to_compile():
        result = dqd.illuminate(domain, emitter, domain.grid(50), x0=jnp.zeros(20), iterations=150, progress=False)
    assert result.coverage > 90


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
    batch = np.array([5, 5, 8])
    misses = Jitted(Misses.none()).after(batch, np.array([True, True, False]))
    assert Jitted(misses).of(np.array([5, 8, 5 + PLACES])).tolist() == [1, 0, 1]
    for _ in range(300):
        misses = Jitted(misses).after(batch, np.array([False, True, False]))
    assert 100 <= int(misses.of(jnp.array(5))) <= 127


@pytest.mark.parametrize(
    ("new", "factor"),
    [
        ([1, 1, 1, 1], 1.25),
        ([1, 0, 1, 0], 1.25),  # noise makes near and far fail alike: that is no reason to stay near
        ([1, 1, 0, 0], 0.8),
        ([0, 0, 0, 0], 1.0),
    ],
)
def test_the_radius_follows_the_comparison_of_long_with_short_steps(new, factor):
    sizes = Jitted(replace(Sizes.first(jnp.float32), radius=np.ones((), np.float32)))
    length, tried = np.array([1.0, 2.0, 8.0, 9.0]), np.ones(4, bool)
    assert float(sizes.with_radius(tried, np.array(new, bool), length).radius) == pytest.approx(factor)
    assert float(sizes.with_radius(~tried, np.array(new, bool), length).radius) == 1.0


def test_the_radius_does_not_outgrow_what_was_tried():
    sizes = Jitted(replace(Sizes.first(jnp.float32), radius=np.full((), 31.0, np.float32)))
    assert float(sizes.with_radius(np.ones(2, bool), np.ones(2, bool), np.array([1.0, 9.0])).radius) == 31.0


def test_a_wall_of_nan_that_no_gradient_knows_does_not_end_a_search():
    """The best of most cells lies at it or behind it."""
    result = found("walled", iterations=300)
    assert result.nonfinite < 0.4 * result.evaluations


@pytest.mark.parametrize(("finite", "factor"), [([1, 1, 0, 0], 1.0), ([1, 0, 0, 0], 0.8)])
def test_steps_are_shorter_where_most_branches_are_not_finite(finite, factor):
    before = replace(Sizes.first(jnp.float32), radius=np.ones((), np.float32), logs=np.zeros(2, np.float32))
    after = Jitted(before).with_walls(np.array(finite, bool))
    assert float(after.radius) == pytest.approx(factor)
    assert np.exp(after.logs) == pytest.approx([factor, 1.0])


def test_the_units_of_the_stored_objective_are_found_out():
    sizes, linear_ = Sizes.first(jnp.float32), np.linspace(-1, 2, 9, dtype=np.float32)
    for _ in range(200):
        sizes = Jitted(sizes).with_objective(np.ones(9, bool), 30 * linear_, linear_, np.ones(9, np.float32))
    assert float(sizes.scale) == pytest.approx(30, rel=1e-2)


def pursuit(**others):
    about = {
        "goal": 0,
        "on": True,
        "looks": False,
        "left": 3,
        "away": 2.0,
        "middle": [-4.75, -4.75],
        "steps": np.eye(7, 6),
    }
    return Pursuit(**{name: jnp.asarray(value) for name, value in (about | others).items()})


next_pursuit = jax.jit(after)


def told(measures, objective):
    """Of nine branches, of which the first and the last six pursue."""
    nothing, objective = np.zeros(9, np.int32), np.asarray(objective, np.float32)
    return AddResult(nothing, objective, nothing, nothing > 0, objective, np.asarray(measures, np.float32))


def test_the_chase_goes_on_from_the_pursuer_that_came_nearest_unless_it_is_ruinous():
    archive = Archive.empty(GRID, 6)
    elites = np.linspace(0, 4, 50)[:, None] * np.ones(2)
    archive, _ = add(archive, np.zeros((50, 6)), Evaluation(objective=np.linspace(0, 1, 50), measures=elites))
    measures = np.full((9, 2), -4.75) + 0.5 * np.arange(2, 11)[:, None]
    measures[4], measures[8] = -4.2, -4.3
    sound = told(measures, np.zeros(9))
    assert next_pursuit(pursuit(), archive, sound).step.tolist() == np.eye(7, 6)[6].tolist()  # the last one
    spoilt = told(measures, np.where(np.arange(9) == 8, -1e6, 0))
    chase = next_pursuit(pursuit(), archive, spoilt)
    assert (chase.step.tolist(), int(chase.left)) == (np.eye(7, 6)[2].tolist(), 3)
    assert int(next_pursuit(pursuit(away=0.1), archive, sound).left) == 0  # nobody came nearer
    assert int(next_pursuit(pursuit(on=False), archive, sound).left) == 0


def test_where_the_first_shot_landed_is_looked_at_if_asked_for():
    archive = Archive.empty(GRID, 6)
    chase = next_pursuit(pursuit(on=False, looks=True), archive, told(np.ones((9, 2)), np.zeros(9)))
    assert (chase.step.tolist(), int(chase.left) > 0) == (np.eye(7, 6)[0].tolist(), True)


def test_one_elite_alone_can_spoil_the_score():
    archive = Archive.empty(GRID, 6)
    places = np.stack(np.meshgrid(np.linspace(-4.9, 4.9, 10), np.linspace(-4.9, 4.9, 10)), axis=-1).reshape(-1, 2)
    objective = np.linspace(0, 100, 100, dtype=np.float32)
    objective[7] = -1e6
    archive, _ = add(archive, np.zeros((100, 6)), Evaluation(objective=objective, measures=places))
    assert np.flatnonzero(jax.jit(ruinous)(objective, archive)).tolist() == [7]
