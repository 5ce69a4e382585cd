"""Whether the numbers of a run make sense: one that finds nothing should not do so in silence."""

from __future__ import annotations

from collections import deque

from dqd.console import saying
from dqd.search.search import SearchState, Tally

CLAMPED_SHARE = 0.25  # warn when more of the measures than this lie outside the grid
INFEASIBLE_SHARE = 0.9  # warn when more of the solutions than this are infeasible


class NonFiniteError(RuntimeError):
    """Most evaluations were not finite."""


class Health:
    """Stops a run of which most evaluations are not finite, or none of the jacobians."""

    WINDOW = 1000  # evaluations

    def __init__(self, tally: Tally | None) -> None:
        """What was before is not looked at. Of a new run, nothing was: the initial population counts."""
        self.marks = deque([_figures(tally) if tally else (0, 0, 0, 0)])

    def check(self, done: int, tally: Tally) -> None:
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


def warn(state: SearchState) -> None:
    """What a finished run should not be silent about. A run too short to be stopped may have bad numbers."""
    words = _complaint(*_figures(state.tally))
    if words:
        saying.warn(words, stacklevel=3)
    kept_out = state.tally.infeasible / max(state.tally.candidates, 1)
    if kept_out > INFEASIBLE_SHARE:
        saying.warn(
            f"{kept_out:.0%} of the solutions were infeasible and kept out of the archive; "
            "start from a feasible x0, with a smaller sigma",
            stacklevel=3,
        )
    share = state.tally.outside / max(state.tally.finite, 1)
    if share > CLAMPED_SHARE:
        saying.warn(
            f"{share:.0%} of the measures lay outside the grid and were moved to its border cells; "
            "widen lower and upper unless that is meant",
            stacklevel=3,
        )
