"""A sum that forgets nothing: numbers are added and taken away in any order, and no bit is ever lost.

A floating-point number is a whole number times a power of two. So the sum is one long integer, kept as digits of
DIGIT bits each in a word of its own, with room for carries (the long accumulator of Kulisch & Miranker 1981). Adding is
exact and does not depend on the order; what was added and taken away again leaves no trace, however large it was.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import pytree, replace, static

DIGIT = 12  # bits
AT_ONCE = 2**17  # numbers: for the carries of as many a word of 32 bits has room
SPARE = 3  # digits above the largest number: room for 2**31 of them


@pytree
class ExactSum:
    """sum_i digits[..., i] * 2**(DIGIT * i) in units of the smallest number above zero."""

    digits: Array  # (..., digits) int32, of either sign
    dtype: Any = static()  # of the numbers

    @staticmethod
    def zero(dtype: jnp.dtype) -> ExactSum:
        format = jnp.finfo(dtype)
        highest = (format.maxexp - format.minexp + 1) // DIGIT + _pieces(dtype)
        return ExactSum(jnp.zeros(int(highest) + SPARE, jnp.int32), jnp.dtype(dtype))

    def add(self, numbers: Array) -> ExactSum:
        """Add finite numbers (m,)."""
        if numbers.size > AT_ONCE:
            return self.add(numbers[:AT_ONCE]).add(numbers[AT_ONCE:])
        place, parts = _parts(numbers)  # (m,), (m, pieces + 1)
        place = jnp.where(numbers == 0, self.digits.size, place)  # nowhere: else most would meet in one digit
        places = place[:, None] + np.arange(parts.shape[1], dtype=np.int32)
        return replace(self, digits=_carried(self.digits.at[places].add(parts, mode="drop")))

    def plus(self, other: ExactSum) -> ExactSum:
        return replace(self, digits=_carried(self.digits + other.digits))

    def times(self, count: Array) -> ExactSum:
        """The sum taken `count` times, one whole number from 0."""
        digits = _carried(_carried(_carried(self.digits)))
        parts = [(count >> (DIGIT * i)) & (2**DIGIT - 1) for i in range(SPARE)]
        moved = [jnp.roll(digits.at[..., digits.shape[-1] - i :].set(0), i, axis=-1) for i in range(SPARE)]
        return replace(self, digits=_carried(sum(part * shifted for part, shifted in zip(parts, moved, strict=True))))

    def share(self, count: Array | int) -> Array:
        """The sum divided by a count, rounded to floating point."""
        digits, dtype = _carried(_carried(_carried(self.digits))), self.dtype
        number = jnp.arange(digits.shape[-1])
        top = jnp.max(jnp.where(digits != 0, number, 0), axis=-1, keepdims=True)
        # Relative to the highest digit nothing overflows, and what underflows does not count.
        weights = np.exp2(DIGIT * np.maximum(np.arange(-digits.shape[-1], 1), -8)).astype(dtype)
        leading = jnp.sum(digits.astype(dtype) * jnp.asarray(weights)[number - top + digits.shape[-1]], axis=-1)
        exponent = DIGIT * top[..., 0] + int(jnp.finfo(dtype).minexp - jnp.finfo(dtype).nmant)
        half = exponent // 2
        return leading / count * _power(half, dtype) * _power(exponent - half, dtype)


def _pieces(dtype: jnp.dtype) -> int:
    """Digits of a significand."""
    return -(-(jnp.finfo(dtype).nmant + 1) // DIGIT)


def _parts(numbers: Array) -> tuple[Array, Array]:
    """The lowest digit that a number touches, (m,), and what it adds to that and to the next ones."""
    format = jnp.finfo(numbers.dtype)
    bits = jax.lax.bitcast_convert_type(numbers, jnp.int32 if format.bits == 32 else jnp.int64)
    exponent = (bits >> format.nmant) & (2**format.nexp - 1)
    significand = (bits & (2**format.nmant - 1)) | jnp.where(exponent > 0, 2**format.nmant, 0)
    position = jnp.maximum(exponent, 1) - 1  # in bits above the smallest number
    place, shift = position // DIGIT, position % DIGIT
    pieces = [((significand >> (DIGIT * i)) & (2**DIGIT - 1)) << shift for i in range(_pieces(numbers.dtype))]
    low = [piece & (2**DIGIT - 1) for piece in pieces]
    high = [piece >> DIGIT for piece in pieces]
    parts = jnp.stack([low[0], *(a + b for a, b in zip(low[1:], high, strict=False)), high[-1]], axis=-1)
    return place.astype(jnp.int32), jnp.where(bits[:, None] < 0, -parts, parts).astype(jnp.int32)


def _carried(digits: Array) -> Array:
    """The same sum with digits of about -2**(DIGIT - 1) to 2**(DIGIT - 1)."""
    carry = (digits + 2 ** (DIGIT - 1)) >> DIGIT
    carry = carry.at[..., -1].set(0)
    return digits - (carry << DIGIT) + jnp.concatenate([jnp.zeros_like(carry[..., :1]), carry[..., :-1]], axis=-1)


def _power(exponent: Array, dtype: jnp.dtype) -> Array:
    """2**exponent, exactly: from its bits."""
    format = jnp.finfo(dtype)
    kind = jnp.int32 if format.bits == 32 else jnp.int64
    biased = exponent.astype(kind) + (format.maxexp - 1)
    return jax.lax.bitcast_convert_type(biased << format.nmant, dtype)
