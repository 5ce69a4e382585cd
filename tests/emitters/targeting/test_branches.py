"""The steps of an iteration, made by one product: where they arrive, and of what they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.emitters.targeting.branches import Branches
from dqd.emitters.targeting.curvature import Cheapest, Secants
from dqd.emitters.targeting.footing import Footing
from dqd.emitters.targeting.model import LocalModel
from dqd.emitters.targeting.room import Room
from dqd.emitters.targeting.sideways import THINNED, Sideways
from dqd.types import replace

pytestmark = pytest.mark.x64
N, COUNT = 30, 11
random = np.random.default_rng(11)
ROWS, GRADIENT = random.normal(size=(2, N)), random.normal(size=N)
AIM = jnp.asarray(random.normal(size=(COUNT, 2)))
THIN = np.arange(COUNT) % THINNED == THINNED - 1


def branches(room=None, share=1.0):
    """On a quadratic objective of which three steps have been seen, with a coordinate that is held."""
    held = np.arange(N) == 5
    rows, gradient = np.where(held, 0, ROWS), np.where(held, 0, GRADIENT)
    axes = jnp.asarray(random.normal(size=(N, N)))
    secants, theta = Secants.none(jnp.zeros(N)), jnp.zeros(N)
    for _ in range(3):
        before, theta = theta, theta + random.normal(size=N)
        places = [Footing(at, jnp.zeros(2), -axes @ axes.T @ at, jnp.asarray(ROWS), held) for at in (before, theta)]
        secants = secants.after(*places, jnp.zeros(2), jnp.array(True))
    ground = Footing(jnp.zeros(N), jnp.zeros(2), jnp.asarray(gradient), jnp.asarray(rows), jnp.asarray(held))
    nothing = jnp.zeros(COUNT)
    sideways = Sideways(nothing, nothing, jnp.where(THIN, share, 1.0), jnp.zeros((COUNT, 2)), THIN, THIN < 0)
    model = LocalModel.of(ground.gradient, ground.rows, room)
    direction, last = random.uniform(-1, 1, N), random.normal(size=N)
    return Branches(model, Cheapest.of(secants, ground, jnp.asarray(1e9)), sideways, held, direction, last)


def made(those, takes=False, climb=0.0, onwards=0.0):
    every = (jnp.full(COUNT, value) for value in (takes, climb, onwards))
    return np.asarray(jax.jit(Branches.steps)(those, AIM, *every))


@pytest.mark.parametrize("takes", [False, True])
def test_steps_arrive_and_leave_alone_what_is_held(takes):
    steps = made(branches(), takes, climb=0.7)
    np.testing.assert_allclose(steps @ ROWS.T, AIM, atol=1e-4)
    assert not np.any(steps[:, 5])
    shortest = np.linalg.pinv(ROWS[:, np.arange(N) != 5]) @ np.asarray(AIM).T
    lengths = np.linalg.norm(steps, axis=1)
    shortest = np.linalg.norm(shortest, axis=0)
    assert np.all(lengths > shortest) if takes else np.allclose(lengths, shortest, rtol=1e-4)


def test_thin_ones_arrive_by_some_coordinates():
    those = branches(share=0.4)
    steps = made(those)
    np.testing.assert_allclose(steps @ ROWS.T, AIM, atol=1e-4)
    moved = np.abs(those.direction) < 0.4
    assert not np.any(steps[THIN][:, ~moved])
    assert np.all(np.any(steps[~THIN][:, ~moved], axis=1))


def test_sideways_moves_no_measure_and_onwards_goes_on():
    those, plain = branches(), made(branches())
    beside = replace(those, sideways=replace(those.sideways, climb=jnp.full(COUNT, 2.0), jump=jnp.full(COUNT, -3.0)))
    off = made(beside) - plain
    np.testing.assert_allclose(off @ ROWS.T, 0, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(off - 2.0 * np.asarray(those.model.free), axis=1), 3.0, rtol=1e-4)
    onwards = made(those, onwards=0.5) - made(those)
    np.testing.assert_allclose(onwards, np.tile(0.5 * those.last, (COUNT, 1)), atol=1e-9)


@pytest.mark.parametrize("takes", [False, True])
def test_at_a_wall_the_others_make_up_for_it_whatever_the_step(takes):
    room = Room(jnp.full(N, -0.4), jnp.full(N, 0.4))
    those = branches(room)
    jump = replace(those, sideways=replace(those.sideways, jump=jnp.full(COUNT, 2.0)))
    climb = 0.6 / float(jnp.max(jnp.abs(those.cheapest.climb)))
    assert np.abs(made(replace(jump, model=replace(jump.model, room=None)), takes, climb)).max() > 0.41
    steps = made(jump, takes, climb)
    assert np.abs(steps).max() <= 0.4 + 1e-9
    np.testing.assert_allclose(steps @ ROWS.T, AIM, atol=1e-2)
