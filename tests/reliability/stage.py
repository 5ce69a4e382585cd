"""The test's side of `actors.py`: starting actors, hearing them, killing them."""

import os
import signal
import subprocess
import sys
from pathlib import Path


class Stage:
    def __init__(self) -> None:
        program = Path(__file__).with_name("actors.py")
        self.process = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)

    def order(self, role: str, folder: Path, *numbers: int) -> None:
        """Start an actor."""
        assert self.process.stdin is not None
        print(role, folder, *numbers, file=self.process.stdin, flush=True)

    def hear(self) -> tuple[int, str, int]:
        """Who says what: process id, a word, a number."""
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        return int(words[0]), words[1], int(words[2]) if len(words) > 2 else 0

    def kill(self, actor: int) -> None:
        os.kill(actor, signal.SIGKILL)
