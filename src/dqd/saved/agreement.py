"""What held-out judges make of an archive: judges whose scores no search has seen. NumPy only, never JAX.

A judge gives scores of its own for some of what was searched, in the same units; they are fields of the archive. It
*agrees* with an elite if by these the objective is at most `tolerance` worse than the archive says, and every measure
at most `tolerance` away. An elite is *trusted* if all judges agree with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dqd.saved.archive import SavedArchive

DISAGREEMENT = "disagreement"  # the field that a map of it shows
MOST = 10.0  # tolerances; whoever is further off, or not finite, is as wrong as can be


@dataclass(frozen=True)
class Opinion:
    """Of one judge, on one score that was searched."""

    judge: str
    score: str  # as it is called where it was chosen, such as "age"
    of: int  # 0: the objective, 1 + j: measure j
    tolerance: float  # in the units of the archive

    @property
    def field(self) -> str:
        """The field of the archive that holds it."""
        return "_by_".join(re.sub(r"\W+", "_", words).strip("_") for words in (self.score, self.judge))

    def searched(self, archive: SavedArchive) -> np.ndarray:
        """What the archive says, (elites,)."""
        return archive.objective if self.of == 0 else archive.measures[:, self.of - 1]

    def off(self, archive: SavedArchive) -> np.ndarray:
        """How far off the archive is by this opinion, in tolerances, (elites,): above 1 the judge disagrees."""
        difference = self.searched(archive) - archive.fields[self.field]
        distance = np.maximum(difference, 0) if self.of == 0 else np.abs(difference)
        return np.minimum(np.nan_to_num(distance / self.tolerance, nan=MOST, posinf=MOST), MOST)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far held-out judges agree with an archive.

    >>> from dqd.tessellations.grid import Grid
    >>> opinion = Opinion("second scale", "weight", of=0, tolerance=1.0)
    >>> rows = np.arange(3), np.array([9.0, 8.0, 7.0]), np.array([[0.5], [1.5], [2.5]])
    >>> fields = {opinion.field: np.array([8.5, 12.0, 3.0])}
    >>> archive = SavedArchive(*rows, None, None, Grid([0], [4], [4]), fields=fields)
    >>> agreement = Agreement(archive, [opinion])
    >>> agreement.trusted.tolist(), agreement.qd_score, agreement.coverage
    ([True, True, False], 4.25, 50.0)
    """

    archive: SavedArchive
    opinions: Sequence[Opinion]

    @cached_property
    def disagreement(self) -> np.ndarray:
        """The worst of all opinions on each elite, in tolerances, at most 10; up to 1 it is trusted."""
        return np.max([opinion.off(self.archive) for opinion in self.opinions], axis=0, initial=0.0)

    @property
    def trusted(self) -> np.ndarray:
        """Whether all judges agree, (elites,)."""
        return self.disagreement <= 1

    @property
    def share(self) -> float:
        """Elites with which all judges agree, in percent: the cells that are kept when they decide."""
        return _percent(self.trusted)

    @property
    def qd_score(self) -> float:
        """The trusted QD-score: the same sum, over the trusted elites alone."""
        return float(np.sum(self.archive.objective[self.trusted] - self.archive.qd_score_offset, dtype=np.float64)) / (
            self.archive.num_cells
        )

    @property
    def coverage(self) -> float:
        """Cells with a trusted elite, in percent of all cells."""
        return 100.0 * int(self.trusted.sum()) / self.archive.num_cells

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "trusted_qd_score": self.qd_score,
            "trusted_coverage": self.coverage,
            "agreement": self.share,
            "opinions": [self._one(opinion) for opinion in self.opinions],
        }

    def _one(self, opinion: Opinion) -> dict[str, Any]:
        searched, judged = opinion.searched(self.archive), self.archive.fields[opinion.field]
        finite = np.isfinite(judged)
        difference = (judged - searched)[finite].astype(np.float64)
        return {
            "judge": opinion.judge,
            "score": opinion.score,
            "tolerance": opinion.tolerance,
            "agreement": _percent(opinion.off(self.archive) <= 1),
            "correlation": _correlation(searched[finite], judged[finite]),
            "mean_difference": float(np.mean(np.abs(difference))) if finite.any() else None,
            "bias": float(np.mean(difference)) if finite.any() else None,
        }


def _percent(flags: np.ndarray) -> float:
    return 100.0 * float(np.mean(flags)) if len(flags) else 0.0


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Pearson's; None where either does not vary."""
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return None
    return float(np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1])
