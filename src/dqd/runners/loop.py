"""Launch after launch: between two of them the host shows progress, listens for Ctrl-C, writes checkpoints and decides
whether to go on."""

from __future__ import annotations

import time
from collections import deque

import jax
import numpy as np

from dqd.archives.metrics import Standing
from dqd.runners.callbacks import Callbacks
from dqd.runners.checkpoints import Checkpoints, NoCheckpoints
from dqd.runners.compiled import LONGEST
from dqd.runners.progress import CompileClock, Interrupt, Progress
from dqd.runners.runner import Runner
from dqd.runners.until import Now, Until
from dqd.search.health import Health
from dqd.search.history import History
from dqd.search.search import SearchState, Tally


def advance(
    runner: Runner,
    state: SearchState,
    iterations: int,
    chunk: int,
    until: Until | None,
    bar: Progress,
    interrupt: Interrupt,
    history: History,
    checkpoints: Checkpoints | NoCheckpoints,
    callbacks: Callbacks,
) -> tuple[SearchState, str | None]:
    """Launch after launch, from where the state is. The history grows as they end.

    Unless `until` must decide first, one launch is in flight while the last one is looked at. A state that is to be
    kept is not handed on before it is on disk, as its buffers are donated.
    """
    ahead = 0 if until is not None else 1
    flying: deque[tuple[int, Standing, Tally]] = deque()
    launched, stopped, started = history.done, None, time.monotonic()
    any_time = getattr(until, "any_time", False)

    spent, cells, offset = jax.device_get(state.tally), state.reported.num_cells, state.reported.offset

    def now() -> Now:
        return Now(history, time.monotonic() - started, float(np.mean(spent.each())))

    def enough(done: int) -> bool:
        """`until` is asked at multiples of `chunk`, wherever launches end: when a run stops is no accident.

        Unless it asks for the time, which is one.
        """
        if until is None or done == 0 or (done % chunk and not any_time):
            return False
        return bool(until(now()))

    if launched < iterations and enough(launched):  # a run that ended so ends so again
        stopped = "until"
    health, pace, lap = Health(state.tally if launched else None), Pace(), CompileClock()
    while flying or (launched < iterations and stopped is None):
        hold = bool(flying) and checkpoints.due(launched)
        if launched < iterations and stopped is None and not hold:
            size = min(pace.length, iterations - launched, checkpoints.before_view(launched))
            size = min(size, chunk - launched % chunk) if until and not any_time else size
            state, rows, tally = runner.launch(state, size)
            launched += size
            flying.append((launched, rows, tally))
            if len(flying) <= ahead and launched < iterations:
                continue
        done, rows, tally = flying.popleft()
        rows, tally = jax.device_get((rows, tally))  # waits for the device
        spent = tally
        size = done - history.done
        history.append(jax.tree.map(lambda words: words[:size], rows).columns(cells, offset))  # noqa: B023
        pace.took(lap.read()[0], size)
        health.check(done, tally)
        checkpoints.passed(done)
        bar.update(done, history.latest())
        callbacks.tell("on_chunk", now())
        if interrupt.requested is not None:
            stopped = interrupt.reason
        elif enough(done):
            stopped = "until"
        elif not flying and launched < iterations and checkpoints.due(done):
            checkpoints.keep(state, history)
        lap = CompileClock()
    jax.block_until_ready(state)
    return state, stopped


class Pace:
    """How many iterations to launch at once: what takes about a second, so that signals need not wait for long."""

    SECONDS = 1.0
    GROWTH = 16  # at most, from one launch to the next

    def __init__(self) -> None:
        self.length = 1

    def took(self, seconds: float, iterations: int) -> None:
        fitting = int(self.SECONDS * iterations / max(seconds, 1e-9))
        self.length = max(1, min(fitting, self.GROWTH * self.length, LONGEST))
