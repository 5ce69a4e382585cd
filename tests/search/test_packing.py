"""Many small arrays as few: nothing is rounded, nothing is lost, and a program finds them where they were."""

import jax
import jax.numpy as jnp
from conformance.table import assert_same

from dqd.search.packing import SMALL, Packed

TREE = {
    "mean": jnp.array([0.1, -0.0, jnp.inf]),
    "counts": (jnp.array(7, jnp.int32), jnp.array([[1, 2], [3, 4]])),
    "flags": jnp.array([True, False]),
    "large": jnp.arange(SMALL / 4 + 1),
    "key": jax.random.key(3),
    "none": None,
    "empty": jnp.zeros((0, 3)),
}


def test_what_was_packed_comes_out_as_it_was():
    packed = Packed.of(TREE)
    assert len(packed.large) == 2  # the long one, and the key
    assert [vector.dtype.name for vector in packed.vectors] == ["int32", "float32", "bool"]
    assert_same(packed.unpacked(), TREE)


def test_a_program_packs_as_the_host_does():
    there = jax.jit(Packed.of)(TREE)
    assert_same(there, Packed.of(TREE))
    assert_same(jax.jit(lambda packed: packed.unpacked())(there), TREE)


def test_a_vector_that_is_full_is_followed_by_another():
    numbers = SMALL // 4
    tree = [jnp.arange(numbers - 1.0), jnp.ones(1), jnp.ones(2), jnp.zeros(numbers)]
    assert [len(vector) for vector in Packed.of(tree).vectors] == [numbers, 2, numbers]
    assert_same(Packed.of(tree).unpacked(), tree)


def test_a_number_that_was_pythons_keeps_its_type():
    assert jax.tree.leaves(Packed.of({"rate": jnp.asarray(0.5)}).unpacked())[0].weak_type
