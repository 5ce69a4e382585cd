"""A domain with all that a search of it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jax import Array

from dqd.domains.domain import Domain
from dqd.tessellations.tessellation import Tessellation

D = TypeVar("D", bound=Domain)


@dataclass(frozen=True)
class Problem(Generic[D]):
    """What makes a domain a search: a grid, where to start, and what to call it all in a picture.

    `dqd.illuminate(problem, emitter)` takes all of it. Where `final` is set the scores of the search are provisional (a
    preview network, fresh noise, random crops): at the end the elites are judged by it, once for every salt, and only
    what comes out counts.
    """

    domain: D
    grid: Tessellation
    x0: Array  # (n,)
    title: str
    labels: tuple[str, ...]  # of the objective and of the measures
    bounds: tuple[float, float] | None = None
    initial_sigma: float = 1.0
    final: D | None = None
    salts: tuple[int, ...] = (0,)

    def filled(self, **given: Any) -> dict[str, Any]:
        """The arguments of a search, its own where None is given."""
        own = {"x0": self.x0, "tessellation": self.grid, "bounds": self.bounds, "initial_sigma": self.initial_sigma}
        return {name: own[name] if value is None else value for name, value in given.items()}
