"""A package that is not there is named, with what installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(what: str, install: str) -> Iterator[None]:
    """Within it, what cannot be imported is what `what` needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs {error.name}: pip install {install}") from None
