"""Nothing that is printed ends a run: not by a reader who left, not by a full disk, not by a closed stream."""

import ast
import contextlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from reliability.samples import short_run

from dqd import console
from dqd.console import saying
from dqd.runners import progress


def without_reader():
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w", buffering=1)


def closed():
    stream = open(os.devnull, "w")  # noqa: SIM115
    stream.close()
    return stream


class HungUp:
    """A terminal that went away."""

    encoding = "utf-8"

    def isatty(self):
        return True

    def write(self, words):
        raise BrokenPipeError

    flush = fileno = lambda self: self.write("")


STREAMS = {
    "without reader": without_reader,
    "full": lambda: os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", buffering=1),
    "closed": closed,
    "none": lambda: None,
    "terminal": HungUp,
}


@pytest.fixture(params=STREAMS)
def broken(request, monkeypatch):
    stream = STREAMS[request.param]()
    monkeypatch.setattr(sys, "stderr", stream)
    yield stream
    monkeypatch.undo()
    if hasattr(stream, "fileno") and not isinstance(stream, HungUp) and not stream.closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        stream.close()


def test_a_search_shows_its_progress_to_nobody(broken, monkeypatch):
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    assert short_run(progress=True).iterations == 6


def test_a_warning_to_a_closed_stderr_is_lost():
    code = "import sys; sys.stderr.close(); from dqd.console import saying; saying.warn('outside the grid')"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_warning_that_is_an_error_stays_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="outside the grid"):
            saying.warn("outside the grid")


def test_a_line_is_not_said_where_it_would_have_to_wait(monkeypatch):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, bytes(4096)):
            pass
    os.set_blocking(write, True)
    with os.fdopen(write, "w") as stream, os.fdopen(read):
        monkeypatch.setattr(sys, "stderr", stream)
        saying.say("a reader that sleeps")


def dqd_in_shell(redirected: str, *arguments: str) -> tuple[int, str, str]:
    command = ["bash", "-c", f'set -o pipefail; "$@" {redirected}', "bash", sys.executable, "-m", "dqd", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("redirected", "code", "words"),
    [
        (">&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        ("| true", 0, ""),
        ("2>/dev/full", 0, ""),
        (">/dev/full", 1, "dqd: error: the output could not be written ([Errno 28] No space left on device)\n"),
        (">/dev/full 2>&1", 1, ""),
    ],
)
def test_commands_end_with_sensible_codes_wherever_they_print(redirected, code, words):
    found, _, said = dqd_in_shell(redirected, "--version")
    assert (found, said) == (code, words)


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2>&1 | true", ">&- 2>&-"])
def test_an_error_that_nobody_reads_keeps_its_code(redirected):
    assert dqd_in_shell(redirected, "export", "nowhere", "--to", "a.csv")[0] == 1


def test_files_do_not_take_the_place_of_closed_streams():
    code = "import os; from dqd.cli import streams; streams.protect(); os._exit(os.open('/', os.O_RDONLY))"
    done = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", sys.executable, "-c", code], check=False)
    assert done.returncode == 3


def test_words_that_a_stream_cannot_spell_are_escaped():
    code = "import sys; from dqd.cli import streams; streams.protect(); print('a \\u2192 b')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert done.stdout == b"a \\u2192 b\n"


# Who prints -----------------------------------------------------------------------------------------------------------

PRINTERS = {
    "latent/weights/torch_child.py": "a process of its own",
}


def prints(node):
    match node:
        case ast.Call(func=ast.Name(id="print")) | ast.Attribute(value=ast.Name(id="warnings"), attr="warn"):
            return True
    return False


def test_all_words_of_the_library_pass_one_place():
    source = Path(console.__file__).parents[1]
    names = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(map(prints, ast.walk(ast.parse(path.read_text()))))
    }
    others = {name for name in names if not name.startswith(("console/", "cli/"))}
    assert others == PRINTERS.keys(), "use dqd.console.saying"
