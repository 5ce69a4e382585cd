"""Elites of a latent domain judged once more, under other salts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dqd.archives.archive import Archive
from dqd.domains.rejudge import rejudged
from dqd.latent.domain import LatentDomain
from dqd.types import replace


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
        >>> import dqd
        >>> problem = digits.build(resolution=5)
        >>> result = dqd.illuminate(
        ...     problem.domain, dqd.map_elites(0.5), problem.grid, x0=problem.x0, iterations=5, progress=False
        ... )
        >>> stern = replace(problem.domain, norm_penalty=0.1)
        >>> bool(reevaluate(result, stern).metrics.qd_score < result.qd_score)
        True
    """
    archive: Archive = getattr(found, "archive", found)
    return rejudged(archive, [replace(domain, salt=salt) for salt in salts], rows=domain.images, say=say)
