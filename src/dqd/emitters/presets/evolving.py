"""Algorithms in which an evolution strategy learns: of solutions, or of what combination of gradients pays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import optax

from dqd.archives.threshold import Threshold
from dqd.emitters.arborescence import Arborescence
from dqd.emitters.combine import Replicated, replicate
from dqd.emitters.emitter import Emitter
from dqd.emitters.evolution import Evolution
from dqd.emitters.presets.checks import check_restart, check_selection, positive_or_chosen, share
from dqd.emitters.restarts import Restart
from dqd.emitters.selection import Selection
from dqd.inputs.names import known
from dqd.strategies import CMAES, LMMAES, XNES, OpenAIES, SepCMAES, Strategy
from dqd.types import replace

RankOne = Literal["textbook", "dqd2021"]
StrategyName = Literal["cma-es", "sep-cma-es", "lm-ma-es", "xnes", "openai-es"]
STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "cma-es": CMAES,
    "sep-cma-es": SepCMAES,
    "lm-ma-es": LMMAES,
    "xnes": XNES,
    "openai-es": OpenAIES,
}
Optimizer = Callable[..., optax.GradientTransformation] | Literal["sgd", "adam"]
OPTIMIZERS = {"sgd": optax.sgd, "adam": optax.adam}
ADAM_LEARNING_RATE = 0.002  # the paper's, for all its domains
E = TypeVar("E", bound=Emitter)


def cma_me(
    sigma: float | None = None,
    *,
    batch_size: int = 36,
    emitters: int = 1,
    selection: Selection = "filter",
    restart: Restart = "no_improvement",
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
) -> Evolution | Replicated:
    """CMA-ME (Fontaine et al. 2020): CMA-ES in solution space that is rewarded for changing the archive.

        x_i = mean + step C^(1/2) N(0, I),  i = 1 .. lambda

    Samples are ranked: new cells first, then improvements, then the rest, each by the objective gained. Parents are the
    samples that changed the archive. When none did, it starts anew from a random elite. Both may be chosen otherwise.

    Args:
        sigma: standard deviation at the start and after every restart, in the units of a solution. None chooses it by
            the cells of the grid.
        batch_size: evaluations per iteration, shared equally by the emitters: lambda is `batch_size / emitters`.
        emitters: copies side by side, each with a distribution of its own.
        selection: which samples are parents. "filter" are those that changed the archive; "mu" is the better half.
        restart: when to start anew from a random elite, besides when CMA-ES has converged. "no_improvement": when no
            sample changed the archive; "basic": never; a number: so many iterations after the last start at latest.
        strategy: how the distribution learns. "cma-es" (Hansen 2016) keeps all n x n covariances; "sep-cma-es" (Ros &
            Hansen 2008) a diagonal; "lm-ma-es" (Loshchilov et al. 2017) 4 + 3 ln(n) directions; "openai-es" (Salimans
            et al. 2017) moves the mean alone. These three take O(n) in memory and time, for n of 10^5 and more. "xnes"
            (Glasmachers et al. 2010) keeps n x n numbers, and no paths: for noisy functions of few numbers.
        rank_one: of "cma-es": "textbook" is CMA-ES as published; "dqd2021" repeats the code behind the paper's tables.

    Needs no gradients. "cma-es" keeps 12 n^2 bytes in float32: the covariances, their root and its inverse, which are
    O(n^3) work every n / 37 iterations with 36 samples.

    >>> dqd.cma_me(sigma=0.5, batch_size=12).strategy.population
    12
    >>> dqd.cma_me(sigma=0.5, strategy="lm-ma-es").strategy
    LMMAES(sigma=0.5, population=36)
    """
    learning = strategy_of(strategy, sigma, share(batch_size, emitters, 2), rank_one)
    return copies(Evolution(learning, selection=check_selection(selection), restart=check_restart(restart)), emitters)


def cma_mae(
    sigma: float | None = None,
    annealing: float = 0.01,
    minimum: float = 0.0,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    selection: Selection = "mu",
    restart: Restart = "basic",
    strategy: StrategyName = "cma-es",
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
        selection, restart, strategy: as `cma_me` has them.
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
    learning = strategy_of(strategy, sigma, share(batch_size, emitters, 2), rank_one)
    rules = (check_selection(selection), check_restart(restart))
    return copies(Evolution(learning, Threshold(annealing, minimum), *rules), emitters)


def cma_mega(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = 1.0,
    optimizer: Optimizer | None = None,
    *,
    batch_size: int = 36,
    emitters: int = 1,
    normalize: bool = True,
    selection: Selection = "mu",
    restart: Restart = "no_improvement",
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
    **arguments: Any,
) -> Arborescence | Replicated:
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
        optimizer: an optax factory that takes `learning_rate`; or "sgd", plain gradient ascent, the default; or "adam".
        batch_size: evaluations per iteration, shared equally by the emitters: theta and branches of each.
        emitters: copies side by side, each with a theta of its own.
        normalize: divide every gradient by its length.
        selection: which branches are parents. "mu" is the better half; "filter" are those that changed the archive.
        restart, strategy: when theta starts anew, and how coefficients are learnt, as `cma_me` has them.
        rank_one: "textbook" is CMA-ES as published; "dqd2021" repeats the code behind the paper's tables.
        keep_step_count: leave the optimiser's step counter running across restarts, as the authors' Adam does.
        arguments: all others go to the optimiser, such as `b1` below.

    Costs O(batch_size k n) and one jacobian.

    >>> import optax
    >>> emitter = dqd.cma_mega(0.1, 0.01, optax.adam, b1=0.8)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (1, 35)
    """
    each = share(batch_size, emitters, 3)
    rules: dict[str, Any] = {"selection": selection, "restart": restart, "strategy": strategy, "rank_one": rank_one}
    settings: dict[str, Any] = {"batch_size": each, "normalize": normalize, "keep_step_count": keep_step_count}
    return copies(arborescence(sigma, learning_rate, optimizer, **settings, **rules, **arguments), emitters)


def cma_mega_adam(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = None,
    *,
    batch_size: int = 36,
    emitters: int = 1,
    normalize: bool = True,
    selection: Selection = "mu",
    restart: Restart = "no_improvement",
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
    keep_step_count: bool = True,
) -> Arborescence | Replicated:
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
        "adam",
        batch_size=batch_size,
        emitters=emitters,
        normalize=normalize,
        selection=selection,
        restart=restart,
        strategy=strategy,
        rank_one=rank_one,
        keep_step_count=keep_step_count,
    )


def cma_maega(
    sigma: float | None = None,
    learning_rate: float | optax.Schedule | None = 1.0,
    optimizer: Optimizer | None = None,
    *,
    annealing: float = 0.01,
    minimum: float = 0.0,
    batch_size: int = 540,
    emitters: int = 15,
    normalize: bool = True,
    selection: Selection = "mu",
    restart: Restart = "basic",
    strategy: StrategyName = "cma-es",
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
        sigma, learning_rate, optimizer, normalize, selection, restart, strategy, rank_one, keep_step_count, arguments:
            as in `cma_mega`.

    >>> emitter = dqd.cma_maega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size, emitter.threshold  # with gradients, without, what counts as progress
    (15, 525, Threshold(learning_rate=0.01, minimum=0.0))
    """
    one = arborescence(
        *(sigma, learning_rate, optimizer),
        batch_size=share(batch_size, emitters, 3),
        normalize=normalize,
        selection=selection,
        restart=restart,
        strategy=strategy,
        rank_one=rank_one,
        keep_step_count=keep_step_count,
        **arguments,
    )
    return copies(replace(one, threshold=Threshold(annealing, minimum)), emitters)


def arborescence(
    sigma: float | None,
    learning_rate: float | optax.Schedule | None,
    optimizer: Optimizer | None,
    *,
    batch_size: int,
    normalize: bool,
    selection: Selection,
    restart: Restart,
    strategy: StrategyName,
    rank_one: RankOne,
    keep_step_count: bool,
    **arguments: Any,
) -> Arborescence:
    """A single one, with what `cma_mega` was given."""
    if not callable(learning_rate):
        learning_rate = positive_or_chosen(learning_rate=learning_rate)
    if isinstance(optimizer, str):
        optimizer = known("optimizer", optimizer, OPTIMIZERS)
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
        strategy_of(strategy, sigma, batch_size - 1, rank_one),
        numbers,
        functools.partial(optimizer, **choices) if choices else optimizer,
        keep_step_count=bool(keep_step_count),
        normalize=bool(normalize),
        selection=check_selection(selection),
        restart=check_restart(restart),
    )


def strategy_of(name: StrategyName, sigma: float | None, population: int, rank_one: RankOne) -> Strategy:
    kind = known("strategy", name, STRATEGIES)
    if kind is CMAES:
        return CMAES(positive_or_chosen(sigma=sigma), population, rank_one)
    if rank_one != "textbook":
        raise ValueError(f"rank_one: {rank_one!r} is a variant of 'cma-es', got strategy={name!r}")
    return kind(positive_or_chosen(sigma=sigma), population)


def copies(emitter: E, count: int) -> E | Replicated:
    return emitter if count == 1 else replicate(emitter, count)
