"""Held-out judges: scorers that no search sees, and what they say of the images that it found.

problem = held_out(problem, Judge("second age network", scorer, {"age": 10.0}))
result = dqd.illuminate(problem, emitter)
result.agreement.qd_score         # of the elites that the judge agrees with
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from dqd.domains.domain import Domain
from dqd.domains.problem import Problem
from dqd.inputs.names import check_known
from dqd.latent.domain import LatentDomain, Scorer, in_passes
from dqd.latent.host import HostedLatent
from dqd.latent.terms import signed, unsigned
from dqd.latent.torch_models import check_part, is_foreign
from dqd.saved.agreement import Opinion
from dqd.types import Evaluation, pytree, replace, static

NOBODY = "none"


@pytree
class Judge:
    """A scorer that is kept out of the search.

    Args:
        name: what to call it.
        scorer: its scores are compared with those of the same names that were searched, in the same units.
        tolerance: by the names of scores, in their units, how far apart both may be and still agree. A score without
            one is not compared.
    """

    name: str = static()
    scorer: Scorer
    tolerance: Mapping[str, float] | tuple[tuple[str, float], ...] = static()

    def __post_init__(self) -> None:
        check_part("scorer", self.scorer)
        for score, amount in dict(self.tolerance).items():
            if score not in self.scorer.names:
                known = ", ".join(self.scorer.names)
                raise ValueError(f"judge {self.name}: a tolerance for {score!r}, but it scores {known}")
            if not 0 < amount < float("inf"):
                raise ValueError(f"judge {self.name}: tolerance of {score}: expected a number above 0, got {amount}")
        object.__setattr__(self, "tolerance", tuple(dict(self.tolerance).items()))  # a key of compiled programs


@pytree
class Witness:
    """What judges have to say about a latent domain: its scores and theirs, from one look at each image."""

    judges: tuple[Judge, ...]
    opinions: tuple[Opinion, ...] = static()

    @staticmethod
    def of(domain: LatentDomain, judges: tuple[Judge, ...]) -> Witness:
        """For those scores of the domain that its objective and measures name."""
        terms = unsigned((domain.objective, *domain.measures))
        scales = [abs(domain.stored[0]), *(1.0 for _ in domain.measures)]
        return Witness(
            judges,
            tuple(
                Opinion(judge.name, term, of, amount * scales[of])
                for judge in judges
                for of, term in enumerate(terms)
                for score, amount in dict(judge.tolerance).items()
                if score == term
            ),
        )

    def beside(self, domain: LatentDomain) -> Any:
        """The domain with these opinions as fields of what it says."""
        foreign = domain.on_host() is not domain or any(is_foreign(judge.scorer) for judge in self.judges)
        return HeardOnHost(domain, self) if foreign else Heard(domain, self)

    def told(self, domain: LatentDomain, solutions: Any, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Fields, of what each judge scored: in the units of the archive, signed, penalised and scaled as there."""
        found = {}
        for opinion in self.opinions:
            value = signed((domain.objective, *domain.measures)[opinion.of], columns[opinion.judge])
            value = value.astype(solutions.dtype)
            found[opinion.field] = value if opinion.of else domain.store(value - domain.penalty(solutions))
        return found


@pytree
class Heard(Domain):
    """A latent domain whose evaluations have the opinions of judges as fields."""

    domain: LatentDomain
    witness: Witness

    def evaluate(self, solutions: Array) -> Evaluation:
        (outputs, feasible), opinions = in_passes(self._look, solutions, self.domain.images)
        stored = self.domain.store(outputs[:, 0])
        return Evaluation(stored, outputs[:, 1:], feasible=feasible, fields=opinions)

    def _look(self, solutions: Array) -> tuple[tuple[Array, Array | None], dict[str, Array]]:
        images, judges = self.domain.images_of(solutions), self.witness.judges
        columns = {j.name: dict(zip(j.scorer.names, j.scorer.scores(images).T, strict=True)) for j in judges}
        return self.domain.look_at(images, solutions), self.witness.told(self.domain, solutions, columns)


@dataclass(frozen=True)
class HeardOnHost:
    """The same where the domain, or a judge, has parts that JAX cannot trace."""

    domain: LatentDomain
    witness: Witness

    def evaluate(self, solutions: Any) -> Evaluation:
        host, rows = HostedLatent(self.domain), np.asarray(solutions)
        if self.domain.on_host() is self.domain:
            found, images = _evaluate(self.domain, rows), _images(self.domain, rows)
        else:
            found, images = host.look(rows)
        columns = {judge.name: host.columns(judge.scorer, images) for judge in self.witness.judges}
        return replace(found, fields=self.witness.told(self.domain, rows, columns))


_evaluate = jax.jit(lambda domain, solutions: domain.evaluate(solutions))
_images = jax.jit(lambda domain, solutions: domain.images_of(solutions))


def held_out(problem: Problem[Any], *judges: Judge) -> Problem[Any]:
    """The same problem, whose elites these judges look at when the search has ended.

    Their opinions are fields of the archive that comes out, and `result.agreement` says how far they agree. Whether
    they look changes nothing else. Without judges nobody looks.
    """
    if len({judge.name for judge in judges}) != len(judges):
        raise ValueError(f"judges: every judge needs a name of its own, got {', '.join(j.name for j in judges)}")
    domain = problem.final or problem.domain
    for judge in judges:
        if not opines(judge, domain):
            known, terms = ", ".join(dict(judge.tolerance)), ", ".join((domain.objective, *domain.measures))
            raise ValueError(f"judge {judge.name}: it has an opinion on {known}, not on what is searched ({terms})")
    return replace(problem, witness=Witness.of(domain, judges) if judges else None)


def with_held_out(
    problem: Problem[Any], there_are: Mapping[str, Callable[[], Judge]], names: Sequence[str] | None
) -> Problem[Any]:
    """The problem with judges by name; by default with all that have an opinion; with none, if that is the name."""
    if names is not None:
        for name in names:
            check_known("judge", name, (*there_are, NOBODY))
        if NOBODY in names and len(names) > 1:
            raise ValueError(f"judge: {NOBODY} stands alone, got {', '.join(names)}")
        return held_out(problem, *(there_are[name]() for name in names if name != NOBODY))
    judges = [make() for make in there_are.values()]
    return held_out(problem, *(judge for judge in judges if opines(judge, problem.final or problem.domain)))


def opines(judge: Judge, domain: LatentDomain) -> bool:
    """Whether a judge has an opinion on what is searched."""
    return bool(Witness.of(domain, (judge,)).opinions)
