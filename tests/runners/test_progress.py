"""What a bar shows, and where there is one."""

import io
import os
import signal
import sys
from types import ModuleType

import pytest

from dqd.runners.progress import Interrupt, Progress

METRICS = {"qd_score": 1.0, "coverage": 2.0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("place", ["terminal", "notebook", "file"])
def test_a_bar_says_that_it_compiles_until_the_first_chunk_is_done(place, monkeypatch):
    stream = Terminal() if place == "terminal" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    if place == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with Progress(10) as progress:
        before = stream.getvalue()
        progress.update(10, METRICS)
    assert ("compiling ..." in before) == (place != "file")
    assert ("QD-score 1.00, coverage 2.00 %" in stream.getvalue()) == (place != "file")
    assert "compiling" not in stream.getvalue().rpartition("\r")[2]


def test_no_bar_where_none_is_wanted(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(10, enabled=False) as progress:
        progress.update(10, METRICS)
    assert stream.getvalue() == ""


def test_a_closed_terminal_asks_to_stop_unless_the_run_was_told_to_outlive_it():
    def heard(handler):
        before = signal.signal(signal.SIGHUP, handler)
        try:
            with Interrupt(resumable=True) as interrupt:
                os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == handler
            return interrupt.reason
        finally:
            signal.signal(signal.SIGHUP, before)

    assert heard(signal.SIG_DFL) == "terminated"
    assert heard(signal.SIG_IGN) is None  # nohup
