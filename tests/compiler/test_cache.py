"""Compiled programs, kept: what threads do that want the same one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from dqd.compiler.cache import compile_once


class Lowered:
    """A program by its text, that knows how many of the same text are being compiled at once."""

    lock, now, most = threading.Lock(), {}, {}

    def __init__(self, text):
        self.text = text

    def as_text(self):
        return self.text

    def compile(self):
        self.count(1)
        time.sleep(0.05)
        self.count(-1)

    def count(self, change):
        with self.lock:
            for text in (self.text, "all"):
                self.now[text] = self.now.get(text, 0) + change
                self.most[text] = max(self.most.get(text, 0), self.now[text])


def test_threads_wait_for_the_one_that_compiles_their_program_and_for_no_other():
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda text: compile_once(Lowered(text)), ["this", "that"] * 3))
    assert Lowered.most["this"] == Lowered.most["that"] == 1
    assert Lowered.most["all"] == 2
