"""The square root of a covariance, refreshed only when it is due.

Small matrices are always recomputed and the result selected: cheaper than a branch. Large ones are recomputed in a loop
over those that are due, which runs no round when none is. That also holds under `vmap`, where a `cond` would compute
both branches for everybody: a custom rule gathers the batch into one loop. A CPU takes them one by one, a GPU as many
at once as its products need to be quick.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap

from dqd.strategies.roots import Roots, roots
from dqd.types import matmul, pytree, replace, select

SMALL = 16  # up to here a decomposition costs less than deciding whether to make it
BLOCK = {"cpu": 1, "gpu": 128}  # matrices of one round


@pytree
class Decomposition:
    """Last decomposed covariance. While `is_identity` holds, the matrices are stale and stand for the identity."""

    covariance: Array  # (d, d)
    roots: Roots
    is_identity: Array  # ()

    @staticmethod
    def identity(d: int, dtype: jnp.dtype) -> Decomposition:
        eye, one = jnp.eye(d, dtype=dtype), jnp.ones((), dtype)
        return Decomposition(eye, Roots(eye, eye, one, one), jnp.array(True))

    def forget(self, when: Array) -> Decomposition:
        one = {name: jnp.where(when, 1, getattr(self.roots, name)) for name in ("smallest", "largest")}
        return replace(self, roots=replace(self.roots, **one), is_identity=self.is_identity | when)

    def color(self, z: Array) -> Array:
        """C^(1/2) z for each row of z.

        The symmetric root makes a sample depend on C alone, not on the signs, order or, where eigenvalues are equal,
        the choice of eigenvectors, which round-off decides.
        """
        return self._unless_identity(lambda rows: matmul(rows, self.roots.root), z)

    def whiten(self, y: Array) -> Array:
        """C^(-1/2) y."""
        return self._unless_identity(lambda v: matmul(self.roots.inverse, v), y)

    def _unless_identity(self, transform, x: Array) -> Array:  # type: ignore[no-untyped-def]
        if self.covariance.shape[-1] <= SMALL:
            return jnp.where(self.is_identity, x, transform(x))
        return jax.lax.cond(self.is_identity, lambda x: x, transform, x)

    def merged(self, decay: Array, rows: Array, weights: Array) -> Array:
        """decay * C + sum_r weight_r row_r row_r^T."""
        base = jnp.where(self.is_identity, jnp.eye(self.covariance.shape[-1], dtype=rows.dtype), self.covariance)
        rows = jnp.where(weights[:, None] > 0, rows, 0)  # a row without weight may hold anything, even NaN
        return decay * base + matmul(rows.T * weights, rows)


def refresh(due: Array, old: Decomposition, decay: Array, rows: Array, weights: Array) -> Decomposition:
    """Merge the rows into the covariance and decompose it anew, if that is due."""
    if old.covariance.shape[-1] <= SMALL:
        return select(due, _decomposed(old, decay, rows, weights), old)
    lift = jax.tree.map(lambda leaf: leaf[None], (due, old, decay, rows, weights))
    return jax.tree.map(lambda leaf: leaf[0], _refresh_due(*lift))


def _decomposed(old: Decomposition, decay: Array, rows: Array, weights: Array) -> Decomposition:
    covariance = old.merged(decay, rows, weights)
    return Decomposition(covariance, roots(covariance, decay * old.roots.smallest), jnp.array(False))


@custom_vmap
def _refresh_due(due: Array, old: Decomposition, decay: Array, rows: Array, weights: Array) -> Decomposition:
    """The same for a batch along axis 0, a block after the other, visiting only members that are due."""
    block = min(BLOCK["cpu" if jax.default_backend() == "cpu" else "gpu"], due.size)

    def visit(carry: tuple[Array, Decomposition]) -> tuple[Array, Decomposition]:
        # The barrier ties everything to the loop's state: XLA would hoist the matrix product and always compute it.
        due, decompositions, *terms = jax.lax.optimization_barrier((*carry, decay, rows, weights))
        is_due, members = jax.lax.top_k(due.astype(jnp.int32), block)  # the first of them
        some = jax.tree.map(lambda leaf: leaf[members], (decompositions, *terms))
        fresh = jax.vmap(_decomposed)(*some)
        place = jnp.where(is_due > 0, members, due.size)  # beyond the last: dropped
        done = jax.tree.map(lambda all, new: all.at[place].set(new, mode="drop"), decompositions, fresh)
        return due.at[place].set(False, mode="drop"), done

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), visit, (due, old))[1]


@_refresh_due.def_vmap
def _(axis_size: int, in_batched, *arguments):  # type: ignore[no-untyped-def]
    """Fold a further batch axis into axis 0."""
    full = jax.tree.map(
        lambda leaf, batched: leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape)),
        arguments,
        tuple(in_batched),
    )
    folded = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), full)
    result = _refresh_due(*folded)
    unfolded = jax.tree.map(lambda leaf: leaf.reshape(axis_size, -1, *leaf.shape[1:]), result)
    return unfolded, jax.tree.map(lambda _: True, unfolded)
