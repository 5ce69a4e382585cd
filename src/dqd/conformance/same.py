"""When two states are the same."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dqd.archives.archive import Archive
from dqd.strategies.cma_es import CMAESState
from dqd.types import PyTree, replace

T = TypeVar("T")


def expect(condition: Any, words: str) -> None:
    """As `assert`, which an optimising Python would leave out."""
    if not condition:
        raise AssertionError(words)


def assert_same(one: Any, other: Any, tolerance: float = 0.0) -> None:
    """Leaf by leaf: bit for bit, or within a tolerance relative to the largest number of the leaf, at least 1."""
    flat, tree = jax.tree_util.tree_flatten_with_path(one)
    structure = jax.tree.structure(other)
    expect(bool(tree == structure), f"two structures: {tree} and {structure}")  # type: ignore[operator]
    for (path, a), b in zip(flat, jax.tree.leaves(other), strict=True):
        where = jax.tree_util.keystr(path)
        if jnp.issubdtype(jnp.result_type(a), jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        a, b = np.asarray(a), np.asarray(b)
        if tolerance and a.dtype.kind == "f":
            size = np.max(np.abs(a[np.isfinite(a)]), initial=1.0)
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * size, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def copied(state: T) -> T:
    """One that may be overwritten."""
    return jax.tree.map(lambda leaf: leaf.copy(), state)


def meaning(state: PyTree) -> PyTree:
    """A state without what round-off decides.

    Of a CMA-ES its distribution and paths: rows set aside may lie in any order and a basis may have any signs, which no
    sample shows. Of an archive not when an elite was found: one that is evaluated again may win or lose the last bit.
    Its exact sum is rounded like all other numbers.
    """

    def of(part: Any) -> Any:
        if isinstance(part, Archive):
            return replace(part, found=part.found >= 0, total=part.total.share(1))
        if not isinstance(part, CMAESState):
            return part
        if part.mean.ndim == 2:  # copies
            return jax.vmap(of)(part)
        covariance = part.decomposition.merged(part.decay, part.rows, part.weights)
        names = ("mean", "sigma", "path_c", "path_s", "evaluations", "decomposed_at", "used")
        return {"covariance": covariance, **{name: getattr(part, name) for name in names}}

    return jax.tree.map(of, state, is_leaf=lambda part: isinstance(part, CMAESState | Archive))
