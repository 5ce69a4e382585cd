"""Several emitters of which a rule says who is asked."""

from __future__ import annotations

from dqd.emitters.bandit import Bandit, Reselect
from dqd.emitters.combine import Combined, combine
from dqd.emitters.emitter import Emitter
from dqd.inputs.names import check_known


def bandit(*emitters: Emitter, active: int = 1, reselect: Reselect = "terminated", zeta: float = 0.05) -> Bandit:
    """A pool of emitters, some of which are asked: those whose solutions change the archive most often (Cully 2021).

        next = argmax_i  a_i / s_i + zeta sqrt(ln(sum_j s_j) / s_i)

    Of the s_i solutions of emitter i, a_i changed the archive. At the end of a run a line says which share each had.

    Args:
        emitters: two or more that take as many gradients and solutions per iteration; several of the same kind are
            as good as different ones, since each has a state of its own.
        active: how many are asked in an iteration.
        reselect: when another may take a place: "terminated", when its emitter starts anew, or at once if it never
            does; "all", in every iteration.
        zeta: how much an emitter that was seldom asked is given the benefit of the doubt.

    An iteration makes as many evaluations as `active` emitters together.

    >>> pool = dqd.bandit(dqd.cma_me(sigma=0.5), dqd.cma_me(sigma=0.05), dqd.map_elites(sigma=0.2), active=2)
    >>> pool.batch_size
    72
    """
    pool: Combined = combine(*emitters)
    sizes = [(emitter.num_points, emitter.batch_size) for emitter in emitters]
    if len(set(sizes)) != 1:
        raise ValueError(f"bandit: emitters of a pool need equal (num_points, batch_size), got {sizes}")
    if isinstance(active, bool) or not isinstance(active, int) or not 1 <= active < len(emitters):
        raise ValueError(
            f"bandit: active: expected 1 to {len(emitters) - 1} of {len(emitters)} emitters, got {active!r}"
        )
    check_known("reselect", reselect, ("terminated", "all"))
    if not zeta >= 0:
        raise ValueError(f"bandit: zeta: expected a number from 0, got {zeta!r}")
    return Bandit(pool, active, reselect, float(zeta))
