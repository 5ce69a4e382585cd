"""Algorithms that a model of their own rewards, where an archive of many measures could not tell candidates apart."""

from __future__ import annotations

import math
from typing import Any

import optax

from dqd.emitters.arborescence import Arborescence
from dqd.emitters.evolution import Evolution
from dqd.emitters.presets.checks import check_positive, check_restart, check_selection, population, share
from dqd.emitters.presets.evolving import RankOne, StrategyName, arborescence, copies, strategy_of
from dqd.emitters.restarts import Restart
from dqd.emitters.rewards import Density, Discount, Rewarded
from dqd.emitters.selection import Selection


def dds(
    sigma: float | None = None,
    bandwidth: float = 0.05,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    buffer: int = 10_000,
    selection: Selection = "mu",
    restart: Restart = "basic",
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
) -> Rewarded:
    """Density descent search (Lee et al. 2024): CMA-ES that goes where few solutions have been.

        x_i = mean + step C^(1/2) N(0, I),   ranked by p(m(x_i)), lowest first
        p(m) ~ sum_j exp(-|m - b_j|^2 / (2 bandwidth^2)),   b_j a sample of all measures so far

    Objectives count for nothing but which solution of a cell is kept. Parents are the better half; an emitter starts
    anew from a random elite only when its strategy has converged.

    Args:
        sigma: standard deviation at the start and after every restart, in the units of a solution. None chooses it by
            the cells of the grid.
        bandwidth: of the kernels, as a share of the range of a measure.
        batch_size: evaluations per iteration, shared equally by the emitters.
        emitters: copies side by side, each with a distribution of its own.
        buffer: how many measures are remembered: a uniform sample of all.
        selection, restart, strategy, rank_one: as `cma_me` has them.

    Needs no gradients. Costs O(batch_size buffer k), and what `cma_me` costs for every emitter.

    >>> dqd.dds(sigma=0.5, batch_size=72, emitters=2).batch_size
    72
    """
    one = _sampling(sigma, share(batch_size, emitters, 2), selection, restart, strategy, rank_one)
    return Rewarded(copies(one, emitters), _density(bandwidth, buffer))


def dds_mega(
    sigma: float | None = None,
    bandwidth: float = 0.05,
    learning_rate: float | optax.Schedule | None = 1.0,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    buffer: int = 10_000,
    selection: Selection = "mu",
    restart: Restart = "basic",
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
) -> Rewarded:
    """Density descent with gradients: `dds` whose solutions are the branches of `cma_mega`.

        branch_i = theta + c_i0 grad f(theta) + sum_j c_ij grad m_j(theta),   ranked by p(m(branch_i)), lowest first

    A search in 1 + k directions in place of n. Theta starts anew only when CMA-ES has converged.

    >>> emitter = dqd.dds_mega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (15, 525)
    """
    one = _branching(sigma, learning_rate, share(batch_size, emitters, 3), selection, restart, strategy, rank_one)
    return Rewarded(copies(one, emitters), _density(bandwidth, buffer))


def dms(
    sigma: float | None = None,
    annealing: float = 0.1,
    minimum: float = 0.0,
    maximum: float = 100.0,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    selection: Selection = "mu",
    restart: Restart = 100,
    empty: int = 100,
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
) -> Rewarded:
    """Discount model search (Tjanaka et al. 2026): `cma_mae` whose thresholds are a network's, for many measures.

        x_i = mean + step C^(1/2) N(0, I),   ranked by f(x_i) - d(m(x_i))
        d(m_i) <- d(m_i) + annealing max(f(x_i) - d(m_i), 0),   d(m) <- minimum in the middles of some empty cells

    The network d, two layers of 128, is fitted to these targets after every batch. It tells candidates of one cell
    apart, which thresholds of cells cannot. Parents are the better half.

    Args:
        sigma: standard deviation at the start and after every restart, in the units of a solution. None chooses it by
            the cells of the grid.
        annealing: how fast thresholds rise, from 0 to 1.
        minimum, maximum: objectives, the lowest worth keeping, where thresholds begin, and about the highest: between
            them the network works.
        batch_size: evaluations per iteration, shared equally by the emitters.
        emitters: copies side by side, each with a distribution of its own.
        selection, restart: as `cma_me` has them; an emitter starts anew after 100 iterations at latest.
        empty: how many empty cells hold the network down, at every fit.
        strategy, rank_one: how a distribution learns, as `cma_me` has it.

    Needs no gradients, and a tessellation that knows the middles of its cells, such as `dqd.Grid` and `dqd.CVT`. Costs
    some 20 steps of Adam on 32 points, and what `cma_me` costs for every emitter.

    >>> dqd.dms(sigma=0.5, batch_size=72, emitters=2).batch_size
    72
    """
    one = _sampling(sigma, share(batch_size, emitters, 2), selection, restart, strategy, rank_one)
    return Rewarded(copies(one, emitters), _discount(annealing, minimum, maximum, empty))


def dms_mega(
    sigma: float | None = None,
    annealing: float = 0.1,
    minimum: float = 0.0,
    maximum: float = 100.0,
    learning_rate: float | optax.Schedule | None = 1.0,
    *,
    batch_size: int = 540,
    emitters: int = 15,
    selection: Selection = "mu",
    restart: Restart = 100,
    empty: int = 100,
    strategy: StrategyName = "cma-es",
    rank_one: RankOne = "textbook",
) -> Rewarded:
    """Discount model search with gradients: `dms` whose solutions are the branches of `cma_mega`.

        branch_i = theta + c_i0 grad f(theta) + sum_j c_ij grad m_j(theta),   ranked by f(branch_i) - d(m(branch_i))

    >>> emitter = dqd.dms_mega(sigma=1.0)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (15, 525)
    """
    one = _branching(sigma, learning_rate, share(batch_size, emitters, 3), selection, restart, strategy, rank_one)
    return Rewarded(copies(one, emitters), _discount(annealing, minimum, maximum, empty))


def _sampling(
    sigma: float | None,
    batch_size: int,
    selection: Selection,
    restart: Restart,
    strategy: StrategyName,
    rank_one: RankOne,
) -> Evolution:
    learning = strategy_of(strategy, sigma, batch_size, rank_one)
    return Evolution(learning, selection=check_selection(selection), restart=check_restart(restart))


def _branching(
    sigma: float | None,
    learning_rate: float | optax.Schedule | None,
    batch_size: int,
    selection: Selection,
    restart: Restart,
    strategy: StrategyName,
    rank_one: RankOne,
) -> Arborescence:
    rules: Any = {"selection": selection, "restart": restart, "strategy": strategy, "rank_one": rank_one}
    return arborescence(
        sigma, learning_rate, None, batch_size=batch_size, normalize=True, keep_step_count=True, **rules
    )


def _density(bandwidth: float, buffer: int) -> Density:
    check_positive(bandwidth=bandwidth, buffer=buffer)
    return Density(float(bandwidth), int(buffer))


def _discount(annealing: float, minimum: float, maximum: float, empty: int) -> Discount:
    if not 0.0 <= annealing <= 1.0:
        raise ValueError(f"annealing: expected a number in [0, 1], got {annealing}")
    if not (math.isfinite(minimum) and math.isfinite(maximum) and minimum < maximum):
        raise ValueError(f"minimum: expected finite objectives, minimum below maximum, got {minimum} and {maximum}")
    return Discount(float(annealing), float(minimum), float(maximum), population(empty))
