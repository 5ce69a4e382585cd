"""SQUAD: its step beside automatic differentiation of what it climbs, and whose turn it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import Jitted

import dqd
from dqd.archives import Archive
from dqd.domains import FunctionDomain
from dqd.domains.survey import Survey, lead
from dqd.emitters.squad import EDGE
from dqd.types import AddResult, replace
from dqd.workers.padded import OnHost

GRID = dqd.Grid((-4.0, -1.0), (4.0, 3.0), (5, 5))
ARCHIVE = Archive.empty(GRID, 3)
N = 6


def score(x):
    return 8 - jnp.sum((x - 0.3) ** 2), jnp.stack([jnp.sin(x[0]) + 2 * x[1], jnp.cos(x[1]) + x[2]])


domain = FunctionDomain(score)
evaluate_with_jacobian = jax.jit(domain.evaluate_with_jacobian)
# Every member in every iteration, all of them neighbours.
plain = dqd.squad(0.01, 1.5, minimum=-2.0, scale=1.0, population=N, batch_size=2 * N, neighbours=N)
emitter = Jitted(plain)


def noise(seed):
    return emitter.noise(jax.random.key(seed), 3, 2)


def round_of(state, seed, evaluate=evaluate_with_jacobian):
    drawn = noise(seed)
    points = emitter.points(state, ARCHIVE, drawn)
    return *emitter.ask(state, ARCHIVE, points, evaluate(points.solutions), drawn), points


def born():
    state, proposal, _ = round_of(emitter.init(jnp.array([0.5, 0.2, -0.1]), 2, None), 0)
    evaluation, archive_says = jax.jit(domain.evaluate)(proposal.solutions), np.zeros(N)
    result = AddResult(
        archive_says.astype(int), archive_says, archive_says.astype(int), archive_says.astype(bool),
        evaluation.objective, evaluation.measures,
    )  # fmt: skip
    return emitter.tell(state, ARCHIVE, proposal.drawn, result)


def light(solutions):
    """A, as it is written."""
    objective, measures = jax.vmap(score)(solutions)
    f = jnp.maximum(objective + 2.0, 0)
    share = jnp.clip(
        (measures - jnp.array(GRID.lower)) / (jnp.array(GRID.upper) - jnp.array(GRID.lower)), EDGE, 1 - EDGE
    )
    b = jax.scipy.special.logit(share)
    kernel = jnp.exp(-jnp.sum((b[:, None] - b) ** 2, axis=-1) / 1.5**2) * (1 - jnp.eye(N))
    return jnp.sum(f) - jnp.sum(jnp.sqrt(f[:, None] * f) * kernel) / 4


@pytest.mark.x64
def test_its_direction_is_the_gradient_of_what_it_climbs():
    state = born()
    members = np.array([4, 0, 5, 1, 2, 3])
    evaluation = evaluate_with_jacobian(state.population.solutions[members])
    found = emitter._gradient(state.population, members, ARCHIVE, evaluation)
    expected = jax.jit(jax.grad(light))(state.population.solutions)[members]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    alone = jax.jit(jax.vmap(jax.grad(lambda x: score(x)[0])))(state.population.solutions)[members]
    assert np.abs(expected - alone).max() > 0.1  # they really push each other


@pytest.mark.x64
def test_the_objective_is_weighed_as_it_is_stored():
    state, members = born(), np.arange(N)
    evaluation = evaluate_with_jacobian(state.population.solutions)
    raw = replace(evaluation, jacobian=evaluation.jacobian.at[:, 0].multiply(50.0))  # of an objective 50 times as large
    found = Jitted(replace(plain, scale=0.02))._gradient(state.population, members, ARCHIVE, raw)
    np.testing.assert_allclose(found, emitter._gradient(state.population, members, ARCHIVE, evaluation), rtol=1e-9)


def test_every_member_is_moved_once_in_every_epoch_and_in_another_order():
    some = Jitted(replace(plain, members=2))
    state, orders = some.init(jnp.zeros(3), 2, None), []
    for i in range(6):
        drawn = some.noise(jax.random.key(i), 3, 2)
        points = some.points(state, ARCHIVE, drawn)
        state, proposal = some.ask(state, ARCHIVE, points, evaluate_with_jacobian(points.solutions), drawn)
        orders += proposal.drawn["members"].tolist()
        state = replace(state, place=(state.place + 2) % N)
    assert sorted(orders[:N]) == sorted(orders[N:]) == list(range(N))
    assert orders[:N] != orders[N:]
    assert bool(state.population.born.all())


def test_a_member_whose_jacobian_is_not_finite_stays_where_it_is():
    def broken(solutions):
        evaluation = evaluate_with_jacobian(solutions)
        return replace(evaluation, jacobian=evaluation.jacobian.at[2].set(jnp.nan))

    state, proposal, points = round_of(born(), 1, broken)
    moved = np.abs(proposal.solutions - points.solutions).max(axis=1)
    assert moved[2] == 0
    assert (np.delete(moved, 2) > 0).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def slope(problem, x0, bounds=None):
    look = OnHost(problem, None)

    def evaluate(ask):
        return look.evaluate_with_jacobian(ask.solutions) if ask.jacobian else look.evaluate(ask.solutions)

    return lead(Survey(np.asarray(x0, np.float32), GRID, bounds).slope(), evaluate)


def test_what_a_stored_objective_grows_by_is_found_out():
    sphere = dqd.LinearProjection("sphere", 100)
    assert slope(sphere, np.zeros(100)) == pytest.approx(sphere.transform[0], rel=2e-3)
    assert slope(dqd.Arm(10), np.zeros(10)) == pytest.approx(100.0, rel=2e-3)  # no slope at x0 itself
    assert slope(domain, np.ones(3)) == pytest.approx(1.0, rel=2e-3)
    assert slope(FunctionDomain(lambda x: (jnp.ones(()), x[:2])), np.zeros(3)) == 1.0  # nowhere: nothing to weigh


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"population": 100}, "population: expected a multiple of the 64 members per iteration, got 100"),
        ({"neighbours": 1}, "neighbours: expected 2 to 1024, itself included, got 1"),
        ({"batch_size": 7}, "so it must be even, got 7"),
        ({"bandwidth": 0.0}, "bandwidth: expected a number above 0"),
    ],
)
def test_wrong_settings_are_refused_in_words(settings, words):
    with pytest.raises(ValueError, match=words):
        dqd.squad(0.1, **settings)


def test_a_tessellation_without_ranges_is_refused_in_words():
    archive = replace(ARCHIVE, competition=replace(ARCHIVE.competition, tessellation=object()))
    with pytest.raises(TypeError, match="needs the range of every measure; object has no `lower`"):
        plain._met(born().population, np.arange(N), archive, np.zeros(N), np.zeros((N, 2)), np.ones(N, bool))


def test_a_loop_of_ones_own_takes_turns_where_the_gradient_at_the_start_is_zero():
    score = lambda x: (100 - np.sum(x**2, axis=1), x[:, :2])  # noqa: E731
    jacobian = lambda x: np.stack([-2 * x, *(np.zeros_like(x) + np.eye(8)[j] for j in (0, 1))], axis=1)  # noqa: E731
    search = dqd.AskTell(dqd.squad(0.1, population=16, batch_size=16, neighbours=4), GRID, x0=np.zeros(8))
    for _ in range(12):
        points = search.ask_dqd()
        search.tell_dqd(*score(points), jacobian(points))
        search.tell(*score(search.ask()))
    assert 0 < search.iteration < 12  # the first rounds find out the scale
