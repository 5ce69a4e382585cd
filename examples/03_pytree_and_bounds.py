"""Solutions of several parts, each within bounds: an arm whose angles and link lengths are both searched."""

import jax.numpy as jnp

import dqd

JOINTS = 12


def score(arm):  # a dictionary like x0
    directions = jnp.cumsum(arm["angles"])
    hand = jnp.array([jnp.sum(arm["lengths"] * jnp.cos(directions)), jnp.sum(arm["lengths"] * jnp.sin(directions))])
    uneven = jnp.var(arm["angles"]) + jnp.var(arm["lengths"])
    return 1 - uneven, hand


result = dqd.illuminate(
    score,
    dqd.cma_mega(sigma=0.1),
    dqd.Grid(lower=[-12, -12], upper=[12, 12], shape=[50, 50]),
    x0={"angles": jnp.zeros(JOINTS), "lengths": jnp.ones(JOINTS)},
    bounds=({"angles": -1.0, "lengths": 0.5}, {"angles": 1.0, "lengths": 1.5}),
    iterations=2_000,
)
print(result)

arm = result.solution([5.0, 5.0])  # the elite whose hand is near (5, 5), shaped like x0
print("angles ", arm["angles"].round(2))
print("lengths", arm["lengths"].round(2))
result.plot("arms.png", title="Arms with links between 0.5 and 1.5")
