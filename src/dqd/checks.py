"""What users give, looked at before anything is compiled; what does not fit is said in words."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.archives.grid import Grid
from dqd.domains.domain import Domain, FunctionDomain
from dqd.emitters.emitter import check_emitter
from dqd.solutions import Layout, OnFlat
from dqd.types import Score

JAX_ONLY = (
    "score is compiled, so it must use jax.numpy and decide with jnp.where instead of `if`; "
    "for a function of NumPy or PyTorch give evaluator= instead"
)


def as_domain(score: Score | Domain | None, layout: Layout) -> Domain:
    """A domain of flat vectors from whatever the user gave."""
    if isinstance(score, Domain):
        _check_fields(score)
        return score
    if isinstance(score, type) and issubclass(score, Domain):
        raise TypeError(f"score: got the class {score.__name__}; make one first, {score.__name__}(...)")
    if hasattr(score, "evaluate"):
        raise TypeError(
            "score: expected a function of jax.numpy or a dqd.Domain, which illuminate compiles; "
            "for an evaluator with arrays of its own, give evaluator= or use dqd.AskTell"
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


def check_score(domain: Domain, x0: Array, tessellation: Grid) -> None:
    """Trace the score once and say in words what does not fit."""
    try:
        outputs = jax.eval_shape(domain.score, x0)
    except NotImplementedError:
        raise TypeError(f"score: the class {type(domain).__name__} must define score(self, x)") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        words, *_ = str(error).splitlines() or [type(error).__name__]
        traced = isinstance(error, jax.errors.JAXTypeError | jax.errors.JAXIndexError) or "Tracer" in words
        hint = f". {JAX_ONLY}" if traced else ""
        kind = next(kind for kind in (TypeError, ValueError, AttributeError, IndexError) if isinstance(error, kind))
        raise kind(f"score: failed on a solution of shape {x0.shape}: {words.rstrip('.')}{hint}") from error
    if not isinstance(outputs, tuple) or [hasattr(part, "shape") for part in outputs] != [True, True]:
        raise TypeError("score: expected two arrays, a plain `return objective, measures` with measures of shape (k,)")
    objective, measures = outputs
    k = tessellation.num_measures
    if objective.shape != ():
        raise ValueError(
            f"score: the objective must be one number per solution, shape (), got {objective.shape}; "
            "score is given a single solution, batches are made by dqd"
        )
    if measures.shape != (k,):
        raise ValueError(
            f"score: expected measures of shape ({k},), as many as the grid has axes, got {measures.shape}"
        )
    for name, output in (("objective", objective), ("measures", measures)):
        if not jnp.issubdtype(output.dtype, jnp.floating):
            raise TypeError(
                f"score: {name} must be real numbers that can be differentiated, got {output.dtype}; "
                "if the algorithm needs no gradients, .astype(float) is enough"
            )


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


def check_search(emitter: Any, tessellation: Any, initial_sigma: Any) -> None:
    """The emitter, the grid and the initial spread are what they should be."""
    check_emitter("emitter", emitter)
    if not isinstance(tessellation, Grid):
        raise TypeError(f"tessellation: expected a dqd.Grid, got {type(tessellation).__name__}")
    if not isinstance(initial_sigma, Real) or not 0 <= float(initial_sigma) < math.inf:
        raise ValueError(f"initial_sigma: expected a finite number, at least 0, got {initial_sigma!r}")
