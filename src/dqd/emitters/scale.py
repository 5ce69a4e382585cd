"""Sigmas that were left out, to be filled in before a search begins.

An emitter, or a part of one, that can do without a sigma has a method `scaled(choose)`: the same with every sigma that
is None chosen by what it multiplies. One that has no such method is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dqd.types import Along, replace

T = TypeVar("T")
Choose = Callable[[Along], float]


def scaled(part: T, choose: Choose) -> T:
    """The same with all its sigmas."""
    return part.scaled(choose) if hasattr(part, "scaled") else part


def unscaled(part: Any) -> list[Along]:
    """What the sigmas that were left out multiply, each once."""
    found: dict[Along, float] = {}
    scaled(part, lambda along: found.setdefault(along, 1.0))
    return list(found)


def chosen(record: T, name: str, along: Along, choose: Choose) -> T:
    """The record with that number chosen, if it was left out."""
    left_out = getattr(record, name, 0.0) is None
    return replace(record, **{name: choose(along)}) if left_out else record
