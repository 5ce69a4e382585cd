"""The pytree decorator and the small records that travel between the layers.

Shapes: b batch, n solution, k measures, p gradient points.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax import Array

T = TypeVar("T")
FEW_TERMS, FEW_PRODUCTS = 16, 2**14  # up to here a product of matrices is written out

# What a sigma multiplies; "objective" is what a stored objective grows by when its gradient says 1.
Along = Literal["solutions", "gradients", "unit gradients", "signs of gradients", "objective"]
PyTree: TypeAlias = Any  # arrays in whatever structure its owner chose: a user's solution, an emitter's state


def static(**options: Any) -> Any:
    """A field that is part of the program (a size or a choice): changing it compiles anew."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def pytree(cls: type[T]) -> type[T]:
    """A frozen dataclass that JAX can trace: every field not marked `static()` is data.

    Unlike `jax.tree_util.register_dataclass`, JAX rebuilds it without calling `__init__`: `__post_init__` then checks
    what a user gave and never sees a tracer.
    """
    return register(dataclasses.dataclass(frozen=True)(cls))


def register(cls: type[T]) -> type[T]:
    """Make a frozen dataclass that was written without JAX known to it."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    data = tuple(field.name for field in fields if not field.metadata.get("static"))
    fixed = tuple(field.name for field in fields if field.metadata.get("static"))
    if not hasattr(cls, "__post_init__"):  # which JAX would call; without one, its own way is quicker
        return jax.tree_util.register_dataclass(cls, data, fixed)
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in data)

    def flatten(record: T) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(record, name) for name in data), tuple(getattr(record, name) for name in fixed)

    def flatten_with_keys(record: T) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        leaves, choices = flatten(record)
        return tuple(zip(keys, leaves, strict=True)), choices

    def unflatten(choices: tuple[Any, ...], leaves: Iterable[Any]) -> T:
        record = object.__new__(cls)
        for name, value in zip(data + fixed, (*leaves, *choices), strict=True):
            object.__setattr__(record, name, value)
        return record

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def replace(record: T, **changes: Any) -> T:
    """A copy of a pytree dataclass with some fields changed."""
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


def select(condition: Array, yes: T, no: T) -> T:
    """Leaf by leaf, `yes` where the scalar condition holds and `no` elsewhere."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def matmul(a: Array, b: Array) -> Array:
    """Matrix product in full precision: by default a GPU would round float32 factors to 10 bits (TF32).

    Tiny products are written out: a library call costs more than they do, and nothing is fused with it.
    """
    on_cpu, terms = jax.default_backend() == "cpu", b.shape[0]
    products = a.size * (b.size // terms)
    if b.ndim <= 2 and (terms <= FEW_TERMS if not on_cpu else terms <= 4 and products <= FEW_PRODUCTS):
        factors = jnp.moveaxis(a[..., None] if b.ndim == 2 else a, a.ndim - 1, 0)
        return functools.reduce(jnp.add, [factor * row for factor, row in zip(factors, b, strict=True)])
    if b.ndim <= 2 and not on_cpu and products <= FEW_PRODUCTS:
        # Along the last axis, where a GPU adds in parallel.
        return jnp.sum(a[..., None, :] * b.T if b.ndim == 2 else a * b, axis=-1)
    return jnp.matmul(a, b, precision="highest")


def affine(start: Array, factors: Array, rows: Array) -> Array:
    """start + factors @ rows, for a row (n,), factors (b, m) and rows (m, n).

    On a CPU by one product, with the start among the rows: adding it to every result would take as long again.
    """
    if jax.default_backend() != "cpu":
        return start + matmul(factors, rows)
    return matmul(jnp.pad(factors, ((0, 0), (0, 1)), constant_values=1), jnp.concatenate([rows, start[None]]))


def all_finite(x: Array) -> Array:
    """Whether the numbers along the last axis are all finite, (..., n) -> (...).

    On a CPU by a product with zeros, which is zero just then: several times as fast as looking at each.
    """
    if jax.default_backend() != "cpu":
        return jnp.all(jnp.isfinite(x), axis=-1)
    return jnp.matmul(x, jnp.zeros(x.shape[-1], x.dtype)) == 0


def how_many(flags: Array) -> Array:
    """How many are set along the first axis, (b, ...) -> (...)."""
    return jnp.sum(flags, axis=0, dtype=jnp.int32)


@pytree
class Evaluation:
    """What an evaluator says of a batch. Row 0 of a jacobian belongs to the objective, row 1 + j to measure j.

    A plain tuple says as much, unless some solutions are not feasible or took several evaluations, or there are fields.

    >>> told = dqd.Evaluation(np.array([1.0, 2.0]), np.zeros((2, 2)), feasible=np.array([True, False]))
    >>> told.objective.shape, told.jacobian
    ((2,), None)
    """

    objective: Array  # (b,) what the archive stores
    measures: Array  # (b, k)
    jacobian: Array | None = None  # (b, 1 + k, n) of the raw objective and of the measures
    feasible: Array | None = None  # (b,) False keeps a solution out of the archive; None: all may enter
    evaluations: Array | None = None  # (b,) how many it took to evaluate each; None: one
    fields: dict[str, Array] | None = None  # (b, ...) the user's own numbers by name: kept, and used for nothing else

    def astype(self, dtype: Any) -> Evaluation:
        """Its real numbers in one precision, that of the search: a score may compute in another."""
        real = {name: getattr(self, name) for name in ("objective", "measures", "jacobian", "fields")}
        return replace(self, **jax.tree.map(lambda part: part.astype(dtype), real))

    def followed_by(self, other: Evaluation) -> Evaluation:
        """The rows of both; jacobians are left out."""
        one, two = replace(self, jacobian=None), replace(other, jacobian=None)
        return jax.tree.map(lambda *rows: jnp.concatenate(rows), one, two)


@pytree
class AddResult:
    """What became of each candidate of a batch, judged in batch order."""

    status: Array  # (b,) 0 rejected, 1 improved, 2 new
    value: Array  # (b,) objective minus the acceptance threshold it met; the objective itself where there was none
    cell: Array  # (b,) index of the cell, or the number of cells for a candidate that was not finite
    outside: Array  # (b,) whether its measures lay outside the range and were moved to a border cell
    # What was evaluated, for emitters that judge by more than the archive says; there whenever an emitter is told.
    objective: Array | None = None  # (b,) may be NaN, where `cell` is the number of cells
    measures: Array | None = None  # (b, k)


@pytree
class Points:
    """The solutions at which an emitter wants a jacobian. Masked ones are neither evaluated nor stored."""

    solutions: Array  # (p, n)
    mask: Array  # (p,) True where the point is really wanted
    known: Array | None = None  # (p,) True for an elite as it is, which need not be stored again; None: nobody is

    @property
    def stored(self) -> Array:
        """Which of them the archive is shown, (p,)."""
        return self.mask if self.known is None else self.mask & ~self.known

    def followed_by(self, solutions: Array) -> Points:
        """With solutions (b, n) behind them that are all wanted, and new."""
        wanted = jnp.ones(len(solutions), bool)
        known = None if self.known is None else jnp.concatenate([self.known, ~wanted])
        return Points(jnp.concatenate([self.solutions, solutions]), jnp.concatenate([self.mask, wanted]), known)


@pytree
class Proposal:
    """Solutions to evaluate, and whatever was drawn to make them: the emitter learns from that, never draws again."""

    solutions: Array  # (b, n)
    drawn: Any


Bounds: TypeAlias = tuple[Array, Array] | None  # lower and upper, each (n,)
Score = Callable[
    [Any], tuple[Array, ...]
]  # one solution -> objective (), measures (k,), and if so feasible () or fields
