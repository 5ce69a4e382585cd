"""Numbers that users give, looked at before anything is compiled; what does not fit is said in words."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


def check_arguments(iterations: int, seed: Any, seeds: Any, chunk: int | None) -> None:
    for name, number, least in (("iterations", iterations, 0), ("chunk", 1 if chunk is None else chunk, 1)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number < 2**31:
            raise ValueError(f"{name}: expected a whole number from {least} to 2**31 - 1, got {number!r}")
    if seed is not None and seeds is not None:
        raise ValueError("seed and seeds: give one of them")
    if seeds is not None and not hasattr(seeds, "__len__"):
        raise TypeError(f"seeds: expected a list of whole numbers such as range(20), got {type(seeds).__name__}")
    for number in [0 if seed is None else seed] if seeds is None else seeds:
        check_seed(number)
    if seeds is not None and len(seeds) == 0:
        raise ValueError("seeds: expected at least one seed")
    if seeds is not None and len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds: equal seeds give equal runs; expected distinct ones, got {list(seeds)}")


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
        raise ValueError(f"seed: expected a whole number from 0 to 2**31 - 1, got {seed!r}")


def check_rounds(rounds: Any) -> int:
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ValueError(f"rounds: expected a whole number of rounds under way at once, at least 1, got {rounds!r}")
    return int(rounds)


def check_initial_sigma(initial_sigma: Any) -> float:
    """As a number, 1 unless it is given."""
    sigma = 1.0 if initial_sigma is None else initial_sigma
    if not isinstance(sigma, Real) or not 0 <= float(sigma) < math.inf:
        raise ValueError(f"initial_sigma: expected a finite number, at least 0, got {initial_sigma!r}")
    return float(sigma)
