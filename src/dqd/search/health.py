"""Whether the numbers of a run make sense: one that finds nothing should not do so in silence."""

from __future__ import annotations

from collections import deque

import jax
import numpy as np

from dqd.console import saying
from dqd.domains.rows import named
from dqd.emitters.restarts import Restarts
from dqd.search.search import SearchState, Tally

CLAMPED_SHARE = 0.25  # warn when more of the measures than this lie outside the grid
INFEASIBLE_SHARE = 0.9  # warn when more of the solutions than this are infeasible
RESTART_SHARE = 0.5  # warn when more iterations than this end in a restart,
FULL = 0.1  # although less of the cells than this is occupied: an archive that is full has little left to change,
ENOUGH = 50  # and there were as many iterations
LOOKED = 16  # iterations whose gradients say what they are like: the first may all be at x0


class NonFiniteError(RuntimeError):
    """Most of the last evaluations were NaN or infinite, so the search was stopped; the message says how many."""


class Health:
    """Stops a run of which most evaluations are not finite, or none of the jacobians; tells of gradients of zero."""

    WINDOW = 1000  # evaluations

    def __init__(self, tally: Tally | None) -> None:
        """What was before is not looked at. Of a new run, nothing was: the initial population counts."""
        self.marks = deque([_figures(tally) if tally else (0, 0, 0, 0)])
        self.said = False

    def check(self, done: int, tally: Tally) -> None:
        if not self.said and (words := flat_words(tally, done)):
            self.said = True
            saying.warn(words, stacklevel=4)
        self.marks.append(_figures(tally))
        while len(self.marks) > 2 and self.marks[-1][0] - self.marks[1][0] >= self.WINDOW:
            self.marks.popleft()
        lately = tuple(now - then for then, now in zip(self.marks[0], self.marks[-1], strict=True))
        words = _complaint(*lately)
        if words and lately[0] >= self.WINDOW:
            raise NonFiniteError(f"iteration {done:,}: {words}")


def _complaint(evaluations: int, nonfinite: int, jacobians: int, lost: int) -> str:
    """What is wrong with these numbers of evaluations: nothing is an empty string."""
    if nonfinite > evaluations / 2:
        return (
            f"{nonfinite:,} of the last {evaluations:,} evaluations were NaN or infinite. "
            "Check score(x0) and, with dqd.check_jacobian, its gradient; a smaller sigma keeps samples nearer to x0"
        )
    if 0 < jacobians == lost:
        return (
            f"none of the last {jacobians:,} jacobians was finite, although the scores were: no gradient can be "
            "followed. dqd.check_jacobian(score, x0) says which row is wrong; a square root or a norm at 0 is a "
            "frequent cause, guard it or start elsewhere"
        )
    return ""


def _figures(tally: Tally) -> tuple[int, int, int, int]:
    return tally.candidates, tally.nonfinite, tally.gradients, tally.lost_jacobians


def flat_words(tally: Tally, iterations: int) -> str:
    """Which gradients were zero wherever they were looked at: none is an empty string."""
    flat = tally.flat_rows if iterations >= LOOKED and tally.gradients > tally.lost_jacobians else []
    if not flat:
        return ""
    rows = named(flat, tally.steep.shape[-1])
    return (
        f"{rows} of the jacobian: zero at all {tally.gradients:,} points so far, so it cannot be followed. Rounding, "
        "comparisons, argmax and whole numbers have no gradient; use a smooth function instead, or an algorithm "
        "without gradients such as dqd.cma_me or dqd.map_elites_line"
    )


def restart_words(state: SearchState) -> str:
    """Whether the emitters mostly started anew although cells are left: if not, an empty string."""
    every = jax.tree.leaves(state.emitter, is_leaf=lambda part: isinstance(part, Restarts))
    counts = [np.asarray(part.counts) for part in every if isinstance(part, Restarts)]
    emitters = sum(each.size // max(each.shape[-1], 1) for each in counts)  # copies and seeds included
    restarts, iterations = sum(int(each.sum()) for each in counts), int(np.max(np.asarray(state.iteration)))
    filled = float(np.mean(np.asarray(state.archive.count))) / state.archive.objective.shape[-1]
    if iterations < ENOUGH or restarts <= RESTART_SHARE * iterations * emitters or filled > FULL:
        return ""
    return (
        f"{restarts / emitters:,.0f} of {iterations:,} iterations ended in a restart, because nothing they proposed "
        f"changed the archive, and only {filled:.2%} of the cells are occupied. Most often sigma does not fit: leave "
        "it out (sigma=None) and it is chosen so that a step crosses some cells, or look at dqd.probe(score, x0, grid)"
    )


def infeasible_words(tally: Tally) -> str:
    """Whether hardly anything was feasible: if not, an empty string."""
    kept_out = tally.infeasible / max(tally.candidates, 1)
    if kept_out <= INFEASIBLE_SHARE:
        return ""
    return (
        f"{kept_out:.0%} of the solutions were infeasible and kept out of the archive; "
        "start from a feasible x0, with a smaller sigma"
    )


def unkept_words(state: SearchState) -> str:
    """Whether no objective was above what an acceptance threshold begins at: if not, an empty string."""
    minimum = float(np.max(np.asarray(getattr(state.archive.competition, "minimum", -np.inf))))
    best = float(np.max(np.asarray(state.archive.best)))
    if not state.tally.finite or minimum == -np.inf or best > minimum:
        return ""
    return (
        f"no solution was kept: the best objective, {best:.4g}, is not above the minimum of the acceptance threshold, "
        f"{minimum:.4g}. Give the lowest objective worth keeping, as in dqd.cma_mae(0.5, minimum=-100)"
    )


def warn(state: SearchState, flat: bool = False) -> None:
    """What a finished run should not be silent about. A run too short to be stopped may have bad numbers.

    `flat`: of gradients that were zero nobody has told yet.
    """
    zero = flat_words(state.tally, int(np.max(np.asarray(state.iteration)))) if flat else ""
    nothing = infeasible_words(state.tally) or unkept_words(state)  # why there is nothing to learn from
    for words in filter(None, (_complaint(*_figures(state.tally)), zero, nothing or restart_words(state))):
        saying.warn(words, stacklevel=3)
    share = state.tally.outside / max(state.tally.finite, 1)
    if share > CLAMPED_SHARE:
        saying.warn(
            f"{share:.0%} of the measures lay outside the grid and were moved to its border cells; "
            "widen lower and upper unless that is meant",
            stacklevel=3,
        )
