"""Small linear systems, many at once."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

UNROLLED = 6  # largest system written out; a library call for a 2 x 2 matrix takes longer than the arithmetic


def solve(matrix: Array, right: Array) -> Array:
    """x of matrix x = right, (..., k, k) and (..., k). Symmetric and positive, so elimination needs no pivots."""
    k = right.shape[-1]
    if k > UNROLLED:
        return jnp.linalg.solve(matrix, right[..., None])[..., 0]
    a = [[matrix[..., i, j] for j in range(k)] for i in range(k)]
    x = [right[..., i] for i in range(k)]
    for p in range(k):
        for i in range(p + 1, k):
            factor = a[i][p] / a[p][p]
            a[i] = [a[i][j] - factor * a[p][j] for j in range(k)]
            x[i] = x[i] - factor * x[p]
    for p in reversed(range(k)):
        x[p] = (x[p] - sum(a[p][j] * x[j] for j in range(p + 1, k))) / a[p][p]
    return jnp.stack(x, axis=-1)
