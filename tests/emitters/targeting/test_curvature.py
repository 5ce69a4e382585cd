"""Steps that cost least, and where an iteration stands after a kink."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import Jitted

import dqd
from dqd.emitters.targeting.curvature import PAIRS, Cheapest, Secants
from dqd.emitters.targeting.footing import Footing
from dqd.emitters.targeting.worth import Worth

pytestmark = pytest.mark.x64
random = np.random.default_rng(7)
N = 12


def footing(theta, measures=(0.0, 0.0), gradient=None, rows=None, held=None):
    gradient = np.zeros(N) if gradient is None else gradient
    rows = np.zeros((2, N)) if rows is None else rows
    held = np.zeros(N, bool) if held is None else held
    return Footing(*map(jnp.asarray, (theta, np.array(measures), gradient, rows, held)))


def walk(curvature, rows, count):
    """Secants of so many steps on a quadratic objective with linear measures; and the steps."""
    theta, steps = random.normal(size=N), []
    secants, before = Secants.none(jnp.zeros(N)), footing(theta, gradient=-curvature @ theta, rows=rows)
    for _ in range(count):
        steps.append(random.normal(size=N))
        theta = theta + steps[-1]
        now = footing(theta, gradient=-curvature @ theta, rows=rows)
        secants = Jitted(secants).after(before, now, random.normal(size=2), np.array(True))
        before = now
    return secants, steps, before


def dense(curvature, steps):
    """The inverse that BFGS makes of the newest pairs, oldest first, from the scale of the newest."""
    pairs = [(step, curvature @ step) for step in steps[-PAIRS:]]
    s, y = pairs[-1]
    inverse = np.eye(N) * (s @ y) / (y @ y)
    for s, y in pairs:
        left = np.eye(N) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    return inverse


@pytest.mark.parametrize("count", [1, 5, PAIRS + 3])
def test_the_inverse_is_that_of_bfgs_updates(count):
    factors, rows = random.normal(size=(N, N)), random.normal(size=(2, N))
    curvature = factors @ factors.T
    secants, steps, _ = walk(curvature, rows, count)
    vectors = random.normal(size=(3, N))
    np.testing.assert_allclose(jax.jit(Secants.inverse)(secants, vectors), vectors @ dense(curvature, steps), rtol=1e-8)


def test_of_all_steps_that_arrive_the_cheap_ones_cost_least():
    factors, rows = random.normal(size=(N, N)), random.normal(size=(2, N))
    secants, steps, ground = walk(factors @ factors.T, rows, PAIRS)
    cost = np.linalg.inv(dense(factors @ factors.T, steps))
    cheapest, z = jax.jit(Cheapest.of)(secants, ground, jnp.asarray(1e9)), random.normal(size=(5, 2))
    # Lagrange: cost s + J^T p = 0 and J s = z; and Newton's step with J s = 0
    system = np.block([[cost, rows.T], [rows, np.zeros((2, 2))]])
    best = np.linalg.solve(system, np.concatenate([np.zeros((5, N)), z], axis=1).T)[:N].T
    np.testing.assert_allclose(cheapest.factors(z) @ cheapest.across, best, atol=1e-4 * np.abs(best).max())
    np.testing.assert_allclose(cheapest.squared_length(z), np.sum(best**2, axis=1), rtol=1e-4)
    climb = np.linalg.solve(system, np.concatenate([ground.gradient, np.zeros(2)]))[:N]
    np.testing.assert_allclose(cheapest.climb, climb, atol=1e-4 * np.abs(climb).max())
    held = jax.jit(Cheapest.of)(secants, ground, jnp.asarray(0.25))
    assert float(jnp.linalg.norm(held.climb)) == pytest.approx(0.25)


def test_without_pairs_nothing_is_known():
    ground = footing(np.zeros(N), gradient=np.ones(N), rows=random.normal(size=(2, N)))
    cheapest = jax.jit(Cheapest.of)(Secants.none(jnp.zeros(N)), ground, jnp.asarray(1.0))
    assert not cheapest.known
    assert not np.any(cheapest.across)
    assert not np.any(cheapest.climb)


def test_hills_and_steps_that_were_not_followed_leave_no_pair():
    rows, theta = random.normal(size=(2, N)), random.normal(size=N)
    before, now = footing(np.zeros(N), rows=rows), footing(theta, gradient=theta, rows=rows)  # uphill from a valley
    after = Jitted(Secants.none(jnp.zeros(N))).after
    assert not np.any(after(before, now, np.zeros(2), np.array(True)).pairs)
    down = footing(theta, gradient=-theta, rows=rows)
    assert np.any(after(before, down, np.zeros(2), np.array(True)).pairs)
    assert not np.any(after(before, down, np.zeros(2), np.array(False)).pairs)


def test_what_crossed_a_kink_goes_back_and_is_held():
    """Measures |x| in two blocks: a step takes coordinate 3 over its kink."""
    widths, blocks = np.full(2, 0.5), np.arange(N) % 2 == np.arange(2)[:, None]
    theta = np.where(np.arange(N) == 3, 0.1, 2.0)

    def at(x):
        return footing(x, blocks @ np.abs(x), rows=blocks * np.sign(x) / widths[:, None])

    before, landed = at(theta), at(theta - 0.7)
    stands = Jitted(landed).after(before, np.array(True), widths)
    assert np.flatnonzero(stands.held).tolist() == [3]
    np.testing.assert_allclose(stands.theta, np.where(np.arange(N) == 3, 0.1, 1.3))
    np.testing.assert_allclose(stands.measures, blocks @ np.abs(stands.theta))  # although nobody has evaluated it
    assert not np.any(np.asarray(stands.rows)[:, 3])
    again = Jitted(at(stands.theta - 0.2 * ~np.asarray(stands.held))).after(stands, np.array(True), widths)
    assert np.flatnonzero(again.held).tolist() == [3]  # as long as the chase lasts
    assert not np.any(Jitted(landed).after(before, np.array(False), widths).held)


@pytest.mark.long
def test_measures_that_jump_are_reached_all_the_same():
    """A linear projection jumps where a number leaves +-5.12; from a random start no two numbers do so together."""
    domain, x0 = dqd.LinearProjection("sphere", n=100), jnp.asarray(2 * random.normal(size=100))
    found = dqd.illuminate(domain, dqd.targeting(), domain.grid(), x0=x0, iterations=2000, progress=False)
    assert found.coverage > 95


def test_the_worthier_way_is_taken_mostly():
    worth = Jitted(Worth(np.array([1.0, 3.0])))
    assert float(worth.share(0.05)) == pytest.approx(0.9)
    assert float(Jitted(Worth(np.array([1e30, 0.0]))).share(0.05)) == pytest.approx(0.05)
    after = worth.after(np.array(11.0), np.array([False, True]))
    assert after.gains.tolist() == pytest.approx([1.0, 3.8])
    assert worth.after(np.array(np.inf), np.array([True, True])).gains.tolist() == [1.0, 3.0]
