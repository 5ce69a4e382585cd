"""When a solution counts as progress."""

from __future__ import annotations

import math

from dqd.types import pytree


@pytree
class Threshold:
    """The acceptance threshold t of every cell, that of CMA-MAE (Fontaine & Nikolaidis 2023).

    It begins at `minimum`. A solution whose objective f exceeds it counts as progress f - t, and moves it:

        t <- t + learning_rate (f - t)

    A learning rate of 1 without a minimum is MAP-Elites: the elite is the threshold. Below 1 a cell is harder to please
    step by step, so a search stays with a region while that still improves. At 0 the threshold never moves. What is
    *stored* is always the best objective of the cell.

    Args:
        learning_rate: from 0 to 1, without unit.
        minimum: an objective; below 1 the learning rate needs a finite one, the lowest objective worth keeping.

    >>> Threshold(learning_rate=0.01, minimum=0.0)
    Threshold(learning_rate=0.01, minimum=0.0)
    """

    learning_rate: float = 1.0
    minimum: float = -math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.learning_rate <= 1.0:
            raise ValueError(f"learning_rate: expected a number in [0, 1], got {self.learning_rate}")
        if math.isnan(self.minimum) or self.minimum == math.inf:
            raise ValueError(f"minimum: expected a threshold that objectives can pass, got {self.minimum}")
        if self.learning_rate < 1.0 and not math.isfinite(self.minimum):
            raise ValueError(
                f"minimum: a learning rate of {self.learning_rate} needs a finite minimum threshold, got "
                f"{self.minimum}; give the lowest objective worth keeping"
            )

    def for_cells(self, cells: int, tuned_for: int = 10_000) -> Threshold:
        """The same annealing in an archive of more or fewer cells than the learning rate a was tuned for.

            a <- 1 - (1 - a)^(cells / tuned_for)

        With more cells each is met more rarely, so its threshold has to rise faster (Fontaine & Nikolaidis 2023).

        >>> round(Threshold(0.01, 0.0).for_cells(40_000).learning_rate, 4)
        0.0394
        """
        if cells < 1 or tuned_for < 1:
            raise ValueError(f"for_cells: expected numbers of cells, at least 1, got {cells} and {tuned_for}")
        return Threshold(1 - (1 - self.learning_rate) ** (cells / tuned_for), self.minimum)
