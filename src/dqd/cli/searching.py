"""A problem and an emitter by name become a result, whatever command asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqd.domains.problem import Problem
    from dqd.emitters import Emitter
    from dqd.result import Result

process_is_ours = False  # then a second Ctrl-C may end it at once


def search(
    problem: Problem[Any], emitter: Emitter, iterations: int, seed: int, *, quiet: bool = False, **options: Any
) -> Result:
    from dqd.compiler import cache
    from dqd.illumination import Terminated, illuminate
    from dqd.runners.progress import Interrupt

    Interrupt.abrupt = process_is_ours
    cache.enable()
    try:
        return illuminate(problem, emitter, iterations=iterations, seed=seed, progress=not quiet, **options)
    except Terminated as end:
        return end.result


@contextlib.contextmanager
def precision(x64: bool) -> Iterator[None]:
    """float64 while the run lasts and its figures are read. Without --x64, whatever JAX is set to."""
    import jax

    with jax.enable_x64(True) if x64 else contextlib.nullcontext():
        yield
