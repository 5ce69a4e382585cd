"""Numbers and rules that presets are given."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, cast, get_args

from dqd.emitters.restarts import RULES, Restart
from dqd.emitters.selection import Selection
from dqd.inputs.names import check_known


def positive_or_chosen(**number: float | None) -> Any:
    """A number above 0, or None where it is to be chosen."""
    ((name, value),) = number.items()
    if value is None:
        return None
    check_positive(**{name: value})
    return float(value)


def check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
            raise TypeError(f"{name}: expected a finite number, got {number!r}")
        if number <= 0:
            raise ValueError(f"{name}: expected a number above 0, got {number}")


def share(batch_size: int, emitters: int, least: int) -> int:
    """Evaluations per iteration of each emitter."""
    if isinstance(emitters, bool) or not isinstance(emitters, Integral) or emitters < 1:
        raise ValueError(f"emitters: expected a whole number, at least 1, got {emitters!r}")
    if batch(batch_size, least * int(emitters)) % emitters:
        raise ValueError(f"batch_size: expected a multiple of the {emitters} emitters that share it, got {batch_size}")
    return int(batch_size) // int(emitters)


def population(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
        raise ValueError(f"initial_population: expected a whole number, at least 0, got {size!r}")
    return int(size)


def batch(batch_size: int, least: int = 1, even: bool = False) -> int:
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < least:
        raise ValueError(f"batch_size: expected a whole number of evaluations, at least {least}, got {batch_size!r}")
    if even and batch_size % 2:
        raise ValueError(f"batch_size: half of it goes to points with gradients, so it must be even, got {batch_size}")
    return int(batch_size)


def check_selection(rule: Any) -> Selection:
    check_known("selection", rule, get_args(Selection))
    return cast("Selection", rule)


def check_restart(rule: Any) -> Restart:
    """A rule by name, or a number of iterations."""
    if isinstance(rule, str):
        check_known("restart", rule, RULES)
        return cast("Restart", rule)
    if isinstance(rule, bool) or not isinstance(rule, Integral) or rule < 1:
        raise ValueError(
            f'restart: expected "no_improvement", "basic", or a whole number of iterations, at least 1, got {rule!r}'
        )
    return int(rule)
