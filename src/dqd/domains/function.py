"""A plain function becomes a domain; what does not fit is said in words before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.domains.domain import Domain
from dqd.inputs.fields import Shapes
from dqd.inputs.layout import Layout, OnFlat
from dqd.types import Score, pytree, static

JAX_ONLY = (
    "score is compiled, so it must use jax.numpy and decide with jnp.where instead of `if`; "
    "a function of PyTorch comes as dqd.torch_evaluator(f), one of NumPy as dqd.evaluator(f)"
)

ONE = "score is given a single solution; a function of a whole batch, which may use NumPy, comes as dqd.evaluator(f)"


@pytree
class FunctionDomain(Domain):
    """A plain function of one solution."""

    function: Score = static()

    def score(self, x: Array) -> tuple[Any, ...]:
        outputs = self.function(x)
        if not isinstance(outputs, tuple | list) or len(outputs) not in (2, 3, 4):
            raise TypeError(f"a plain `return objective, measures` is expected, got {type(outputs).__name__}")
        return tuple(jax.tree.map(jnp.asarray, output) for output in outputs)


def as_domain(score: Score | Domain | None, layout: Layout) -> Domain:
    """A domain of flat vectors from whatever the user gave."""
    if isinstance(score, Domain):
        _check_fields(score)
        return score
    if isinstance(score, type) and issubclass(score, Domain):
        raise TypeError(f"score: got the class {score.__name__}; make one first, {score.__name__}(...)")
    if hasattr(score, "evaluate"):
        raise TypeError(
            f"score: {type(score).__name__} has evaluate; an evaluator needs evaluate_with_jacobian as well"
        )
    if not callable(score):
        raise TypeError(f"score: expected a function x -> (objective, measures), got {type(score).__name__}")
    function: Score = score  # type: ignore[assignment]
    return FunctionDomain(function if layout.is_flat else OnFlat(function, layout))


def _check_fields(domain: Domain) -> None:
    """All that a domain holds is data, or marked as static."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(domain)[0]:
        if leaf is domain:
            raise TypeError(f"score: the class {type(domain).__name__} needs the decorator @dqd.types.pytree")
        if not isinstance(leaf, bool | int | float | np.generic | np.ndarray | Array):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise TypeError(
                f"score: {type(domain).__name__}.{name} is no array but {type(leaf).__name__}; "
                "mark such a field as part of the program: `name: type = dqd.types.static()`"
            )


def check_score(domain: Domain, x0: Array, k: int, fields: Shapes) -> None:
    """Trace the score once and say in words what does not fit."""
    try:
        outputs = jax.eval_shape(domain.score, x0)
    except NotImplementedError:
        raise TypeError(f"score: the class {type(domain).__name__} must define score(self, x)") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        words, *_ = str(error).splitlines() or [type(error).__name__]
        traced = isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError) or "Tracer" in words
        hint = f". {JAX_ONLY}" if traced else f". {ONE}" if "dimension" in words else ""
        kind = next(kind for kind in (TypeError, ValueError, AttributeError, IndexError) if isinstance(error, kind))
        raise kind(f"score: failed on a solution of shape {x0.shape}: {words.rstrip('.')}{hint}") from error
    plain = [part for part in outputs if not isinstance(part, dict)] if isinstance(outputs, tuple) else []
    if len(plain) not in (2, 3) or not all(hasattr(part, "shape") for part in plain):
        raise TypeError("score: expected two arrays, a plain `return objective, measures` with measures of shape (k,)")
    objective, measures, *feasible = plain
    _check_told(fields, next((part for part in outputs if isinstance(part, dict)), {}))
    if objective.shape != ():
        raise ValueError(
            f"score: the objective must be one number per solution, shape (), got {objective.shape}; "
            "score is given a single solution, batches are made by dqd"
        )
    if measures.shape != (k,):
        raise ValueError(
            f"score: expected measures of shape ({k},), as many as the archive is for, got {measures.shape}"
        )
    for flag in feasible:
        if (flag.shape, flag.dtype) != ((), jnp.bool_):
            raise TypeError(
                "score: a third thing says whether the solution is feasible: one boolean, such as x.sum() < 1, "
                f"got {flag.dtype} of shape {flag.shape}"
            )
    for name, output in (("objective", objective), ("measures", measures)):
        if not jnp.issubdtype(output.dtype, jnp.floating):
            raise TypeError(
                f"score: {name} must be real numbers that can be differentiated, got {output.dtype}; "
                "if the algorithm needs no gradients, .astype(float) is enough"
            )


def _check_told(fields: Shapes, told: Mapping[str, Any]) -> None:
    """A score that returns other fields as well is none the worse."""
    for name, shape in fields.items():
        got = getattr(told.get(name), "shape", None)
        if got != shape:
            raise ValueError(
                f"score: fields: expected {name} of shape {shape}, got {'nothing' if got is None else got}; "
                f'return it last, in a dictionary: objective, measures, {{"{name}": ...}}'
            )
