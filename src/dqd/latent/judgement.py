"""Elites of a latent domain judged once more: not by the noise and the crops that they were lucky with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dqd.archives.archive import Archive
from dqd.domains.problem import Problem
from dqd.domains.rejudge import rejudged
from dqd.latent.domain import LatentDomain
from dqd.types import replace

SALTS = tuple(range(1, 9))  # draws by which elites are judged at the end; 0 is the one that a search sees


def with_judges(problem: Problem[LatentDomain]) -> Problem[LatentDomain]:
    """The same problem, whose elites are judged again under other salts where noise or crops make scores luck."""
    domain = problem.domain
    if not domain.fresh and domain.cutouts is None:
        return problem
    return replace(problem, final=problem.final or domain, salts=problem.salts or SALTS)


def reevaluate(
    found: Any,
    domain: LatentDomain,
    salts: Sequence[int] = (1,),
    *,
    say: Callable[[int, int], None] = lambda done, total: None,
) -> Archive:
    """A new archive of the elites of a result or archive, by their scores under `domain`, averaged over the salts.

    For judges and salts of one's own; `problem.judged(archive)` asks those that a problem names. What happens to elites
    that meet in a cell, `dqd.domains.rejudged` says. It costs len(salts) images per elite.

    Args:
        found: what `dqd.illuminate` gave, or its archive.
        domain: the judge, such as the domain that was searched.
        salts: whole numbers; each stands for another draw of noise and crops. Without fresh noise and cut-outs all
            salts give the same scores, and one is enough. The search itself has seen that of its domain, 0 unless told.
        say: told how many of how many elites are done.

        >>> from dqd.latent.problems import digits
        >>> problem = digits.build(resolution=5)
        >>> solution = problem.x0[None] + 1
        >>> archive, _ = Archive.empty(problem.grid, 16).add(solution, problem.domain.evaluate(solution))
        >>> again = reevaluate(archive, replace(problem.domain, norm_penalty=0.5))
        >>> round(float(archive.best - again.best), 3)  # 10, the scale of what is stored, times 0.5 times 1
        5.0
    """
    archive: Archive = getattr(found, "archive", found)
    return rejudged(archive, [replace(domain, salt=salt) for salt in salts], rows=domain.images, say=say)
