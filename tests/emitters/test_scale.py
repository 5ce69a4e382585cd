"""Sigmas that were left out are known by what they multiply, and filled in wherever they are."""

import jax
import pytest

import dqd
from dqd.emitters.scale import scaled, unscaled

OPEN = {
    "cma_mega": (dqd.cma_mega, ["unit gradients"]),
    "cma_mega, raw": (lambda: dqd.cma_mega(normalize=False), ["gradients"]),
    "cma_mega_adam": (dqd.cma_mega_adam, ["signs of gradients", "unit gradients"]),
    "cma_mega_adam, its sigma alone": (lambda: dqd.cma_mega_adam(learning_rate=0.1), ["unit gradients"]),
    "omg_mega": (dqd.omg_mega, ["unit gradients"]),
    "omg_mega, raw": (lambda: dqd.omg_mega(normalize=False), ["gradients"]),
    "cma_me": (dqd.cma_me, ["solutions"]),
    "map_elites": (dqd.map_elites, ["solutions"]),
    "map_elites_line": (dqd.map_elites_line, ["solutions"]),
    "several": (
        lambda: dqd.combine(dqd.replicate(dqd.cma_mega(), 2), dqd.map_elites(0.5), dqd.cma_me()),
        ["unit gradients", "solutions"],
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_is_left_out_is_named_and_filled_in(name):
    make, expected = OPEN[name]
    assert sorted(unscaled(make())) == sorted(expected)
    ready = scaled(make(), lambda along: 1.0 + expected.index(along))
    assert unscaled(ready) == []
    numbers = [leaf for leaf in jax.tree.leaves(ready) if isinstance(leaf, float)]
    assert {1.0 + i for i in range(len(expected))} <= set(numbers)


def test_what_was_given_stays():
    emitter = dqd.combine(dqd.cma_mega(0.3), dqd.map_elites_line(0.1, 0.2), dqd.og_map_elites(0.1, 0.5))
    assert unscaled(emitter) == []
    assert scaled(emitter, lambda along: 7.0) == emitter


def test_adam_has_the_learning_rate_of_the_paper_where_sigma_is_given():
    assert dqd.cma_mega_adam(0.1).arguments == {"learning_rate": 0.002}
