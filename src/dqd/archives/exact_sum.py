"""A sum that forgets nothing: numbers are added and taken away in any order, and no bit is ever lost.

A floating-point number is a whole number times a power of two. So the sum is one long integer, kept as digits of
DIGIT bits each in a word of its own, with room for carries (the long accumulator of Kulisch & Miranker 1981). Adding is
exact and does not depend on the order; what was added and taken away again leaves no trace, however large it was.

What reads a sum does so in JAX or in NumPy, whosever its digits are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.types import pytree, replace, static

DIGIT = 12  # bits
RECIPROCAL = 2**16 // DIGIT + 1  # of DIGIT, in units of 2**-16: exact for positions up to 8,000
AT_ONCE = 2**17  # numbers: for the carries of as many a word of 32 bits has room
SPARE = 3  # digits above the largest number: room for 2**31 of them


@pytree
class ExactSum:
    """sum_i digits[..., i] * 2**(DIGIT * i) in units of the smallest number above zero."""

    digits: Any  # (..., digits) int32, of either sign; of JAX or NumPy
    dtype: Any = static()  # of the numbers

    @staticmethod
    def zero(dtype: jnp.dtype) -> ExactSum:
        return ExactSum(jax.device_put(np.zeros(_length(dtype), np.int32)), jnp.dtype(dtype))

    @staticmethod
    def of(number: Any, dtype: jnp.dtype) -> ExactSum:
        """One finite number as a sum, in NumPy."""
        (place,), (parts,) = _parts(np.full(1, number, dtype))
        digits = np.zeros(_length(dtype), np.int32)
        digits[place : place + len(parts)] = parts
        return ExactSum(digits, jnp.dtype(dtype))

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

    def times(self, count: Any) -> ExactSum:
        """The sum taken `count` times, one whole number from 0."""
        digits = _carried(_carried(_carried(self.digits)))
        parts = [(count >> (DIGIT * i)) & (2**DIGIT - 1) for i in range(SPARE)]
        moved = [_moved(digits, i) for i in range(SPARE)]
        return replace(self, digits=_carried(sum(part * shifted for part, shifted in zip(parts, moved, strict=True))))

    def share(self, count: Any) -> Any:
        """The sum divided by a count, rounded to floating point."""
        xp, digits, dtype = _library(self.digits), _carried(_carried(_carried(self.digits))), self.dtype
        number = xp.arange(digits.shape[-1])
        top = xp.max(xp.where(digits != 0, number, 0), axis=-1, keepdims=True)
        # Relative to the highest digit nothing overflows, and what underflows does not count.
        weights = np.exp2(DIGIT * np.maximum(np.arange(-digits.shape[-1], 1), -8)).astype(dtype)
        below = xp.minimum(number - top, 0)
        leading = xp.sum(digits.astype(dtype) * xp.asarray(weights)[below + digits.shape[-1]], axis=-1)
        exponent = DIGIT * top[..., 0] + int(jnp.finfo(dtype).minexp - jnp.finfo(dtype).nmant)
        half = exponent // 2
        return leading / count * _power(half, dtype) * _power(exponent - half, dtype)


def _length(dtype: jnp.dtype) -> int:
    """Digits of a sum."""
    format = jnp.finfo(dtype)
    return int((format.maxexp - format.minexp + 1) // DIGIT) + _pieces(dtype) + SPARE


def _pieces(dtype: jnp.dtype) -> int:
    """Digits of a significand."""
    return -(-(jnp.finfo(dtype).nmant + 1) // DIGIT)


def _library(array: Any) -> Any:
    return np if isinstance(array, np.ndarray) else jnp


def _parts(numbers: Any) -> tuple[Any, Any]:
    """The lowest digit that a number touches, (m,), and what it adds to that and to the next ones."""
    xp, format = _library(numbers), jnp.finfo(numbers.dtype)
    bits = numbers.view(f"int{format.bits}")
    exponent = (bits >> format.nmant) & (2**format.nexp - 1)
    significand = (bits & (2**format.nmant - 1)) | xp.where(exponent > 0, 2**format.nmant, 0)
    position = xp.maximum(exponent, 1) - 1  # in bits above the smallest number
    place = (position * RECIPROCAL) >> 16  # position // DIGIT, without a division: those XLA keeps by themselves
    shift = position - DIGIT * place
    pieces = [((significand >> (DIGIT * i)) & (2**DIGIT - 1)) << shift for i in range(_pieces(numbers.dtype))]
    low = [piece & (2**DIGIT - 1) for piece in pieces]
    high = [piece >> DIGIT for piece in pieces]
    parts = xp.stack([low[0], *(a + b for a, b in zip(low[1:], high, strict=False)), high[-1]], axis=-1)
    return place.astype(xp.int32), xp.where(bits[:, None] < 0, -parts, parts).astype(xp.int32)


def _carried(digits: Any) -> Any:
    """The same sum with digits of about -2**(DIGIT - 1) to 2**(DIGIT - 1); the highest takes what comes."""
    carry = (digits + 2 ** (DIGIT - 1)) >> DIGIT
    carry = carry * (np.arange(digits.shape[-1], dtype=np.int32) < digits.shape[-1] - 1)
    return digits - (carry << DIGIT) + _moved(carry, 1)


def _moved(digits: Any, places: int) -> Any:
    """Every digit so many places higher; the highest are dropped."""
    xp = _library(digits)
    return xp.concatenate([xp.zeros_like(digits[..., :places]), digits[..., : digits.shape[-1] - places]], axis=-1)


def _power(exponent: Any, dtype: jnp.dtype) -> Any:
    """2**exponent, exactly: from its bits."""
    format = jnp.finfo(dtype)
    biased = exponent.astype(f"int{format.bits}") + (format.maxexp - 1)
    return (biased << format.nmant).view(dtype)
