"""Formulas of designs: an arm with elbows, a cooling fin, a filter, a portfolio, a controller of a pendulum."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.engineering import UNROLL
from dqd.benchmark.function import Function, normals, within


def elbows(n: int) -> Function:
    """An arm of unequal links whose joints turn further to one side than to the other: the hand; best at rest."""
    random = np.random.default_rng(3400)
    links = random.lognormal(0, 0.5, n)
    links = links / links.sum()
    left, right = 24 / n * random.uniform(0.1, 1.0, (2, n))
    stiffness = random.lognormal(0, 0.7, n) * (n / 12) ** 2

    def score(x: Array) -> tuple[Array, Array]:
        angles = (left + right) * jax.nn.sigmoid(x) - left
        directions = jnp.cumsum(angles)
        hand = jnp.stack([links @ jnp.cos(directions), links @ jnp.sin(directions)])
        return 100 / (1 + jnp.mean(stiffness * angles**2)), hand

    return Function(score, *within(1.0), normals(3401, n))


def fin(n: int) -> Function:
    """A cooling fin: its mass and where that mass is; best with the highest efficiency.

    Each n-th of its length gives off M^2 / n times its temperature, which rises by flow / (n t) towards the base where
    heat flows through thickness t. Efficiency: heat given off, by that of a fin that is nowhere cooler than its base
    (Incropera et al., Fundamentals of Heat and Mass Transfer, chapter 3); it is tanh(M) / M where t = 1.
    """
    squared, place = 4.0, (np.arange(n) + 0.5) / n - 0.5

    def score(x: Array) -> tuple[Array, Array]:
        thickness = jnp.exp(2.5 * jnp.tanh(x / 2.5))
        mass = jnp.mean(thickness)
        measures = jnp.stack([jnp.log(mass), jnp.mean(thickness * place) / mass])
        return 100 * efficiency(thickness, squared), measures

    return Function(score, (-1.5, -0.3), (1.5, 0.3), normals(3410, n))


def efficiency(thickness: Array, squared: float) -> Array:
    """From the tip inwards, thickness from the base outwards."""
    n = len(thickness)

    def inwards(state: tuple[Array, Array], t: Array) -> tuple[tuple[Array, Array], None]:
        warm, flow = state
        flow = flow + squared / n * warm
        return (warm + flow / (n * t), flow), None

    tip = (jnp.ones((), thickness.dtype), jnp.zeros((), thickness.dtype))
    (warm, flow), _ = jax.lax.scan(inwards, tip, thickness, reverse=True, unroll=UNROLL)
    return flow / (squared * warm)


def low_pass(n: int) -> Function:
    """A filter of n taps: its cut-off and its delay; best if its power is flat up to the cut-off, and nothing beyond.

    Cut-off: twice the mean frequency of its power, 1 at half the sampling rate. Delay: the mean time of its energy. The
    objective is the cosine between its power and that of a filter with a steep edge at the cut-off.
    """
    frequency, time = (np.arange(n) + 0.5) / n, np.arange(n)
    waves = np.exp(-1j * np.pi * np.outer(time, frequency))

    def score(x: Array) -> tuple[Array, Array]:
        power = (x @ waves.real) ** 2 + (x @ waves.imag) ** 2 + 1e-9
        cutoff = 2 * (power @ frequency) / jnp.sum(power)
        delay = (x * x) @ (time / (n - 1)) / (jnp.sum(x * x) + 1e-9)
        ideal = jax.nn.sigmoid((cutoff - frequency) / 0.03)
        likeness = (power @ ideal) / jnp.sqrt((power @ power) * (ideal @ ideal))
        return 100 * likeness, jnp.stack([cutoff, delay])

    return Function(score, (0.0, 0.1), (1.2, 0.9), normals(3420, n))


def portfolio(n: int) -> Function:
    """Shares of n assets, none below 0: risk and return; best spread out (the effective number of assets, in percent).

    Five factors move all assets, and each moves by itself: variance |F^T w|^2 + |s w|^2.
    """
    random = np.random.default_rng(3430)
    factors, own = 0.12 * random.normal(size=(n, 5)), random.uniform(0.1, 0.35, n)
    factors[:, 0] += 0.12
    returns = 0.05 + factors @ random.uniform(-0.1, 0.3, 5) + 0.06 * random.normal(size=n)

    def score(x: Array) -> tuple[Array, Array]:
        logs = jax.nn.log_softmax(x)
        shares = jnp.exp(logs)
        risk = jnp.sqrt(jnp.sum((shares @ factors) ** 2) + jnp.sum((own * shares) ** 2))
        return 100 * jnp.exp(-shares @ logs) / n, jnp.stack([risk, shares @ returns])

    return Function(score, (0.05, -0.1), (0.45, 0.25), 0.5 * normals(3431, n))


def pendulum(n: int) -> Function:
    """A small network turns a pendulum that it cannot lift at once: height and speed in the end; best with no torque.

    n / 5 hidden units of five weights within -3 and 3 see the sine and cosine of the angle, and the speed. Length and
    gravity are 1, damping is 0.05; semi-implicit Euler, eight units of time from hanging almost still.
    """
    units, steps, most, step = n // 5, 80, 0.7, 0.1

    def score(x: Array) -> tuple[Array, Array]:
        weights = 3 * jnp.tanh(x[: 5 * units].reshape(5, units) / 3)

        def swing(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
            angle, speed = state
            seen = jnp.stack([jnp.sin(angle), jnp.cos(angle), speed, jnp.ones_like(speed)])
            effort = jnp.tanh(jnp.tanh(seen @ weights[:4]) @ weights[4] / math.sqrt(units))
            speed = speed + step * (most * effort - jnp.sin(angle) - 0.05 * speed)
            return (angle + step * speed, speed), effort

        hanging = (jnp.asarray(0.1, x.dtype), jnp.zeros((), x.dtype))
        (angle, speed), efforts = jax.lax.scan(swing, hanging, None, steps, unroll=UNROLL)
        return 100 * (1 - jnp.mean(efforts**2)), jnp.stack([-jnp.cos(angle), speed])

    return Function(score, (-1.0, -2.0), (1.0, 2.0), normals(3440, n))
