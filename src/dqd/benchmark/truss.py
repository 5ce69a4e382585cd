"""A bracket of bars that carries a load: the stiffest for every mass and every direction in which its tip gives way.

Four bays of nodes stand on a wall. A bar of cross-section a and length l, with unit vector e from one of its nodes to
the other, adds a / l (e, -e)(e, -e)^T to the stiffness matrix K of all nodes. The load f moves them by u, K u = f; the
compliance is f u.
"""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import Array

from dqd.benchmark.function import Function, normals

BAYS = 4


def truss(n: int) -> Function:
    """n bars, of 4 bays with (n / 4 + 3) / 4 rows of nodes: n is 20, 36, 52, ..."""
    rows = (n // BAYS + 3) // 4
    if BAYS * (4 * rows - 3) != n or rows < 2:
        raise ValueError(f"n: a truss of {BAYS} bays has 20, 36, 52, ... bars, got {n}")
    directions, lengths, load = bracket(rows)
    uniform = lengths.sum()

    def score(x: Array) -> tuple[Array, Array]:
        areas = jnp.exp(2 * jnp.tanh(x / 2))
        stiffness = (directions.T * (areas / lengths)) @ directions
        moved = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(stiffness), load)
        tip = moved[-2 * rows :].reshape(rows, 2)[rows // 2]
        mass = jnp.log(areas @ lengths / uniform)
        return 100 / (1 + jnp.dot(load, moved) / rest), jnp.stack([mass, jnp.arctan2(tip[0], -tip[1])])

    stiff = (directions.T / lengths) @ directions
    rest = float(load @ np.linalg.solve(stiff, load))
    return Function(score, (-1.5, -0.8), (1.5, 0.8), 0.5 * normals(1130, n))


def bracket(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every bar how each free coordinate lengthens it, (bars, free), and its length; and the load, (free,)."""
    nodes = np.array([(bay, row) for bay in range(BAYS + 1) for row in range(rows)], float)
    number = {tuple(node): i for i, node in enumerate(nodes.astype(int).tolist())}
    steps = ((1, 0), (0, 1), (1, 1), (1, -1))
    pairs = [
        (i, number[bay + across, row + up])
        for (bay, row), i in number.items()
        for across, up in steps
        if (bay + across, row + up) in number and bay + across > 0
    ]
    first, second = np.array(pairs).T
    apart = nodes[second] - nodes[first]
    lengths = np.linalg.norm(apart, axis=1)
    directions = np.zeros((len(pairs), len(nodes), 2))
    bars = np.arange(len(pairs))
    directions[bars, second], directions[bars, first] = apart / lengths[:, None], -apart / lengths[:, None]
    load = np.zeros((len(nodes), 2))
    load[BAYS * rows + rows // 2, 1] = -1.0
    free = slice(rows, None)  # the first column is the wall
    return directions[:, free].reshape(len(pairs), -1), lengths, load[free].ravel()
