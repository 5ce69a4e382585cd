"""Records that travel between the layers."""

import jax
import jax.numpy as jnp
from hypothesis import example, given
from hypothesis import strategies as st

from dqd.types import Counter

add = jax.jit(Counter.__add__)


@given(st.lists(st.integers(0, 2**30), max_size=10))
@example([2**30] * 9)
@example([2**20 - 1, 1])
def test_a_counter_counts_beyond_32_bits(numbers):
    counter = Counter.zero()
    for number in numbers:
        counter = add(counter, number)
    assert int(counter) == sum(numbers)
    assert counter.low.dtype == counter.high.dtype == jnp.int32


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=5))
def test_counters_of_several_seeds_add_up(numbers):
    together = Counter(jnp.array([n >> 20 for n in numbers]), jnp.array([n % 2**20 for n in numbers]))
    assert int(together) == sum(numbers)
