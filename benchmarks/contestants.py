"""Who takes part: each contestant's program and environment, and a handle on its running process."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from settings import SIDE

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".environments"

# contestant -> (worker program, environment; "ours" is the interpreter that runs the harness)
PROGRAMS = {
    "dqd": ("worker_ours.py", "ours"),
    "floor": ("worker_ours.py", "ours"),
    "dqd-ask-tell": ("worker_ours.py", "ours"),
    "dqd-evaluator": ("worker_ours.py", "ours"),
    "pyribs": ("worker_pyribs.py", "pyribs"),
    "pyribs-float32": ("worker_pyribs.py", "pyribs"),
    "qdax": ("worker_qdax.py", "qdax"),
    "qdax-patched": ("worker_qdax.py", "qdax"),
}


class ContestantError(RuntimeError):
    """A contestant could not be installed, started or run; the message is the end of what it wrote to stderr."""


@dataclass
class Contestant:
    """One worker process and every turn it has taken."""

    name: str
    process: subprocess.Popen
    errors: IO[str]  # collects its stderr
    ready: dict = field(default_factory=dict)
    turns: list[dict] = field(default_factory=list)

    def listen(self) -> dict:
        """The next answer; raises with the end of stderr when the process ended instead."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise ContestantError(_last_words(self.errors.read()))
        return json.loads(line)

    def run(self, iterations: int) -> dict:
        with suppress(BrokenPipeError):  # listen() says why
            print("run", iterations, file=self.process.stdin, flush=True)
        return self.listen()

    def stop(self) -> None:
        try:
            print("quit", file=self.process.stdin, flush=True)
            self.process.wait(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def start(name: str, domain: str, algorithm: str, n: int, seed: int, side: int = SIDE) -> Contestant:
    """Start a worker and wait until it is compiled and warm."""
    program, environment = PROGRAMS[name]
    options = ["--seed", str(seed), "--side", str(side)]
    command = [interpreter(environment), str(HERE / program), name, domain, algorithm, str(n), *options]
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
    variables = os.environ | ({"PYTHONPATH": str(HERE.parent / "src")} if environment == "ours" else {})
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables
    )
    contestant = Contestant(name, process, errors)
    contestant.ready = contestant.listen()
    return contestant


def interpreter(environment: str) -> str:
    """The Python of an environment, which is created on first use and again when its requirements change."""
    if environment == "ours":
        return sys.executable
    requirements = HERE / "peers" / f"requirements-{environment}.txt"
    folder = ENVIRONMENTS / environment
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        print(f"creating the environment of {environment} ...", file=sys.stderr, flush=True)
        _install([sys.executable, "-m", "venv", "--clear", str(folder)])
        _install([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)])
        stamp.write_text(requirements.read_text())
    return str(python)


def _install(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ContestantError(_last_words(done.stderr))


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "ended without a word"
