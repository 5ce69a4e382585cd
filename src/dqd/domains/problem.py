"""A domain with all that a search of it needs, and who has the last word on what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jax import Array

from dqd.archives.archive import Archive
from dqd.domains.domain import Domain
from dqd.domains.rejudge import ROWS, rejudged
from dqd.tessellations.tessellation import Tessellation
from dqd.types import replace

D = TypeVar("D", bound=Domain)


@dataclass(frozen=True)
class Problem(Generic[D]):
    """What makes a domain a search: a grid, where to start, and what to call it all in a picture.

    `dqd.illuminate(problem, emitter)` takes all of it. Where `final` is set, the scores of the search are provisional
    (a preview network, fresh noise, random crops): at the end the elites are judged by it, and only what comes out
    counts. `judged` does so.

    >>> arm = dqd.Arm(n=5)
    >>> problem = dqd.Problem(arm, arm.grid(10), jnp.zeros(5), "an arm", ("evenness", "hand, x", "hand, y"))
    >>> result = dqd.illuminate(problem, dqd.cma_mega(sigma=0.1), iterations=20, progress=False)
    >>> result.elites.solutions.shape[1]
    5
    """

    domain: D
    grid: Tessellation
    x0: Array  # (n,)
    title: str
    labels: tuple[str, ...]  # of the objective and of the measures
    bounds: tuple[float, float] | None = None
    initial_sigma: float = 1.0
    final: D | None = None
    salts: tuple[int, ...] = ()  # draws of the final judge to average over; none: it judges once, as it is

    def __post_init__(self) -> None:
        if self.salts and not hasattr(self.final, "salt"):
            got = "no final judge" if self.final is None else f"a {type(self.final).__name__}, which has none"
            raise ValueError(f"salts: expected a final judge with a field `salt`, got {got}; leave salts out")

    @property
    def judges(self) -> tuple[D, ...]:
        """Whose mean counts in the end; nobody, where the scores of the search do."""
        if self.final is None:
            return ()
        final: Any = self.final
        return tuple(replace(final, salt=salt) for salt in self.salts) or (final,)

    def judged(self, archive: Archive, say: Callable[[int, int], None] = lambda done, total: None) -> Archive:
        """The archive that counts: by the judges' mean, or the given one where the scores of the search are final.

        `say` is told how many of how many elites are done. A domain of images is asked for as many at once as it says
        fit into one pass.
        """
        if not self.judges:
            return archive
        return rejudged(archive, self.judges, rows=getattr(self.final, "images", ROWS), say=say)

    def filled(self, **given: Any) -> dict[str, Any]:
        """The arguments of a search, its own where None is given."""
        own = {"x0": self.x0, "tessellation": self.grid, "bounds": self.bounds, "initial_sigma": self.initial_sigma}
        return {name: own[name] if value is None else value for name, value in given.items()}
