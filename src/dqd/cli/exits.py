"""How a command ends, and what it says on the way: one line for an error, one for a warning."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from dqd.result import Result

FAILURE, USAGE = 1, 2
STOPPED = {"interrupted": 130, "terminated": 143}
EXIT_CODES = """\b
Exit codes: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted, 143 terminated
(after the first signal, what was found so far is still shown and saved).
"""


def leave(result: Result) -> NoReturn:
    raise typer.Exit(STOPPED.get(result.stopped or "", 0))


def saying(quiet: bool) -> Callable[[str], None]:
    return (lambda line: None) if quiet else (lambda line: typer.echo(line, err=True))


@contextlib.contextmanager
def explained(code: int, *wrong: type[Exception]) -> Iterator[None]:
    """Errors and warnings of the library in one line each. DQD_TRACEBACK=1 shows where an error comes from.

    The command ends with `code`; with 2 where the error is one of `wrong`, which say that a value was.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: typer.echo(f"dqd: warning: {message}", err=True)
        try:
            yield
        except (ValueError, TypeError, OSError, RuntimeError, MemoryError, ImportError) as error:
            if os.environ.get("DQD_TRACEBACK") or isinstance(error, typer.Exit):
                raise
            from dqd.storage.settings import SettingsChangedError

            sys.stdout.flush()
            words = str(error).strip() or type(error).__name__
            typer.echo(f"dqd: error: {words.splitlines()[0]}", err=True)
            usage = isinstance(error, (FileExistsError, SettingsChangedError, *wrong))
            raise typer.Exit(USAGE if usage else code) from None
