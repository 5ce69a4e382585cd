"""The paper's algorithms as plain functions. `batch_size` is always the number of evaluations per iteration.

In the formulas e is an elite drawn uniformly from the archive, n the size of a solution, k the number of measures, f
the objective, m_j measure j, and lambda the samples of a generation. Costs are per iteration, beyond the evaluations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, get_args

import optax

from dqd.archives.threshold import Threshold
from dqd.emitters.arborescence import Arborescence
from dqd.emitters.combine import Combined, Replicated, replicate
from dqd.emitters.emitter import Emitter
from dqd.emitters.evolution import Evolution, Parents
from dqd.emitters.gradient_operator import Branching, GradientOperator, ObjectiveStep
from dqd.emitters.operators import Elite, Fresh, Gaussian, IsoLine, Operator
from dqd.emitters.share import Shared
from dqd.emitters.targeting import Targeting
from dqd.emitters.variation import Variation
from dqd.strategies.cma_es import CMAES
from dqd.strategies.sep_cma_es import SepCMAES
from dqd.strategies.strategy import Strategy
from dqd.types import replace

RankOne = Literal["textbook", "dqd2021"]
ADAM_LEARNING_RATE = 0.002  # the paper's, for all its domains


def random_sampling(sigma: float = 1.0, *, batch_size: int = 36) -> Variation:
    """Baseline: random solutions around the start, without looking at the archive.

        x = x0 + sigma N(0, I)

    Args:
        sigma: standard deviation, in the units of a solution.
        batch_size: evaluations per iteration.

    Costs O(batch_size n).

    >>> dqd.random_sampling(sigma=2.0).batch_size
    36
    """
    _check(sigma=sigma)
    return Variation(Fresh(float(sigma)), _batch(batch_size), initial_population=0)


def map_elites(sigma: float | None = None, *, batch_size: int = 36, initial_population: int = 100) -> Variation:
    """MAP-Elites (Mouret & Clune 2015): elites with noise.

        x = e + sigma N(0, I)

    Args:
        sigma: standard deviation of the noise, in the units of a solution. In n dimensions a solution moves by about
            sigma sqrt(n). None chooses it by the cells of the grid.
        batch_size: evaluations per iteration.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Needs no gradients. Costs O(batch_size n).

    >>> emitter = dqd.map_elites(sigma=0.1)
    >>> emitter.num_points, emitter.batch_size, emitter.initial_population
    (0, 36, 100)
    """
    return Variation(Gaussian(_sigma(sigma=sigma)), _batch(batch_size), _population(initial_population))


def map_elites_line(
    sigma1: float | None = None, sigma2: float = 0.2, *, batch_size: int = 36, initial_population: int = 100
) -> Variation:
    """MAP-Elites (line) (Vassiliades & Mouret 2018): noise, and a step along the line through two elites.

        x = e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i)

    Elites often lie near a surface of few dimensions; the line through two of them stays close to it.

    Args:
        sigma1: standard deviation of the noise, in the units of a solution. None chooses it by the cells of the grid.
        sigma2: standard deviation of the step, as a share of the distance between both elites.
        batch_size: evaluations per iteration.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Needs no gradients. Costs O(batch_size n).

    >>> dqd.map_elites_line(sigma1=0.1, sigma2=0.2).batch_size
    36
    """
    _check(sigma2=sigma2)
    return Variation(IsoLine(_sigma(sigma1=sigma1), float(sigma2)), _batch(batch_size), _population(initial_population))


def cma_me(
    sigma: float | None = None,
    *,
    batch_size: int = 36,
    emitters: int = 1,
    parents: Parents = "changed",
    patient: bool = False,
    separable: bool = False,
    rank_one: RankOne = "textbook",
) -> Evolution | Replicated:
    """CMA-ME (Fontaine et al. 2020): CMA-ES in solution space that is rewarded for changing the archive.

        x_i = mean + step C^(1/2) N(0, I),  i = 1 .. lambda

    Samples are ranked: new cells first, then improvements, then the rest, each by the objective gained. Parents are the
    samples that changed the archive. When none did, it starts anew from a random elite.

    Args:
        sigma: standard deviation at the start and after every restart, in the units of a solution. None chooses it by
            the cells of the grid.
        batch_size: evaluations per iteration, shared equally by the emitters: lambda is `batch_size / emitters`.
        emitters: copies side by side, each with a distribution of its own.
        parents: "changed" are the samples that changed the archive; "half" is the better half.
        patient: go on when no sample changed the archive, until CMA-ES itself has converged.
        separable: sep-CMA-ES (Ros & Hansen 2008), which keeps a diagonal: O(batch_size n) in memory and time.
        rank_one: "textbook" is CMA-ES as published; "dqd2021" repeats the code behind the paper's tables.

    Needs no gradients. Keeps an n x n covariance: 8 n^2 bytes in float32, and O(n^3) work whenever it is decomposed,
    every n / 37 iterations with 36 samples; for n in the thousands take `separable=True`, or algorithms with gradients.

    >>> dqd.cma_me(sigma=0.5, batch_size=12).strategy.population
    12
    """
    if parents not in get_args(Parents):
        raise ValueError(f"parents: expected 'changed' or 'half', got {parents!r}")
    strategy = _strategy(sigma, _share(batch_size, emitters, 2), separable, rank_one)
    return _copies(Evolution(strategy, parents=parents, patient=bool(patient)), emitters)


def cma_mae(
    sigma: float | None = None,
    annealing: float = 0.01,
    minimum: float = 0.0,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    separable: bool = False,
    rank_one: RankOne = "textbook",
) -> Evolution | Replicated:
    """CMA-MAE (Fontaine & Nikolaidis 2023): CMA-ES that is rewarded for what it gains above a slowly rising threshold.

        x_i = mean + step C^(1/2) N(0, I),  i = 1 .. lambda,   ranked by f(x_i) - t of its cell
        t  <- t + annealing (f(x_i) - t),                      where f(x_i) > t

    Each cell has a threshold t that begins at `minimum`. With `annealing` 1 a region is left as soon as its cells are
    filled; at 0 only the objective counts. In between a search stays while a region still has something to gain, which
    helps most where the objective is flat. Parents are the better half; an emitter starts anew from a random elite only
    when CMA-ES has converged. What is *stored* is the best of each cell.

    Args:
        sigma: standard deviation at the start and after every restart, in the units of a solution. None chooses it by
            the cells of the grid.
        annealing: the learning rate of the thresholds, from 0 to 1. `dqd.Threshold.for_cells` adjusts it for archives
            of other than 10,000 cells.
        minimum: an objective, the lowest worth keeping: where thresholds begin.
        batch_size: evaluations per iteration, shared equally by the emitters.
        emitters: copies side by side, each with a distribution of its own.
        separable: sep-CMA-ES, as `cma_me` has it.
        rank_one: "textbook" is CMA-ES as published; "dqd2021" repeats the code behind the paper's tables.

    Needs no gradients. The thresholds are the archive's: `illuminate` and `AskTell` take them from the emitter. Costs
    what `cma_me` costs, for every emitter.

    >>> import jax.numpy as jnp
    >>> def score(x):
    ...     return 10 - jnp.sum(x**2), x[:2]
    >>> grid, emitter = dqd.Grid([-2, -2], [2, 2], [20, 20]), dqd.cma_mae(sigma=0.5, batch_size=60, emitters=5)
    >>> result = dqd.illuminate(score, emitter, grid, x0=jnp.zeros(4), iterations=100, progress=False)
    >>> bool(result.coverage > 50)
    True
    """
    strategy = _strategy(sigma, _share(batch_size, emitters, 2), separable, rank_one)
    return _copies(Evolution(strategy, Threshold(annealing, minimum), parents="half", patient=True), emitters)


def og_map_elites(
    sigma: float,
    step: float,
    *,
    batch_size: int = 36,
    independent: bool = False,
    stepped: int | None = None,
    initial_population: int = 100,
) -> Emitter:
    """OG-MAP-Elites: perturb an elite, evaluate it, then step up its objective.

        theta = e + sigma N(0, I),  x = theta + step grad f(theta)

    The gradient is used as it is, not normalised; both theta and x enter the archive.

    Args:
        sigma: standard deviation of the noise, in the units of a solution.
        step: how far to go along the gradient, in (units of a solution)^2 per unit of the objective.
        batch_size: evaluations per iteration, points with gradients included.
        independent: the paper's dagger variant: one emitter steps from unperturbed elites, another one perturbs.
        stepped: gradient steps per iteration: half of the batch, or a third of it if independent. The paper describes
            12 re-evaluated + 12 stepped + 12 perturbed; the released code makes 24 perturbations
            (`batch_size=48, stepped=12`).
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Costs O(batch_size n), and the jacobians of `stepped` points.

    >>> emitter = dqd.og_map_elites(sigma=0.1, step=0.5)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (18, 18)
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
    """OG-MAP-Elites (line): as `og_map_elites`, perturbed by the line operator of `map_elites_line`.

        theta = e_i + sigma1 N(0, I) + sigma2 N(0, 1) (e_j - e_i),  x = theta + step grad f(theta)

    >>> dqd.og_map_elites_line(sigma1=0.1, sigma2=0.2, step=0.5, independent=True).num_points
    12
    """
    _check(sigma1=sigma1, sigma2=sigma2, step=step)
    return _objective_gradient(
        IsoLine(float(sigma1), float(sigma2)), step, batch_size, independent, stepped, initial_population
    )


def omg_mega(
    sigma: float | None = None, normalize: bool = True, *, batch_size: int = 36, initial_population: int = 100
) -> GradientOperator:
    """OMG-MEGA: elites moved by random combinations of all their gradients.

        x = e + |c_0| grad f(e) + sum_j c_j grad m_j(e),  c ~ N(0, sigma^2 I)

    Never down the objective, and any way along the measures. Half of the batch evaluates elites for their gradients.

    Args:
        sigma: standard deviation of the coefficients. With normalised gradients it is a distance in the units of a
            solution: a branch moves by about sigma sqrt(1 + k). None chooses it by the cells of the grid.
        normalize: divide every gradient by its length, so that sigma means the same for all of them.
        batch_size: evaluations per iteration, an even number.
        initial_population: solutions x0 + initial_sigma N(0, I), evaluated before iteration 1.

    Costs O(batch_size k n), and the jacobians of `batch_size` / 2 points.

    >>> emitter = dqd.omg_mega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (18, 18)
    """
    return GradientOperator(
        Elite(),
        Branching(_sigma(sigma=sigma), bool(normalize)),
        _batch(batch_size, 2, even=True) // 2,
        _population(initial_population),
    )


def cma_mega(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = 1.0,
    optimizer: Callable[..., optax.GradientTransformation] | None = None,
    *,
    batch_size: int = 36,
    normalize: bool = True,
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
    **arguments: Any,
) -> Arborescence:
    """CMA-MEGA: from one point, branches along all its gradients; CMA-ES learns which combinations pay.

        branch_i = theta + c_i0 grad f(theta) + sum_j c_ij grad m_j(theta),  c_i from CMA-ES in 1 + k dimensions
        theta   <- theta + learning_rate sum_i w_i (branch_i - theta),       w_i the weights of the better half

    Branches are ranked by what they did to the archive: new cells first, then improvements, then the rest, each by the
    objective gained. When none changed the archive, theta starts anew from a random elite, and CMA-ES from scratch.

    Args:
        sigma: standard deviation of the coefficients c at the start and after every restart. With normalised gradients
            it is a distance in the units of a solution; good values let a branch cross some cells. None chooses such a
            value: from x0 and a few points near it, branches are tried.
        learning_rate: of the optimiser: a number, or an optax schedule. None, for one such as Adam whose steps are as
            long whatever the gradient, chooses the number by which they cross some cells.
        optimizer: an optax factory that takes `learning_rate`; default plain gradient ascent.
        batch_size: evaluations per iteration: theta and `batch_size - 1` branches.
        normalize: divide every gradient by its length.
        rank_one: "textbook" is CMA-ES as published; "dqd2021" repeats the code behind the paper's tables.
        keep_step_count: leave the optimiser's step counter running across restarts, as the authors' Adam does.
        arguments: all others go to the optimiser, such as `b1` below.

    Costs O(batch_size k n) and one jacobian.

    >>> import optax
    >>> emitter = dqd.cma_mega(0.1, 0.01, optax.adam, b1=0.8)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (1, 35)
    """
    if not callable(learning_rate):
        learning_rate = _sigma(learning_rate=learning_rate)
    if optimizer is not None and not callable(optimizer):
        raise TypeError(
            f"optimizer: expected a factory such as optax.adam, got {type(optimizer).__name__}; "
            "pass the function itself, and its settings as keyword arguments of cma_mega"
        )
    arguments = {"learning_rate": learning_rate, **arguments}
    optimizer = optimizer or optax.sgd
    try:
        optimizer(**arguments | ({"learning_rate": 1.0} if learning_rate is None else {}))
    except TypeError as error:
        raise TypeError(
            f"optimizer: {getattr(optimizer, '__name__', optimizer)} refused {arguments}: {error}"
        ) from None
    # Numbers are traced. What else there is (a schedule, a flag, a type) decides the program.
    numbers = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, float) or (name == "learning_rate" and value is None)
    }
    choices = {name: value for name, value in arguments.items() if name not in numbers}
    return Arborescence(
        CMAES(_sigma(sigma=sigma), _batch(batch_size, 3) - 1, rank_one),
        numbers,
        functools.partial(optimizer, **choices) if choices else optimizer,
        keep_step_count=bool(keep_step_count),
        normalize=bool(normalize),
    )


def cma_mega_adam(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = None,
    *,
    batch_size: int = 36,
    normalize: bool = True,
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
) -> Arborescence:
    """CMA-MEGA (Adam): `cma_mega` whose theta moves by Adam.

    Adam divides by the recent size of the gradients, so `learning_rate` is about the distance, in the units of a
    solution, that every coordinate of theta moves per iteration. By default it is the paper's 0.002, or, where sigma is
    left out as well, chosen like it.

    >>> dqd.cma_mega_adam(sigma=0.05, learning_rate=0.002).batch_size
    35
    """
    if learning_rate is None and sigma is not None:
        learning_rate = ADAM_LEARNING_RATE
    return cma_mega(
        sigma,
        learning_rate,
        optax.adam,
        batch_size=batch_size,
        normalize=normalize,
        rank_one=rank_one,
        keep_step_count=keep_step_count,
    )


def cma_maega(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = 1.0,
    optimizer: Callable[..., optax.GradientTransformation] | None = None,
    *,
    annealing: float = 0.01,
    minimum: float = 0.0,
    batch_size: int = 540,
    emitters: int = 15,
    normalize: bool = True,
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
    **arguments: Any,
) -> Arborescence | Replicated:
    """CMA-MAEGA (Fontaine & Nikolaidis 2023): `cma_mega` with the thresholds of `cma_mae`.

        branch_i = theta + c_i0 grad f(theta) + sum_j c_ij grad m_j(theta),  ranked by f(branch_i) - t of its cell
        t       <- t + annealing (f(branch_i) - t),                          where f(branch_i) > t

    Theta starts anew only when CMA-ES in the space of coefficients has converged.

    Args:
        annealing, minimum: of the thresholds, as `cma_mae` has them.
        batch_size: evaluations per iteration, shared equally by the emitters: theta and branches of each.
        emitters: copies side by side, each with a theta of its own.
        sigma, learning_rate, optimizer, normalize, rank_one, keep_step_count, arguments: as `cma_mega` has them.

    >>> emitter = dqd.cma_maega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size, emitter.threshold  # with gradients, without, what counts as progress
    (15, 525, Threshold(learning_rate=0.01, minimum=0.0))
    """
    one = cma_mega(
        *(sigma, learning_rate, optimizer),
        batch_size=_share(batch_size, emitters, 3),
        normalize=normalize,
        rank_one=rank_one,
        keep_step_count=keep_step_count,
        **arguments,
    )
    return _copies(replace(one, threshold=Threshold(annealing, minimum), patient=True), emitters)


def targeting(*, batch_size: int = 36) -> Targeting:
    """Targeting: from one point, the branches that its jacobian says arrive: each in a cell of its own.

        branch_i = theta + J^T (J J^T)^-1 (t_i - m(theta)) + a_i (grad f in the null space of J)

    Open cells within reach come first as targets t, then elites that can be beaten. How far to reach and how far to
    climb is learnt: there is no step size to choose. Needs measures that vary smoothly over a cell or more, and a
    tessellation that knows which cells lie near a point, such as `dqd.Grid`.

    Args:
        batch_size: evaluations per iteration: theta and `batch_size - 1` branches.

    Costs O(batch_size k n) and one jacobian, whatever the number of cells: docs/targeting.md has the derivation.

    >>> emitter = dqd.targeting()
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (1, 35)
    """
    return Targeting(branches=_batch(batch_size, 2) - 1)


def auto(*, batch_size: int = 36) -> Shared:
    """Targeting and CMA-MEGA take turns of 5 iterations on one archive: who lately gained most goes on.

        gain_i <- (gain_i + what the elites gained per iteration of i's turn) / 2
        next    = argmax_i  gain_i + waited_i / 12 max_j |gain_j|,  waited_i in turns

    There is nothing to choose: targeting has no step size, and the sigma of CMA-MEGA is chosen by the cells of the
    grid. At the end of a run a line says which share each had.

    Args:
        batch_size: evaluations per iteration: a point with its jacobian and `batch_size - 1` branches.

    Costs what the one costs whose turn it is; of several seeds side by side, what both cost.

    >>> emitter = dqd.auto()
    >>> emitter.num_points, emitter.batch_size, emitter.names
    (1, 35, ('targeting', 'CMA-MEGA'))
    """
    batch_size = _batch(batch_size, 3)
    both = Combined((targeting(batch_size=batch_size), cma_mega(batch_size=batch_size)))
    return Shared(both, ("targeting", "CMA-MEGA"))


def usual() -> Emitter:
    """What a search uses unless told otherwise: CMA-MEGA, its sigma chosen."""
    return cma_mega()


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


def _sigma(**number: float | None) -> Any:
    """A number above 0, or None where it is to be chosen."""
    ((name, value),) = number.items()
    if value is None:
        return None
    _check(**{name: value})
    return float(value)


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
            raise TypeError(f"{name}: expected a finite number, got {number!r}")
        if number <= 0:
            raise ValueError(f"{name}: expected a number above 0, got {number}")


def _strategy(sigma: float | None, population: int, separable: bool, rank_one: RankOne) -> Strategy:
    if not separable:
        return CMAES(_sigma(sigma=sigma), population, rank_one)
    if rank_one != "textbook":
        raise ValueError(f"rank_one: sep-CMA-ES knows 'textbook' alone, got {rank_one!r}")
    return SepCMAES(_sigma(sigma=sigma), population)


E = TypeVar("E", bound=Emitter)


def _copies(emitter: E, count: int) -> E | Replicated:
    return emitter if count == 1 else replicate(emitter, count)


def _share(batch_size: int, emitters: int, least: int) -> int:
    """Evaluations per iteration of each emitter."""
    if isinstance(emitters, bool) or not isinstance(emitters, Integral) or emitters < 1:
        raise ValueError(f"emitters: expected a whole number, at least 1, got {emitters!r}")
    if _batch(batch_size, least * int(emitters)) % emitters:
        raise ValueError(f"batch_size: expected a multiple of the {emitters} emitters that share it, got {batch_size}")
    return int(batch_size) // int(emitters)


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
