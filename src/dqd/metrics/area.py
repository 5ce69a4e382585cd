"""QD-score AUC: how much of the QD-score was there how early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dqd.metrics.elites import saved


def qd_score_auc(source: Any, *, normalize: bool = False) -> float:
    """The area under the curve of the QD-score over evaluations (Tjanaka et al. 2022).

        AUC = integral of QD(e) de,  e from 0 to all evaluations

    Between two recorded iterations the curve is a straight line, and before the first it is as high as there. The
    authors add up lambda QD_i over all iterations i of lambda evaluations; where all are recorded it differs by less
    than lambda QD.

    Args:
        source: a result, a run that was read by `dqd.load`, or a history, `result.history`.
        normalize: divide by the number of evaluations: the mean QD-score during the run.

    >>> history = {"evaluations": np.array([10, 20, 40]), "qd_score": np.array([1.0, 3.0, 3.0])}
    >>> qd_score_auc(history), qd_score_auc(history, normalize=True)
    (90.0, 2.25)
    """
    evaluations, score = _curve(source)
    if score.ndim != 1:
        raise ValueError("qd_score_auc: these are several seeds; take them one by one")
    if not len(score):
        return 0.0
    area = evaluations[0] * score[0] + np.trapezoid(score, evaluations)
    return float(area / evaluations[-1] if normalize else area)


def _curve(source: Any) -> tuple[np.ndarray, np.ndarray]:
    """Evaluations and QD-score, (rows,) each."""
    history = source if isinstance(source, Mapping) else getattr(source, "history", None)
    if history is None:
        rows = saved(source).metrics
        if not rows:
            raise ValueError("qd_score_auc: an archive alone has no history; give a result, or the folder of a run")
        history = {name: [row.get(name) for row in rows] for name in ("evaluations", "qd_score")}
    if any(number is None for number in history["evaluations"]):
        raise ValueError("qd_score_auc: the run did not record its evaluations")
    return np.asarray(history["evaluations"], np.float64), np.asarray(history["qd_score"], np.float64)
