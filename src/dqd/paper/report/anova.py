"""Which algorithms differ: analysis of variance, simple effects, all pairs.

- `two_way`: algorithm x domain, on the final QD-score, as in the paper's section "Analysis".
- `simple_effect`, `pairwise`: simple main effects per domain, and all pairs with Bonferroni's correction.

An analysis of variance assumes that trials spread alike in all entries, and here they differ by orders of magnitude. So
every pair is also tested after Welch (1947), who does not assume it.

A case that cannot be computed (one trial, no variance) gives NaN and a sentence, never an exception.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dqd.paper.report.stats import NAN, Estimate, estimate, library

Groups = Mapping[str, np.ndarray]  # row -> final QD-scores
Samples = Mapping[str, Groups]  # domain -> row -> final QD-scores


@dataclass(frozen=True)
class Effect:
    """One line of an analysis of variance."""

    f: float
    df: int
    df_error: int
    p: float
    note: str = ""  # why f or p is NaN


@dataclass(frozen=True)
class TwoWay:
    """Algorithm x domain."""

    algorithm: Effect
    domain: Effect
    interaction: Effect
    mse: float  # variance of trials within an entry, pooled
    mse_error: float  # its relative standard error
    df_error: int
    rows: tuple[str, ...]  # algorithms that every domain has; the others cannot enter
    note: str = ""


def two_way(samples: Samples) -> TwoWay:
    """Analysis of variance by least squares (statsmodels, sums of squares of type II)."""
    rows = _complete_rows(samples)
    note = _obstacle(samples, rows)
    if note:
        nothing = Effect(NAN, 0, 0, NAN, note)
        return TwoWay(nothing, nothing, nothing, NAN, NAN, 0, rows, note)
    table = _fit(samples, rows)
    mse, df_error = float(table.mean_sq["Residual"]), int(table.df["Residual"])

    def effect(name: str) -> Effect:
        return Effect(float(table.F[name]), int(table.df[name]), df_error, float(table["PR(>F)"][name]))

    effects = effect("C(algorithm)"), effect("C(domain)"), effect("C(algorithm):C(domain)")
    error = _mse_error([samples[domain][row] for domain in samples for row in rows])
    return TwoWay(*effects, mse=mse, mse_error=error, df_error=df_error, rows=rows)


def _fit(samples: Samples, rows: Sequence[str]) -> Any:
    formula, anova = library("statsmodels.formula.api"), library("statsmodels.stats.anova")
    lines = [(row, domain, value) for domain in samples for row in rows for value in samples[domain][row]]
    algorithm, domain, score = zip(*lines, strict=True)
    data = library("pandas").DataFrame({"algorithm": algorithm, "domain": domain, "score": score})
    table = anova.anova_lm(formula.ols("score ~ C(algorithm) * C(domain)", data).fit(), typ=2)
    return table.assign(mean_sq=table.sum_sq / table.df)


def _complete_rows(samples: Samples) -> tuple[str, ...]:
    every = dict.fromkeys(row for groups in samples.values() for row in groups)
    return tuple(row for row in every if all(len(groups.get(row, ())) for groups in samples.values()))


def _obstacle(samples: Samples, rows: Sequence[str]) -> str:
    if len(samples) < 2 or len(rows) < 2:
        return (
            f"two-way analysis needs 2 domains and 2 algorithms run on all of them, got {len(samples)} and {len(rows)}"
        )
    groups = [samples[domain][row] for domain in samples for row in rows]
    if max(map(len, groups)) < 2:
        return "one trial per entry: nothing tells the spread of trials"
    return "the trials of every entry are equal: F would be infinite" if not any(map(np.ptp, groups)) else ""


def interaction_from_summary(means: np.ndarray, errors: np.ndarray, trials: int) -> Effect:
    """The interaction's F from printed means and standard errors (algorithms, domains), equal numbers of trials."""
    rows, columns = means.shape
    rest = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    df, df_error = (rows - 1) * (columns - 1), rows * columns * (trials - 1)
    return _effect(trials * float(np.sum(rest**2)), df, trials * float(np.mean(errors**2)), df_error)


def simple_effect(groups: Groups, pooled: tuple[float, int] | None = None) -> Effect:
    """Effect of the algorithm within one domain.

    `pooled` is the error term of the two-way analysis (variance, degrees of freedom). Without it the domain's own is
    taken, which makes this a one-way analysis of variance.
    """
    some = [values for values in groups.values() if len(values)]
    if len(some) < 2:
        return Effect(NAN, 0, 0, NAN, "fewer than two algorithms")
    mse, df_error = pooled or _pooled(some)
    grand = np.concatenate(some).mean()
    between = sum(len(values) * (values.mean() - grand) ** 2 for values in some)
    return _effect(float(between), len(some) - 1, mse, df_error)


def _effect(between: float, df: int, mse: float, df_error: int) -> Effect:
    if df_error < 1 or not mse > 0:
        return Effect(NAN, df, df_error, NAN, "no spread of trials to compare with")
    f = between / df / mse
    return Effect(f, df, df_error, float(library("scipy.stats").f.sf(f, df, df_error)))


def _pooled(groups: Sequence[np.ndarray]) -> tuple[float, int]:
    df = sum(len(values) - 1 for values in groups)
    squares = sum(float(np.sum((values - values.mean()) ** 2)) for values in groups if np.ptp(values) > 0)
    return (squares / df if df else NAN), df


def _mse_error(groups: Sequence[np.ndarray]) -> float:
    """Relative standard error of the pooled variance: of normal values, the sum of squares over (count - 1) degrees of
    freedom has variance 2 (count - 1) sigma^4."""
    variances = np.array([np.var(values, ddof=1) if len(values) > 1 else 0.0 for values in groups])
    df = np.array([len(values) - 1 for values in groups])
    return float(np.sqrt(np.sum(2 * df * variances**2)) / np.sum(df * variances))


# All pairs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two algorithms in one domain. Both p-values carry Bonferroni's correction for all pairs of the domain."""

    first: str
    second: str
    difference: float  # mean of the first - mean of the second
    p: float  # t-test with the pooled error, as in the paper
    p_welch: float  # t-test of these two alone, unequal variances
    hedges_g: float
    cliffs_delta: float

    @property
    def p_larger(self) -> float:
        """The larger of both p-values; NaN if one is."""
        return float(np.maximum(self.p, self.p_welch))

    def turned(self) -> Pair:
        """The same pair, named the other way round."""
        signs = {"difference": -self.difference, "hedges_g": -self.hedges_g, "cliffs_delta": -self.cliffs_delta}
        return dataclasses.replace(self, first=self.second, second=self.first, **signs)


def pairwise(groups: Groups, pooled: tuple[float, int] | None = None) -> list[Pair]:
    """Every pair of algorithms of one domain."""
    some = {row: values for row, values in groups.items() if len(values)}
    mse, df_error = pooled or _pooled(list(some.values()))
    pairs = list(itertools.combinations(some, 2))

    def corrected(p: float) -> float:
        return min(1.0, p * len(pairs)) if math.isfinite(p) else NAN

    return [
        Pair(
            *(first, second, float(a.mean() - b.mean())),
            p=corrected(_pooled_p(a, b, mse, df_error)),
            p_welch=corrected(welch_p(estimate(a), estimate(b))),
            hedges_g=hedges_g(a, b),
            cliffs_delta=cliffs_delta(a, b),
        )
        for first, second in pairs
        for a, b in [(some[first], some[second])]
    ]


def _pooled_p(a: np.ndarray, b: np.ndarray, mse: float, df_error: int) -> float:
    if df_error < 1 or not mse > 0:
        return NAN
    t = (a.mean() - b.mean()) / math.sqrt(mse * (1 / len(a) + 1 / len(b)))
    return 2 * float(library("scipy.stats").t.sf(abs(t), df_error))


def welch_p(a: Estimate, b: Estimate) -> float:
    """Two-sided p of Welch's t-test, from means and standard errors; NaN without a spread."""
    if not (a.se >= 0 and b.se >= 0 and a.se + b.se > 0) or min(a.trials, b.trials) < 2:
        return NAN
    scale = max(a.se, b.se)
    first, second = (a.se / scale) ** 2, (b.se / scale) ** 2  # scaled, so that tiny errors do not vanish when squared
    df = (first + second) ** 2 / (first**2 / (a.trials - 1) + second**2 / (b.trials - 1))
    t = abs(a.mean - b.mean) / (scale * math.sqrt(first + second))
    return 2 * float(library("scipy.stats").t.sf(t, df))


def hedges_g(a: np.ndarray, b: np.ndarray) -> float:
    """Difference of means in pooled standard deviations, corrected for small samples (Hedges 1981)."""
    variance, df = _pooled([a, b])
    if df < 1 or not variance > 0:
        return NAN
    return float(a.mean() - b.mean()) / math.sqrt(variance) * (1 - 3 / (4 * df - 1))


def cliffs_delta(a: np.ndarray, b: np.ndarray) -> float:
    """Share of pairs of trials in which a is above b, minus the share in which it is below: -1 to 1 (Cliff 1993)."""
    return float(np.sign(a[:, None] - b[None, :]).mean()) if len(a) and len(b) else NAN
