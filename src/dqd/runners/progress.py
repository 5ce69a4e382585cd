"""What a long run shows and listens to: progress, Ctrl-C, and how much of its time went into compilation."""

from __future__ import annotations

import _signal  # what `signal` calls, after it has looked for enumerations for ten times as long
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import jax

from dqd.console.saying import Lasting, in_notebook, on_terminal, say

HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # the terminal was closed; Windows has none
STOPPED: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", HANGUP: "terminated"}
LOG_SECONDS = 10.0  # between two lines where there is no terminal


class Progress:
    """A bar on a terminal or in a notebook, plain lines elsewhere; both on stderr."""

    def __init__(self, iterations: int, enabled: bool | None = None, done: int = 0) -> None:
        self.iterations, self.before = iterations, done  # those of earlier sessions
        self.enabled = enabled is not False
        self.started = self.logged = time.monotonic()
        self.first = 0  # iterations of the first chunk, whose time went into compilation
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if self.enabled and (on_terminal() or in_notebook()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets it is a bar of letters, which will do
                from tqdm.auto import tqdm

            shape = {"unit": "it", "unit_scale": True, "dynamic_ncols": True}
            self.bar = tqdm(total=self.iterations, initial=self.before, file=Lasting(sys.stderr), **shape)
            self.bar.set_postfix_str("compiling ...")  # until the first chunk is done
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, done: int, metrics: dict[str, float]) -> None:
        if not self.first:
            self.first, self.started = done, time.monotonic()
        figures = f"QD-score {metrics['qd_score']:.2f}, coverage {metrics['coverage']:.2f} %"
        if self.bar is not None:
            self.bar.set_postfix_str(figures, refresh=False)
            self.bar.update(done - self.bar.n)
        elif self.enabled and time.monotonic() - self.logged >= LOG_SECONDS:
            self.logged = time.monotonic()
            line = f"dqd: {done:,}/{self.iterations:,} iterations, {figures}"
            if done > self.first:
                left = (self.logged - self.started) * (self.iterations - done) / (done - self.first)
                line += f", about {left:.0f} s left"
            say(line)


def judging(enabled: bool | None) -> Callable[[int, int], None]:
    """Told of all elites that are judged again, it speaks now and then, and at the end."""
    logged = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal logged
        if enabled is not False and (done == total or time.monotonic() - logged >= LOG_SECONDS):
            logged = time.monotonic()
            say(f"dqd: judged again: {done:,} of {total:,} elites")

    return told


class Interrupt:
    """The first SIGINT or SIGTERM asks politely (`requested`), the second ends the run at once.

    A second Ctrl-C raises KeyboardInterrupt, or ends the process where `abrupt` is set, as the command line does.
    SIGTERM, and SIGHUP unless it is ignored (nohup), are listened to only where something can be kept for later
    (`resumable`); a second one ends the process.
    """

    abrupt = False

    def __init__(self, resumable: bool = False) -> None:
        self.signals: list[int] = [signal.SIGINT, *([signal.SIGTERM] if resumable else [])]
        if resumable and signal.getsignal(HANGUP) not in (signal.SIG_IGN, None):
            self.signals.append(HANGUP)
        self.requested: int | None = None  # the signal
        self.previous: dict[int, Any] = {}

    @property
    def reason(self) -> str | None:
        """Why the run is to stop: None, "interrupted" (Ctrl-C) or "terminated"."""
        return None if self.requested is None else STOPPED[self.requested]

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self.previous = {number: signal.signal(number, self._handle) for number in self.signals}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = number
        for other in self.signals if self.abrupt else self.signals[1:]:
            signal.signal(other, signal.SIG_DFL)  # works even while Python waits for the device
        again = "Ctrl-C again stops" if number == signal.SIGINT else "the same signal again stops"
        say(f"dqd: stopping after this chunk; {again} at once")


class uninterrupted:  # noqa: N801 - reads as a function does
    """Ctrl-C waits: in the midst of it, an exception would leave a thing half done."""

    def __enter__(self) -> None:
        self.waiting: list[FrameType | None] = []
        self.handler = _signal.getsignal(signal.SIGINT)
        self.waits = callable(self.handler) and threading.current_thread() is threading.main_thread()
        if self.waits:
            _signal.signal(signal.SIGINT, lambda number, frame: self.waiting.append(frame))

    def __exit__(self, *_: object) -> None:
        if self.waits:
            _signal.signal(signal.SIGINT, self.handler)
            if self.waiting:
                self.handler(signal.SIGINT, self.waiting[0])


class CompileClock:
    """Wall time since it was made, split into compilation by this thread (tracing included) and the rest."""

    _spent = threading.local()  # programs compiled ahead in other threads are not this one's time
    _listening = False

    def __init__(self) -> None:
        if not CompileClock._listening:
            jax.monitoring.register_event_duration_secs_listener(CompileClock._listen)
            CompileClock._listening = True
        self.started, self.before = time.perf_counter(), self._total()
        self.earlier = (0.0, 0.0)  # what a run that goes on has spent already

    @staticmethod
    def _total() -> float:
        return getattr(CompileClock._spent, "seconds", 0.0)

    @staticmethod
    def _listen(event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            CompileClock._spent.seconds = CompileClock._total() + duration_secs

    def read(self) -> tuple[float, float]:
        """(seconds without compilation, seconds of compilation)."""
        compiling = self._total() - self.before
        return self.earlier[0] + time.perf_counter() - self.started - compiling, self.earlier[1] + compiling
