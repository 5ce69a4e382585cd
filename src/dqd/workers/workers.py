"""`Workers`: where evaluations happen that are not part of the compiled program."""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dqd.inputs.arguments import check_rounds
from dqd.workers.engine import Engine
from dqd.workers.here import Here
from dqd.workers.pool import Pool

if TYPE_CHECKING:
    from dqd.inputs.evaluator import Evaluator

ROWS = 4  # solutions for a worker at once


@dataclass(frozen=True)
class Workers:
    """Where evaluations happen, and what becomes of those that fail. How many workers there are does not show.

        workers = dqd.Workers(lambda: ProcessPoolExecutor(8, mp_context=get_context("spawn")), timeout=60)

    Args:
        executor: a concurrent.futures.Executor; a function that makes one, which is called again when its workers die;
            a distributed.Client; or the address of a Dask scheduler, such as "tls://head:8786". None is this process.
        rows: solutions per call, at least 1: by default the whole batch in this process, 4 for a worker. Unlike the
            number of workers, it may change how results round.
        timeout: seconds without any evaluation ending after which those that workers are busy with count as hanging.
        on_failure: "raise" stops at a solution that cannot be evaluated, "skip" reports it and goes on without it.
        rounds: above 1, the search is asynchronous: so many rounds are under way at once, workers are given solutions
            one by one as they become free, and none waits for the slowest of a batch. Each round has a copy of the
            emitter, as in `dqd.replicate`, and counts as an iteration. The order of insertions then depends on timing
            (`result.asynchronous`). Rounds that hold several times as many solutions as there are workers are enough.
        insecure: allow unencrypted tcp:// to a scheduler on another machine.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def score(x):
    ...     return -jnp.sum(x**2), x[:2]
    >>> grid, workers = dqd.Grid([-2, -2], [2, 2], [10, 10]), dqd.Workers(lambda: ThreadPoolExecutor(2), rows=6)
    >>> emitter = dqd.map_elites(sigma=0.3, batch_size=12)
    >>> dqd.illuminate(score, emitter, grid, x0=jnp.zeros(3), iterations=2, where=workers, progress=False).iterations
    2
    """

    executor: Any = None
    rows: int | None = None
    timeout: float | None = None
    on_failure: Literal["raise", "skip"] = "raise"
    rounds: int = 1
    insecure: bool = False

    def __post_init__(self) -> None:
        rows = 1 if self.rows is None else self.rows
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"rows: expected a whole number of solutions, at least 1, got {rows!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout: expected seconds, above 0, got {self.timeout!r}")
        if self.timeout is not None and self.executor is None:
            raise ValueError("timeout: an evaluation in this process cannot be stopped; give an executor as well")
        if self.on_failure not in ("raise", "skip"):
            raise ValueError(f'on_failure: expected "raise" or "skip", got {self.on_failure!r}')
        if check_rounds(self.rounds) > 1 and self.executor is None:
            raise ValueError("rounds: this process evaluates one after the other; give an executor as well")
        if self.rounds > 1 and rows > 1:
            raise ValueError(f"rows: asynchronous workers are given one solution at a time, got {rows}; leave it out")

    @property
    def rows_per_call(self) -> int | None:
        """Solutions per call; None is a whole batch. What stays in this process is not cut up unless so told."""
        if self.rounds > 1:
            return 1
        return int(self.rows) if self.rows is not None else None if self.executor is None else ROWS

    def engine(self, evaluator: Evaluator) -> Engine:
        """What evaluates, ready to begin."""
        executor = self.executor
        if executor is None:
            return Here()
        if isinstance(executor, str) or _is_client(executor):
            from dqd.workers.dask import Cluster

            return Cluster.of(executor, self.insecure)
        if isinstance(executor, Executor):
            return Pool.of(executor, evaluator)
        if callable(executor) and not isinstance(executor, type):
            return Pool.of(executor(), evaluator, make=executor)
        raise TypeError(
            "executor: expected a concurrent.futures.Executor, a function that makes one, a distributed.Client "
            f"or its address, got {executor!r}"
        )


def _is_client(executor: Any) -> bool:
    distributed = sys.modules.get("distributed")  # whoever holds a client has imported it
    return distributed is not None and isinstance(executor, distributed.Client)
