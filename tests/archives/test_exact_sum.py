"""Sums without round-off: against Python's fractions, which have none either."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.archives.exact_sum import ExactSum

add, share = jax.jit(ExactSum.add), jax.jit(ExactSum.share)
both = pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.x64), np.float32])
ORDERS = {np.float32: 37, np.float64: 300}


def exactly(numbers):
    return sum((Fraction(float(number)) for number in numbers), Fraction(0))


def scattered(random, dtype, size=36):
    """Numbers of either sign over all orders of magnitude, the largest and the smallest among them."""
    numbers = (random.choice([-1, 1], size) * 10.0 ** random.uniform(-ORDERS[dtype], ORDERS[dtype], size)).astype(dtype)
    limits = np.finfo(dtype)
    numbers[:4] = [limits.max, -limits.max, limits.smallest_subnormal, -limits.tiny]
    return numbers


@both
def test_whatever_is_added_and_taken_away_the_sum_is_that_of_what_is_left(dtype):
    random = np.random.default_rng(0)
    for _ in range(20):
        batches = [scattered(random, dtype) for _ in range(8)]
        total, left = ExactSum.zero(dtype), Fraction(0)
        for batch in batches:
            total, left = add(total, batch), left + exactly(batch)
        for i in random.permutation(8):
            total, left = add(total, -batches[i]), left - exactly(batches[i])
            np.testing.assert_allclose(
                float(share(total, dtype(1000))), float(left / 1000), rtol=4 * np.finfo(dtype).eps
            )
        assert not np.any(total.digits)  # not nearly nothing, but nothing


@both
def test_what_overflows_a_sum_of_floats_does_not_overflow_this_one(dtype):
    largest = np.full(1000, np.finfo(dtype).max, dtype)
    total = add(ExactSum.zero(dtype), largest)
    assert float(share(total, dtype(1000))) == np.finfo(dtype).max
    assert float(share(add(total, -largest[1:]), dtype(1))) == np.finfo(dtype).max


@both
def test_the_order_of_numbers_leaves_no_trace(dtype):
    random = np.random.default_rng(1)
    numbers = scattered(random, dtype, 500)
    one, other = (add(ExactSum.zero(dtype), order) for order in (numbers, random.permutation(numbers)))
    np.testing.assert_array_equal(one.digits, other.digits)


def test_half_a_million_numbers_at_once_leave_room_for_carries():
    numbers = np.full(2**18, -(2 - 2.0**-23), np.float32)  # every bit of the significand is set
    total = ExactSum.zero(np.float32)
    for _ in range(4):
        total = add(total, numbers)
    assert float(share(total, np.float32(2**20))) == numbers[0]


def test_rows_are_shared_out_at_once():
    totals = jax.vmap(lambda numbers: ExactSum.zero(jnp.float32).add(numbers))(jnp.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(share(totals, jnp.array([1.0, 2.0, 4.0])), [6, 11, 9.5])


@both
def test_a_multiple_is_that_many_times_the_sum(dtype):
    random = np.random.default_rng(2)
    for count in (0, 1, 4095, 4096, 12345, 2**24 + 1, 2**31 - 1):
        numbers = (random.choice([-1, 1], 5) * 10.0 ** random.uniform(-20, 20, 5)).astype(dtype)
        total = jax.jit(ExactSum.times)(add(ExactSum.zero(dtype), numbers), np.int32(count))
        expected = float(exactly(numbers) * count / 1000)
        np.testing.assert_allclose(float(share(total, dtype(1000))), expected, rtol=4 * np.finfo(dtype).eps)


def test_any_number_of_numbers_may_be_added_at_once():
    many = np.full(600_000, 1 - 2.0**-24, np.float32)  # all digits of each as large as they can be
    np.testing.assert_allclose(share(add(ExactSum.zero(np.float32), many), 600_000), many[0], rtol=2e-7)
