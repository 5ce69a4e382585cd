"""Algorithms that move a population by gradients."""

from __future__ import annotations

from dqd.emitters.presets.checks import batch, check_positive, positive_or_chosen
from dqd.emitters.squad import SQUAD


def squad(
    learning_rate: float | None = None,
    bandwidth: float = 1.0,
    *,
    minimum: float = 0.0,
    scale: float | None = None,
    initial_sigma: float = 1.0,
    population: int = 1024,
    neighbours: int = 16,
    batch_size: int = 128,
) -> SQUAD:
    """SQUAD (Hedayatian & Nikolaidis 2026): members of a population climb, and push each other apart.

        A = sum_i f_i - 1/4 sum_{i != j} sqrt(f_i f_j) exp(-|b_i - b_j|^2 / bandwidth^2),   b = logit of the measures
        x_i <- x_i + Adam(dA/dx_i),   for some members per iteration, all of them in every epoch

    f_i is the objective above `minimum`, where members give no light. Cells play no part, so measures may be many;
    the archive keeps the best of what was met in every cell.

    Args:
        learning_rate: of Adam: about the distance, in the units of a solution, that every number of a member moves at
            a time. None chooses it so that a step crosses about a cell.
        bandwidth: how far members feel each other, in logits of measures: 1 is a quarter of a range in its middle.
        minimum: an objective, below which a member counts for nothing.
        scale: what an objective grows by, as the archive stores it, when its gradient says 1: other than 1 for a domain
            with a `transform`. None finds it out by two evaluations.
        initial_sigma: members are born at x0 + initial_sigma N(0, I).
        population: how many members there are, a multiple of half the batch.
        neighbours: how many of the nearest push, itself included.
        batch_size: evaluations per iteration: half of them members with gradients, half where they moved.

    Costs O(batch_size (population + n) k), and the jacobians of `batch_size` / 2 points. Keeps 4 `population` x n
    numbers.

    >>> emitter = dqd.squad(learning_rate=0.05, population=256)
    >>> emitter.num_points, emitter.batch_size  # with gradients, without
    (64, 64)
    """
    members = batch(batch_size, 2, even=True) // 2
    if batch(population) % members:
        raise ValueError(f"population: expected a multiple of the {members} members per iteration, got {population}")
    if not 2 <= batch(neighbours) <= population:
        raise ValueError(f"neighbours: expected 2 to {population}, itself included, got {neighbours}")
    check_positive(bandwidth=bandwidth, initial_sigma=initial_sigma)
    return SQUAD(
        positive_or_chosen(learning_rate=learning_rate),
        float(bandwidth),
        positive_or_chosen(scale=scale),
        float(minimum),
        float(initial_sigma),
        int(population),
        members,
        int(neighbours),
    )
