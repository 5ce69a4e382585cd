"""The paper's algorithms as plain functions. `batch_size` is always the number of evaluations per iteration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import optax

from dqd.emitters.arborescence import Arborescence
from dqd.emitters.combine import Combined
from dqd.emitters.emitter import Emitter
from dqd.emitters.evolution import Evolution
from dqd.emitters.gradient_operator import Branching, GradientOperator, ObjectiveStep
from dqd.emitters.operators import Elite, Fresh, Gaussian, IsoLine, Operator
from dqd.emitters.variation import Variation
from dqd.strategies.cma_es import CMAES

RankOne = Literal["textbook", "dqd2021"]


def random_sampling(sigma: float = 1.0, *, batch_size: int = 36) -> Variation:
    """Baseline: x0 + sigma N(0, I), without looking at the archive."""
    _check(sigma=sigma)
    return Variation(Fresh(float(sigma)), _batch(batch_size), initial_population=0)


def map_elites(sigma: float, *, batch_size: int = 36, initial_population: int = 100) -> Variation:
    """MAP-Elites (Mouret & Clune 2015): elite + sigma N(0, I)."""
    _check(sigma=sigma)
    return Variation(Gaussian(float(sigma)), _batch(batch_size), _population(initial_population))


def map_elites_line(sigma1: float, sigma2: float, *, batch_size: int = 36, initial_population: int = 100) -> Variation:
    """MAP-Elites (line) (Vassiliades & Mouret 2018): e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i)."""
    _check(sigma1=sigma1, sigma2=sigma2)
    return Variation(IsoLine(float(sigma1), float(sigma2)), _batch(batch_size), _population(initial_population))


def cma_me(sigma: float, *, batch_size: int = 36, rank_one: RankOne = "textbook") -> Evolution:
    """CMA-ME (Fontaine et al. 2020), improvement emitter, parents = the samples that changed the archive."""
    _check(sigma=sigma)
    return Evolution(CMAES(float(sigma), _batch(batch_size, 2), rank_one))


def og_map_elites(
    sigma: float,
    step: float,
    *,
    batch_size: int = 36,
    independent: bool = False,
    stepped: int | None = None,
    initial_population: int = 100,
) -> Emitter:
    """OG-MAP-Elites: perturb an elite, evaluate it, then step along its objective gradient.

    `independent=True` is the paper's dagger variant: one emitter steps from unperturbed elites, another one perturbs.
    `stepped` is how many gradient steps an iteration makes: half of the batch, or a third of it if independent. The
    paper describes 12 re-evaluated + 12 stepped + 12 perturbed; the released code makes 24 perturbations
    (`batch_size=48, stepped=12`).
    """
    _check(sigma=sigma, step=step)
    return _objective_gradient(Gaussian(float(sigma)), step, batch_size, independent, stepped, initial_population)


def og_map_elites_line(
    sigma1: float,
    sigma2: float,
    step: float,
    *,
    batch_size: int = 36,
    independent: bool = False,
    stepped: int | None = None,
    initial_population: int = 100,
) -> Emitter:
    """OG-MAP-Elites (line): as `og_map_elites`, perturbed by the line operator."""
    _check(sigma1=sigma1, sigma2=sigma2, step=step)
    return _objective_gradient(
        IsoLine(float(sigma1), float(sigma2)), step, batch_size, independent, stepped, initial_population
    )


def omg_mega(
    sigma: float, normalize: bool = True, *, batch_size: int = 36, initial_population: int = 100
) -> GradientOperator:
    """OMG-MEGA: elite + |c_0| grad f + sum_j c_j grad m_j, c ~ N(0, sigma^2 I); half the batch re-evaluates elites."""
    _check(sigma=sigma)
    return GradientOperator(
        Elite(),
        Branching(float(sigma), bool(normalize)),
        _batch(batch_size, 2, even=True) // 2,
        _population(initial_population),
    )


def cma_mega(
    sigma: float,
    learning_rate: float | optax.Schedule = 1.0,
    optimizer: Callable[..., optax.GradientTransformation] | None = None,
    *,
    batch_size: int = 36,
    normalize: bool = True,
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
    **arguments: Any,
) -> Arborescence:
    """CMA-MEGA: theta and `batch_size - 1` branches per iteration; sigma is the initial standard deviation of c.

    `optimizer` is an optax factory that takes `learning_rate`, a number or an optax schedule (default: plain gradient
    ascent); further keyword arguments are its own, such as `cma_mega(0.1, 0.01, optax.adam, b1=0.8)`.
    """
    _check(sigma=sigma)
    if not callable(learning_rate):
        _check(learning_rate=learning_rate)
        learning_rate = float(learning_rate)
    if optimizer is not None and not callable(optimizer):
        raise TypeError(
            f"optimizer: expected a factory such as optax.adam, got {type(optimizer).__name__}; "
            "pass the function itself, and its settings as keyword arguments of cma_mega"
        )
    arguments = {"learning_rate": learning_rate, **arguments}
    optimizer = optimizer or optax.sgd
    try:
        optimizer(**arguments)
    except TypeError as error:
        raise TypeError(
            f"optimizer: {getattr(optimizer, '__name__', optimizer)} refused {arguments}: {error}"
        ) from None
    # Numbers are traced. What else there is (a schedule, a flag, a type) decides the program.
    numbers = {name: value for name, value in arguments.items() if isinstance(value, float)}
    choices = {name: value for name, value in arguments.items() if name not in numbers}
    return Arborescence(
        CMAES(float(sigma), _batch(batch_size, 3) - 1, rank_one),
        numbers,
        functools.partial(optimizer, **choices) if choices else optimizer,
        keep_step_count=bool(keep_step_count),
        normalize=bool(normalize),
    )


def cma_mega_adam(
    sigma: float,
    learning_rate: float | optax.Schedule = 0.002,
    *,
    batch_size: int = 36,
    normalize: bool = True,
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
) -> Arborescence:
    """CMA-MEGA (Adam): theta moves by Adam, whose step counter survives restarts unless `keep_step_count=False`."""
    return cma_mega(
        sigma,
        learning_rate,
        optax.adam,
        batch_size=batch_size,
        normalize=normalize,
        rank_one=rank_one,
        keep_step_count=keep_step_count,
    )


def _objective_gradient(
    operator: Operator, step: float, batch_size: int, independent: bool, stepped: int | None, initial: int
) -> Emitter:
    initial = _population(initial)
    if not independent:
        half = _batch(batch_size, 2, even=True) // 2
        if stepped not in (None, half):
            raise ValueError(f"stepped: without independent=True it is half of the batch, {half}; got {stepped}")
        return GradientOperator(operator, ObjectiveStep(float(step)), half, initial)
    batch_size = _batch(batch_size, 3)
    stepped = batch_size // 3 if stepped is None else stepped
    if not isinstance(stepped, Integral) or not 1 <= stepped <= (batch_size - 1) // 2:
        raise ValueError(
            f"stepped: each step costs two evaluations, so it must lie in 1..{(batch_size - 1) // 2}, got {stepped}"
        )
    stepped = int(stepped)
    return Combined(
        (
            GradientOperator(Elite(), ObjectiveStep(float(step)), stepped, initial),
            Variation(operator, batch_size - 2 * stepped, initial),
        )
    )


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
            raise TypeError(f"{name}: expected a finite number, got {number!r}")
        if number <= 0:
            raise ValueError(f"{name}: expected a number above 0, got {number}")


def _population(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
        raise ValueError(f"initial_population: expected a whole number, at least 0, got {size!r}")
    return int(size)


def _batch(batch_size: int, least: int = 1, even: bool = False) -> int:
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < least:
        raise ValueError(f"batch_size: expected a whole number of evaluations, at least {least}, got {batch_size!r}")
    if even and batch_size % 2:
        raise ValueError(f"batch_size: half of it goes to points with gradients, so it must be even, got {batch_size}")
    return int(batch_size)
