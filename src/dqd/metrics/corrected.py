"""Corrected QD-score: what is left of an archive when its elites are evaluated again (Flageat & Cully 2023)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dqd.metrics.elites import saved
from dqd.saved.archive import placed
from dqd.tessellations.scattered import Scattered


def corrected_qd_score(archive: Any, evaluate: Callable[[np.ndarray], Any], repetitions: int = 1) -> float:
    """The QD-score of the elites by fresh evaluations, each in the cell where its measures now lie.

    Where evaluations are noisy an archive keeps the lucky ones. Several elites may meet in one cell: the best stays;
    what is not finite is lost. (`dqd.reevaluate` does the same with a result, on workers if need be, and returns all
    that is left.)

    Args:
        archive: a result or an archive, live or saved, with its solutions.
        evaluate: solutions (b, n) -> objective (b,), measures (b, k).
        repetitions: of every evaluation, whose mean counts.

    >>> grid = dqd.Grid([0], [1], [2])
    >>> told = dqd.Evaluation(jnp.array([5.0, 7.0]), jnp.array([[0.1], [0.9]]))
    >>> archive, _ = dqd.Archive.empty(grid, 1).add(jnp.array([[0.2], [0.3]]), told)
    >>> archive.qd_score, corrected_qd_score(archive, lambda x: (10 * x[:, 0], x))  # they meet in the first cell
    (6.0, 1.5)
    """
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
        raise ValueError(f"corrected_qd_score: repetitions: expected a whole number, at least 1, got {repetitions!r}")
    found = saved(archive, solutions=True)
    if found.solutions is None:
        raise ValueError("corrected_qd_score: the archive was saved without its solutions")
    if isinstance(found.tessellation, Scattered):
        raise ValueError(
            "corrected_qd_score: these elites lie in no cells; take archive.retessellate(dqd.Grid(...)), or "
            "dqd.reevaluate with the result"
        )
    if not len(found):
        return 0.0
    told = [_told(evaluate(found.solutions), len(found), found.measures.shape[1]) for _ in range(repetitions)]
    objective, measures = (np.mean(each, axis=0).astype(found.objective.dtype) for each in zip(*told, strict=True))
    finite = np.isfinite(objective) & np.isfinite(measures).all(axis=1)
    rows = (objective[finite], measures[finite], None, None)
    return placed(*rows, found.tessellation, qd_score_offset=found.qd_score_offset).qd_score


def _told(evaluation: Any, elites: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A pair, or a `dqd.Evaluation`."""
    pair = evaluation if isinstance(evaluation, tuple) else (evaluation.objective, evaluation.measures)
    objective, measures = (np.asarray(each, np.float64) for each in pair)
    if objective.shape != (elites,) or measures.shape != (elites, k):
        raise ValueError(
            f"corrected_qd_score: expected objective ({elites},) and measures ({elites}, {k}), got "
            f"{objective.shape} and {measures.shape}; it is given all solutions at once, for which a function of one "
            "becomes jax.vmap(function)"
        )
    return objective, measures
