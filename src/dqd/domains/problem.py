"""A domain with all that a search of it needs, who has the last word on what it finds, and who may doubt it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from jax import Array

from dqd.archives.archive import Archive
from dqd.domains.domain import Domain
from dqd.domains.rejudge import ROWS, Say, heard, nobody, rejudged
from dqd.saved.agreement import DISAGREEMENT, Agreement, Opinion
from dqd.tessellations.tessellation import Tessellation
from dqd.types import replace

D = TypeVar("D", bound=Domain)


class Witness(Protocol):
    """Held-out judges: they say what they think of elites when the search has ended, and decide nothing."""

    @property
    def opinions(self) -> tuple[Opinion, ...]: ...

    def beside(self, domain: Any) -> Domain:
        """A domain that says the same as this one, with all opinions among the `fields` of its evaluations."""
        ...


@dataclass(frozen=True)
class Problem(Generic[D]):
    """What makes a domain a search: a grid, where to start, and what to call it all in a picture.

    `dqd.illuminate(problem, emitter)` takes all of it. Where `final` is set, the scores of the search are provisional
    (a preview network, fresh noise, random crops): at the end the elites are judged by it, and only what comes out
    counts. `judged` does so. Where there is a `witness`, its opinions are fields of that archive.

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
    witness: Witness | None = None  # held-out judges

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

    @property
    def is_judged(self) -> bool:
        """Whether somebody looks at the elites when the search has ended."""
        return bool(self.judges or self.witness)

    @property
    def opinions(self) -> tuple[Opinion, ...]:
        """What held-out judges are asked about."""
        return () if self.witness is None else self.witness.opinions

    def judged(self, archive: Archive, say: Say = nobody) -> Archive:
        """The archive that counts: by the judges' mean, or the given one where the scores of the search are final.

        With the opinions of held-out judges as fields, and how far off the archive is by the worst of them.
        `say` is told how many of how many elites are done. A domain of images is asked for as many at once as it says
        fit into one pass.
        """
        final: Any = self.final or self.domain
        rows, names = getattr(final, "images", ROWS), [opinion.field for opinion in self.opinions]
        if self.judges:
            judges = [judge if self.witness is None else self.witness.beside(judge) for judge in self.judges]
            archive = rejudged(archive, judges, rows=rows, say=say, fields=dict.fromkeys(names, ()))
        elif self.witness is not None:
            archive = archive.with_fields(heard(archive, self.witness.beside(final), names, rows=rows, say=say))
        if self.witness is None:
            return archive
        return archive.with_fields({DISAGREEMENT: Agreement(archive.to_numpy(False), self.opinions).disagreement})

    def filled(self, **given: Any) -> dict[str, Any]:
        """The arguments of a search, its own where None is given."""
        own = {"x0": self.x0, "tessellation": self.grid, "bounds": self.bounds, "initial_sigma": self.initial_sigma}
        return {name: own[name] if value is None else value for name, value in given.items()}
