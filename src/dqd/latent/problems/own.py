"""A map of a generator of one's own, written in JAX or in PyTorch.

    problem = own.problem(generator, [scorer], "smile", {"age": (0, 80), "light": (-1, 1)})
    result = dqd.illuminate(problem, dqd.cma_mega_adam(), iterations=500)

`lsi-own` is the same from the command line: `--generator module:function` names a function that returns such a problem.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from dqd.domains.problem import Problem
from dqd.inputs.names import imported
from dqd.latent.domain import Generator, LatentDomain, Scorer, by_device
from dqd.latent.spaces import Identity, Space, Sphere
from dqd.latent.torch_models import check_part
from dqd.latent.witness import Judge, held_out
from dqd.tessellations.grid import Grid


def problem(
    generator: Generator | Any,
    scorers: Sequence[Scorer | Any],
    objective: str,
    measures: Mapping[str, tuple[float, float]],
    *,
    space: Space | None = None,
    resolution: int = 50,
    judges: Sequence[Judge] = (),
    title: str | None = None,
    images: int | None = None,
    **options: Any,
) -> Problem[LatentDomain]:
    """All that a search of a generator needs.

    Args:
        generator: latents -> images: a pytree of JAX, or a `TorchGenerator`.
        scorers: images -> scores by name: pytrees of JAX, or `TorchScorer`s.
        objective: the score to maximise; a minus in front of it minimises.
        measures: the scores to spread over, and their ranges.
        space: what is searched; by default the sphere on which nearly all of N(0, I) lies, for a generator that was
            trained on such latents.
        resolution: cells along each measure.
        judges: held-out ones.
        title: of pictures.
        images: how many go through the networks at once; default 8 on a CPU, 36 on a GPU.
        options: others of `LatentDomain`: stored, hold, norm_penalty, cutouts, fresh.

    >>> from dqd.latent.problems import digits
    >>> parts = digits.build().domain
    >>> made = problem(parts.generator, parts.scorers, "digit-7", {"ink": (0, 45), "slant": (-1, 1)}, resolution=20)
    >>> made.grid.shape, made.x0.shape, made.title
    ((20, 20), (16,), 'digit-7 by ink and slant')
    """
    check_part("generator", generator)
    place = _sphere(generator.latent_shape) if space is None else space
    most = by_device(cpu=8, gpu=36) if images is None else images
    domain = LatentDomain(place, generator, tuple(scorers), objective, tuple(measures), images=most, **options)
    made = Problem(
        domain,
        Grid(*_ends(measures), (resolution,) * len(measures)),
        x0=jnp.ones(place.n) if isinstance(place, Sphere) else jnp.zeros(place.n),
        title=title or f"{objective} by {' and '.join(measures)}",
        labels=(objective, *measures),
        bounds=place.bounds,
    )
    return held_out(made, *judges)


def _ends(ranges: Mapping[str, tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """All lower and all upper ends."""
    for name, (lower, upper) in ranges.items():
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise ValueError(f"measures: {name}: expected a range such as (0, 80), got {lower} and {upper}")
    return tuple(low for low, _ in ranges.values()), tuple(high for _, high in ranges.values())


def _sphere(shape: tuple[int, ...]) -> Sphere:
    return Sphere(Identity(math.prod(shape), shape=shape if len(shape) > 1 else None))


def build(*, generator: str | None = None, **options: Any) -> Problem[LatentDomain]:
    """The problem that a function of yours returns, given as "module:function"; it is given the options it takes.

    Args:
        generator: such as "faces:build", found as Python finds modules from the folder one is in. It is run.
        options: those of the command line that were given: objective, measures, space, resolution, judges, weights.
    """
    if generator is None:
        raise ValueError("generator: lsi-own needs a function that makes the problem: --generator module:function")
    function = imported("generator", generator)
    takes = inspect.signature(function).parameters
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    for name in options:
        if name not in takes and not every:
            known = ", ".join(takes) or "nothing"
            raise ValueError(f"{name}: {generator} takes {known}, so it cannot be chosen from outside")
    made = function(**options)
    if not isinstance(made, Problem):
        raise TypeError(
            f"generator: expected {generator} to return a dqd.Problem, as dqd.latent.problem(...) makes it, "
            f"got {type(made).__name__}"
        )
    return made
