"""The points of a lattice: their numbers, and those nearest to one of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np


def numbered(position: Any, shape: tuple[int, ...]) -> Any:
    """The number of each point (..., k) -> (...), int32: C order, axis 0 slowest."""
    xp, strides = position.__array_namespace__(), np.cumprod((1, *shape[:0:-1]))[::-1]
    return xp.sum(position * xp.asarray(strides, xp.int32), axis=-1, dtype=xp.int32)


@functools.cache
def lattice(shape: tuple[int, ...], count: int) -> np.ndarray:
    """The shortest vectors that lead from cell to cell in a grid of that shape: 0, then the 2k of length 1, and so on.

    (count, k), or fewer if the grid has fewer.

    >>> lattice((3, 9), 5).tolist()
    [[0, 0], [-1, 0], [0, -1], [0, 1], [1, 0]]
    """
    longest = sum((size - 1) ** 2 for size in shape)
    every = itertools.chain.from_iterable(_of_square(square, shape) for square in range(longest + 1))
    count = min(count, math.prod(2 * size - 1 for size in shape))
    return np.array(list(itertools.islice(every, count)), np.int32).reshape(count, len(shape))


def _of_square(square: int, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All vectors whose squared length is that, fewer than `shape[j]` steps along axis j."""
    if not shape:
        yield from [()] if square == 0 else []
        return
    most = min(math.isqrt(square), shape[0] - 1)
    for step in range(-most, most + 1):
        for rest in _of_square(square - step * step, shape[1:]):
            yield step, *rest
