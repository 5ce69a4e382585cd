"""A problem and an emitter by name become a result, whatever command asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pathlib import Path

    from dqd.domains.problem import Problem
    from dqd.emitters import Emitter
    from dqd.result import Result
    from dqd.storage.folder import Folder

process_is_ours = False  # then a second Ctrl-C may end it at once


def search(
    problem: Problem[Any],
    emitter: Emitter,
    iterations: int,
    seed: int,
    *,
    quiet: bool = False,
    out: Folder | None = None,
    archive: Path | None = None,
    seconds: float | None = None,
    **kept: Any,
) -> Result:
    """`kept` says in what elites live, where that is not the grid of the problem."""
    from dqd.compiler import cache
    from dqd.illumination import Terminated, illuminate
    from dqd.runners.progress import Interrupt

    Interrupt.abrupt = process_is_ours
    cache.enable()
    try:
        options: Any = {"progress": not quiet, "out": out, "archive": archive, "time_limit": seconds, **kept}
        return illuminate(problem, emitter, iterations=iterations, seed=seed, **options)
    except Terminated as end:
        return cast("Result", end.result)  # of one seed


@contextlib.contextmanager
def precision(x64: bool) -> Iterator[None]:
    """float64 while the run lasts and its figures are read. Without --x64, whatever JAX is set to."""
    import jax

    with jax.enable_x64(True) if x64 else contextlib.nullcontext():
        yield
