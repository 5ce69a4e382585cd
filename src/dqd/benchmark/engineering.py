"""Formulas of real things: an arm among obstacles, an antenna, a boat in a current, a battery on the market."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, normals, within

UNROLL = 5  # steps of a loop at a time: a GPU waits between them


def arm_3d(n: int) -> Function:
    """A snake arm in space, with joints of limited turn: where its hand is; best little bent and clear of three balls.

    At each of n / 2 universal joints the frame turns by R_x(a) R_y(b), and the link goes along its third axis. How deep
    joints are inside the balls is a soft penalty.
    """
    joints, limit = n // 2, 40 / n
    balls, radii = np.array([[0.4, 0.1, 0.5], [-0.5, 0.3, 0.1], [0.1, -0.5, -0.3]]), np.array([0.2, 0.25, 0.2])

    def score(x: Array) -> tuple[Array, Array]:
        angles = limit * jnp.tanh(x[: 2 * joints].reshape(joints, 2) / limit)
        frames = jax.lax.associative_scan(jnp.matmul, universal_joints(*angles.T))
        places = jnp.cumsum(frames[:, :, 2], axis=0) / joints
        clear = jnp.linalg.norm(places[:, None] - balls, axis=-1) - radii
        inside = jnp.mean(jnp.sum(jax.nn.softplus(-40 * clear) / 40, axis=1))
        return 100 / (1 + jnp.mean((joints * angles / 5) ** 2) + 50 * inside), places[-1]

    return Function(score, *within(1.0, 3), 0.4 * limit * normals(2100, n))


def universal_joints(a: Array, b: Array) -> Array:
    """R_x(a) R_y(b) of every joint, (joints, 3, 3)."""
    sa, ca, sb, cb = jnp.sin(a), jnp.cos(a), jnp.sin(b), jnp.cos(b)
    rows = [cb, 0 * a, sb, sa * sb, ca, -sa * cb, -ca * sb, sa, ca * cb]
    return jnp.stack(rows, axis=-1).reshape(-1, 3, 3)


def antenna(n: int) -> Function:
    """Antennas in a row, half a wave apart: whither they send, and how narrowly; best when all are equally strong.

    Each of n / 2 has a complex current w. Array factor, sum_m w_m exp(i pi m u) with u the sine of the angle from
    broadside, and taper efficiency, (sum |w|)^2 / (n / 2 sum |w|^2): Balanis, Antenna Theory, chapters 6 and 7.
    """
    size = n // 2
    u = (np.arange(4 * size) + 0.5) / (2 * size) - 1
    waves = np.exp(1j * np.pi * np.outer(u, np.arange(size)))

    def score(x: Array) -> tuple[Array, Array]:
        real, imaginary = x[:size], x[size : 2 * size]
        power = (waves.real @ real - waves.imag @ imaginary) ** 2 + (waves.real @ imaginary + waves.imag @ real) ** 2
        share = power / (jnp.sum(power) + 1e-9)
        direction = share @ u
        width = jnp.sqrt(share @ (u - direction) ** 2 + 1e-9)
        strength = real**2 + imaginary**2 + 1e-6
        return 100 * jnp.mean(jnp.sqrt(strength)) ** 2 / jnp.mean(strength), jnp.stack([direction, width])

    return Function(score, (-0.8, 0.1), (0.8, 0.8), normals(2110, n))


def boat(n: int) -> Function:
    """A boat pushed over a river: where it ends; best with weak pushes. No gradient knows its noise, a cell and 3 %.

    n / 2 pushes of two components. Newton's drag -|v - w| (v - w) relative to water of speed w, a parabola across the
    river (laminar flow between banks: Poiseuille); unit mass, semi-implicit Euler.
    """
    steps, reach = n // 2, 4.0
    step, cell, waves = 4 / steps, 2 * reach / 100, normals(2120, n, 3)

    def sail(state: tuple[Array, Array], push: Array) -> tuple[tuple[Array, Array], None]:
        place, speed = state
        slip = speed - jnp.stack([0.5 * jnp.maximum(1 - (place[1] / 4) ** 2, 0), jnp.zeros(())])
        speed = speed + step * (push - slip * jnp.sqrt(slip @ slip + 1e-6))
        return (place + step * speed, speed), None

    def score(x: Array) -> tuple[Array, Array]:
        noise = jax.lax.stop_gradient(jnp.sin(1e3 * (x @ waves)))
        pushes = 3 * jnp.tanh(x[: 2 * steps].reshape(steps, 2) / 3)
        at_rest = jnp.zeros_like(pushes[0])
        (place, _), _ = jax.lax.scan(sail, (at_rest, at_rest), pushes, unroll=UNROLL)
        effort = jnp.mean(jnp.sum(pushes**2, axis=1))
        return (97 + 3 * noise[0]) / (1 + effort), place + cell * noise[1:]

    return Function(score, *within(reach), normals(2121, n))


def battery(n: int) -> Function:
    """A battery that trades for n hours: its mean charge, and how hard it works; best with most profit. Full of kinks.

    It is never more than full nor less than empty: s <- clip(s + u, 0, 1). What is left sells at the mean price. 100 is
    for the profit without a limit of power: full before every rise of the price, empty before every fall.
    """
    hours, power, start = np.arange(n), 0.25, 0.5
    prices = np.sin(2 * np.pi * hours / 24) + 0.5 * np.sin(4 * np.pi * hours / 24 + 1) + 0.3 * normals(2130, n)
    prices = prices - prices.mean()
    most = prices[0] * start + max(-prices[-1], 0) + np.maximum(np.diff(prices), 0).sum()

    def score(x: Array) -> tuple[Array, Array]:
        charge = charges(power * jnp.tanh(x), start)
        bought = jnp.diff(charge, prepend=start)
        profit = -prices @ bought
        return 50 + 50 * profit / most, jnp.stack([jnp.mean(charge), jnp.mean(jnp.abs(bought)) / power])

    return Function(score, (0.0, 0.0), (1.0, 1.0), 0.5 * normals(2131, n))


def charges(flows: Array, start: float) -> Array:
    """After every hour: s <- clip(s + u, 0, 1)."""

    def hour(charge: Array, flow: Array) -> tuple[Array, Array]:
        after = jnp.clip(charge + flow, 0, 1)
        return after, after

    return jax.lax.scan(hour, jnp.asarray(start, flows.dtype), flows, unroll=UNROLL)[1]
