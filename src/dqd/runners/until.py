"""When enough is enough: what `until=` is given, and conditions ready made.

dqd.illuminate(..., until=dqd.seconds(60) | dqd.coverage(90))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from dqd.inputs.names import METRICS, check_known
from dqd.search.history import History


class Now(dict[str, float]):
    """Where a run stands: iteration, seconds of this session, evaluations and the metrics, averaged over seeds."""

    def __init__(self, history: History, seconds: float, evaluations: float) -> None:
        super().__init__({"iteration": history.done, "seconds": seconds, "evaluations": evaluations})
        self.update(history.latest())
        self.history = history

    def __missing__(self, name: str) -> float:
        raise KeyError(f"until: {name!r} is not told; what is: {', '.join(self)}")


Until = Callable[[Now], bool | None]


@dataclass(frozen=True)
class Stop:
    """A condition; `one | other` stops at the first of them."""

    met: Until
    any_time: bool = False  # asked after every launch, not at multiples of `chunk` alone

    def __call__(self, now: Now) -> bool:
        return bool(self.met(now))

    def __or__(self, other: Until) -> Stop:
        if not callable(other):
            return NotImplemented
        return Stop(lambda now: self(now) or bool(other(now)), self.any_time or getattr(other, "any_time", False))

    __ror__ = __or__


def seconds(limit: float) -> Stop:
    """Stop so many seconds of wall time, compilation included, after the first launch.

    It is looked at after every launch, so a run lasts about a second longer; an iteration is always finished. A run
    that goes on in another session has that time again.

    >>> seconds(60).any_time
    True
    """
    _check("seconds", limit)
    return Stop(lambda now: now["seconds"] >= limit, any_time=True)


def coverage(percent: float) -> Stop:
    """Stop when so many percent of the cells are occupied; of several seeds, on average.

    >>> stop = coverage(90) | seconds(60)
    >>> stop.any_time
    True
    """
    _check("coverage", percent)
    return Stop(lambda now: now["coverage"] >= percent)


def evaluations(number: int) -> Stop:
    """Stop when so many evaluations were made, of every kind; of several seeds, by each.

    It is looked at after every `chunk` iterations: `chunk=1` stops soonest.

    >>> stop = evaluations(10_000) | coverage(90)
    >>> stop.any_time
    False
    """
    _check("evaluations", number)
    return Stop(lambda now: now["evaluations"] >= number)


def stagnation(iterations: int = 1000, tolerance: float = 0.001, metric: str = "qd_score") -> Stop:
    """Stop when the metric has risen by less than a share `tolerance` of itself during the last `iterations`.

    The metric is "qd_score", "coverage", "best" or "mean".

    >>> stagnation(iterations=500, tolerance=0.01).any_time
    False
    """
    _check("iterations", iterations)
    _check("tolerance", tolerance, least=0)
    check_known("metric", metric, METRICS)

    def met(now: Now) -> bool:
        then = now.history.ago(int(iterations))
        return then is not None and now[metric] - then[metric] <= tolerance * abs(now[metric])

    return Stop(met)


def joined(until: Until | None, time_limit: float | None) -> Until | None:
    """What `until=` and `time_limit=` say together; both are looked at before the run begins."""
    for helper in (seconds, coverage, evaluations, stagnation):
        if until is helper:
            raise TypeError(f"until: got a function that makes conditions; call it: dqd.{helper.__name__}(...)")
    if until is not None and not callable(until):
        raise TypeError(
            f"until: expected a condition such as dqd.seconds(60), or a function, got {type(until).__name__}"
        )
    if time_limit is None:
        return until
    _check("time_limit", time_limit)
    return seconds(time_limit) if until is None else seconds(time_limit) | until


def _check(name: str, number: float, least: float = math.ulp(0.0)) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or not least <= number < math.inf:
        raise ValueError(f"{name}: expected a finite number{' above 0' if least else ', at least 0'}, got {number!r}")
