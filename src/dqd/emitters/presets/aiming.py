"""Algorithms that compute where to go, and what a search uses unless told otherwise."""

from __future__ import annotations

from dqd.archives.competition import CellsLike
from dqd.archives.threshold import Threshold
from dqd.emitters.combine import Combined
from dqd.emitters.emitter import Emitter
from dqd.emitters.presets.checks import batch
from dqd.emitters.presets.evolving import cma_mega
from dqd.emitters.share import Shared
from dqd.emitters.targeting import Targeting
from dqd.tessellations.tessellation import Neighbourhood


def targeting(*, batch_size: int = 36) -> Targeting:
    """Targeting: from one point, the branches that its jacobian says arrive: each in a cell of its own.

        branch_i = theta + J^T (J J^T)^-1 (t_i - m(theta)) + a_i (grad f in the null space of J)

    Open cells within reach come first as targets t, then elites that can be beaten. How far to reach and how far to
    climb is learnt: there is no step size to choose. Needs measures that vary smoothly over a cell or more, and a
    tessellation that knows which cells lie near a point, such as `dqd.Grid` or `dqd.CVT`.

    Args:
        batch_size: evaluations per iteration: theta and `batch_size - 1` branches.

    Costs O(batch_size k n) and one jacobian, whatever the number of cells: docs/targeting.md has the derivation.

    >>> emitter = dqd.targeting()
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (1, 35)
    """
    return Targeting(branches=batch(batch_size, 2) - 1)


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
    batch_size = batch(batch_size, 3)
    both = Combined((targeting(batch_size=batch_size), cma_mega(batch_size=batch_size)))
    return Shared(both, ("targeting", "CMA-MEGA"))


def usual(cells: CellsLike, threshold: Threshold | None) -> Emitter:
    """What a search uses unless told otherwise: auto. CMA-MEGA, its sigma chosen, where there is nothing to aim at.

    That is in cells that do not know which others lie beside them, and in archives without any; and with an acceptance
    threshold, for what lies above it is not what targeting predicts.
    """
    return auto() if isinstance(cells, Neighbourhood) and threshold is None else cma_mega()
