"""Symmetric eigen-decomposition: unrolled Jacobi rotations for tiny matrices, LAPACK or the vendor's for the rest.

A vendor's `eigh` of one 3x3 matrix costs a GPU more than all the rest of an iteration; a few rotations written out are
fused with their neighbours. Jacobi (1846) in the form of Golub & Van Loan, Matrix Computations, section 8.5.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

UNROLLED = 4  # largest dimension written out
SWEEPS = 5  # cyclic Jacobi converges quadratically: 5 sweeps reach round-off for 4x4 in float64, one to spare


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (d,), in no fixed order, and eigenvectors (d, d) in columns."""
    if matrix.shape[-1] > UNROLLED:
        return jnp.linalg.eigh(matrix)
    return jax.lax.platform_dependent(matrix, cpu=_lapack, default=jacobi)


def _lapack(matrix: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


def jacobi(matrix: Array) -> tuple[Array, Array]:
    """Cyclic Jacobi on scalars."""
    size = matrix.shape[-1]
    a = [[matrix[i, j] for j in range(size)] for i in range(size)]
    v = list(jnp.eye(size, dtype=matrix.dtype))  # columns
    for _ in range(SWEEPS):
        for p in range(size - 1):
            for q in range(p + 1, size):
                _rotate(a, v, p, q)
    return _beside([a[i][i] for i in range(size)]), _beside(v)


def _beside(parts: list[Array]) -> Array:
    """The parts along a new last axis. By choosing: to join them, a GPU would compute each in a branch of its own."""
    joined = parts[0][..., None]
    for j, part in enumerate(parts[1:], 1):
        joined = jnp.where(np.arange(len(parts)) < j, joined, part[..., None])
    return joined


def _rotate(a: list[list[Array]], v: list[Array], p: int, q: int) -> None:
    """Annihilate a[p][q]: t = sign(tau) / (|tau| + sqrt(1 + tau^2)), tau = (a_qq - a_pp) / 2 a_pq."""
    zero = a[p][q] == 0
    tau = (a[q][q] - a[p][p]) / (2 * jnp.where(zero, 1, a[p][q]))
    t = jnp.where(zero, 0, jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.sqrt(1 + tau * tau)))
    c = jax.lax.rsqrt(1 + t * t)
    s = t * c
    shift = t * a[p][q]
    a[p][p], a[q][q] = a[p][p] - shift, a[q][q] + shift
    a[p][q] = a[q][p] = jnp.zeros_like(shift)
    for r in range(len(a)):
        if r not in (p, q):
            rp, rq = a[r][p], a[r][q]
            a[p][r] = a[r][p] = c * rp - s * rq
            a[q][r] = a[r][q] = s * rp + c * rq
    v[p], v[q] = c * v[p] - s * v[q], s * v[p] + c * v[q]
