"""The sentences of the paper, each with a verdict from our trials. A claim must pass both tests of a pair."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dqd.paper.report.anova import Pair, welch_p
from dqd.paper.report.stats import NAN, ROUNDING, Estimate

LEVEL = 0.05  # of significance


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper: in these domains every `better` is above every `worse`."""

    sentence: str
    domains: tuple[str, ...]
    better: tuple[str, ...]
    worse: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """What our trials say to a claim in one domain, judged by the pair that supports it least."""

    sentence: str
    domain: str
    verdict: str  # holds; same order or reversed, not significant; contradicted; not testable
    weakest: tuple[str, str]
    difference: float
    p: float
    p_welch: float
    p_printed: float  # Welch's test of the paper's own means and standard errors, corrected alike


def check_claims(pairs: Mapping[str, Sequence[Pair]], printed: Mapping[str, Mapping[str, Estimate]]) -> list[Checked]:
    """Every claim whose algorithms all are in the suite, domain by domain."""
    return [
        _check(claim, domain, pairs[domain], printed.get(domain, {}))
        for claim in CLAIMS
        for domain in claim.domains
        if {*claim.better, *claim.worse} <= {row for pair in pairs.get(domain, ()) for row in (pair.first, pair.second)}
    ]


def _check(claim: Claim, domain: str, pairs: Sequence[Pair], printed: Mapping[str, Estimate]) -> Checked:
    found = {(pair.first, pair.second): pair for pair in pairs} | {
        (pair.second, pair.first): pair.turned() for pair in pairs
    }
    weakest = min((found[better, worse] for better in claim.better for worse in claim.worse), key=_support)
    return Checked(
        *(claim.sentence, domain, _judge(weakest), (weakest.first, weakest.second)),
        *(weakest.difference, weakest.p, weakest.p_welch),
        p_printed=max(_printed_p(printed, b, w, len(pairs)) for b in claim.better for w in claim.worse),
    )


def _support(pair: Pair) -> tuple[float, float]:
    """How well a pair supports that its first is better: from -1, surely worse, over 0 to 1, surely better."""
    confidence = 1 - pair.p_larger if math.isfinite(pair.p_larger) else 0.0
    return (confidence if pair.difference > 0 else -confidence), pair.difference


def _judge(pair: Pair) -> str:
    if not math.isfinite(pair.p_larger):
        return "not testable"
    if pair.p_larger < LEVEL:
        return "holds" if pair.difference > 0 else "contradicted"
    return "same order, not significant" if pair.difference > 0 else "reversed, not significant"


def _printed_p(printed: Mapping[str, Estimate], better: str, worse: str, pairs: int) -> float:
    """Of the paper's own numbers; a printed standard error of 0.00 counts as its rounding."""
    if better not in printed or worse not in printed:
        return NAN
    a, b = (dataclasses.replace(e, se=max(e.se, ROUNDING)) for e in (printed[better], printed[worse]))
    return min(1.0, welch_p(a, b) * pairs) if a.mean > b.mean else 1.0


_LP, _ARM, _LSI = ("lp-sphere", "lp-rastrigin"), ("arm",), ("lsi-elon",)
_FREE = ("map-elites", "map-elites-line", "cma-me")
_OG = ("og-map-elites", "og-map-elites-line")
_OG_INDEPENDENT = ("og-map-elites-independent", "og-map-elites-line-independent")
_BASELINES = (*_FREE, *_OG)
_ADAM = ("cma-mega-adam",)

CLAIMS = (
    Claim("CMA-MEGA performed significantly better than each of the baselines.", _LP, ("cma-mega",), _BASELINES),
    Claim("OMG-MEGA performed significantly better than each of the baselines.", _LP, ("omg-mega",), _BASELINES),
    Claim("CMA-MEGA significantly outperformed OMG-MEGA.", _LP, ("cma-mega",), ("omg-mega",)),
    Claim(
        "CMA-MEGA outperformed all the other algorithms (without its Adam variant).",
        *(_ARM, ("cma-mega",), (*_BASELINES, "omg-mega")),
    ),
    Claim("The same sentence read to the letter: CMA-MEGA outperformed CMA-MEGA (Adam).", _ARM, ("cma-mega",), _ADAM),
    Claim("The OG-MAP-Elites variants perform significantly better than OMG-MEGA.", _ARM, _OG, ("omg-mega",)),
    Claim("CMA-MEGA (Adam) significantly outperformed all other algorithms.", _LSI, _ADAM, (*_FREE, "cma-mega")),
    Claim("CMA-MEGA without Adam had the worst performance.", _LSI, _FREE, ("cma-mega",)),
    Claim(
        "Normalization greatly affects the performance of OMG-MEGA.",
        *((*_LP, *_ARM), ("omg-mega",), ("omg-mega-unnormalized",)),
    ),
    *(
        Claim("Sequential operators outperform independent ones.", _LP, (one,), (f"{other}.paper-budget",))
        for one, other in zip(_OG, _OG_INDEPENDENT, strict=True)
    ),
    *(
        Claim("Independent operators outperform sequential ones.", _ARM, (f"{other}.released-budget",), (one,))
        for one, other in zip(_OG, _OG_INDEPENDENT, strict=True)
    ),
)
