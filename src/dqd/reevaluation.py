"""`reevaluate`: what a search of a noisy function believed, looked at once more."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from dqd.domains.domain import Domain, evaluating
from dqd.domains.function import as_domain
from dqd.domains.rejudge import judged_by
from dqd.inputs.evaluator import Evaluator, Sampled, check_repetitions
from dqd.result import Result
from dqd.types import Evaluation, Score, replace
from dqd.workers.batches import Evaluations
from dqd.workers.padded import OnHost
from dqd.workers.workers import Workers


def reevaluate(
    result: Result,
    score: Score | Domain | Evaluator,
    repetitions: int = 1,
    *,
    where: Workers | Executor | Callable[[], Executor] | str | None = None,
) -> Result:
    """The result by fresh evaluations of its elites: a search that was lucky with its noise loses here.

    Elites move to the cells of their new measures, where several may meet: the best stays. One that is not feasible, or
    not finite, is dropped. What the search itself believed is `provisional` of what is returned, whose `evaluations`
    count these, too.

    Args:
        result: what a search found.
        score: who evaluates, such as what was searched.
        repetitions: of every evaluation, whose mean counts.
        where: on which workers, as in `dqd.illuminate`; by default in this process.

    >>> import dqd
    >>> believed = lambda x: (5 + 0 * x[:, 0], x[:, :1])
    >>> grid, emitter = dqd.Grid([-1], [1], [4]), dqd.map_elites(0.5)
    >>> result = dqd.illuminate(dqd.evaluator(believed), emitter, grid, x0=np.zeros(2), iterations=3, progress=False)
    >>> again = reevaluate(result, dqd.evaluator(lambda x: (x[:, 0], x[:, :1])), repetitions=2)
    >>> result.best, again.best < 2, again.provisional.best, again.evaluations - result.evaluations
    (5.0, True, 5.0, 8)
    """
    check_repetitions("reevaluate", repetitions)
    workers = where if isinstance(where, Workers) else Workers(where)
    score = evaluating(score)
    judge: Evaluator = score if isinstance(score, Evaluator) else as_domain(score, result.layout)
    judge = OnHost(judge, workers.rows_per_call) if isinstance(judge, Domain) else judge
    single = judge.single if isinstance(judge, Sampled) else judge
    k, taken = result.archive.num_measures, 0

    def evaluate(solutions: np.ndarray) -> Evaluation:
        nonlocal taken
        found = evaluations.evaluate(solutions, result.iterations, "elites")
        taken += int(np.sum(np.asarray(found.evaluations)))
        return found

    with contextlib.closing(Evaluations(Sampled(single, None, repetitions), workers, k, None)) as evaluations:
        judged = judged_by(result.archive, evaluate)
    state: Any = replace(result.state, tally=result.state.tally.plus(0, 0, 0, 0, 0, 0, taken))
    return dataclasses.replace(result, state=state, judged=judged)
