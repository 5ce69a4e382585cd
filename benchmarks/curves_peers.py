"""CMA-MEGA of pyribs and of QDax on the LP sphere, in any size: what `curves.py` measures in their environments."""

import contextlib
import time
from collections.abc import Callable

from settings import Settings, settings_of

try:
    import worker_pyribs
except ImportError:  # the other environment
    import worker_qdax


def iteration(
    n: int, cells: int, batch: int, emitters: int, seeds: int, alone: contextlib.AbstractContextManager
) -> dict[str, float]:
    """Microseconds; the best of three times that fill about half a second."""
    begin = time.perf_counter()
    advance, least = _search(settings_of("lp-sphere", "cma-mega", n, round(cells**0.5)), emitters)
    advance(least)
    started = time.perf_counter() - begin
    with alone:
        took, iterations = _timed(advance, least), least
        iterations = max(1, int(0.5 / max(took, 1e-9))) * least
        best = min(_timed(advance, iterations) for _ in range(3)) / iterations
    return {
        "us": 1e6 * best,
        "compile_seconds": max(0.0, started - took),
        "evaluations_per_second": batch * emitters / best,
    }


def _timed(advance: Callable[[int], None], iterations: int) -> float:
    begin = time.perf_counter()
    advance(iterations)
    return time.perf_counter() - begin


def _search(about: Settings, emitters: int) -> tuple[Callable[[int], None], int]:
    """What advances a search, and by how many iterations at least."""
    if "worker_qdax" in globals():
        return worker_qdax.QDaxSearch("qdax", about, 0).advance, worker_qdax.CHUNK
    search = worker_pyribs.PyribsSearch("pyribs-float32", about, 0)
    if emitters > 1:
        search.scheduler = worker_pyribs.Scheduler(
            search.archive, [search._choose(about, seed)[0] for seed in range(emitters)]
        )

    def advance(iterations: int) -> None:
        for _ in range(iterations):
            points = search.scheduler.ask_dqd()
            jacobians = worker_pyribs.np.stack([search.domain.jacobian(point) for point in points])
            search.scheduler.tell_dqd(*search.domain.evaluate(points), jacobians)
            search.scheduler.tell(*search.domain.evaluate(search.scheduler.ask()))

    return advance, 1
