"""The names of the metrics; and things asked for by name: an unknown one is answered with the nearest ones."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

METRICS = ("qd_score", "coverage", "best", "mean")  # of an archive


def known(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry of that name; an unknown name is answered with the nearest ones and the list of all."""
    check_known(kind, name, table)
    return table[name]


def check_known(kind: str, name: str, names: Iterable[str]) -> None:
    """Raise ValueError unless the name is among them."""
    names = list(names)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    every = f"Known: {', '.join(names)}" if names else "There are none"
    raise ValueError(f"unknown {kind} {name!r}{hint} {every}")


def imported(option: str, name: str) -> Callable[..., Any]:
    """The function MODULE:NAME, found as Python finds modules from the folder one is in. Importing runs its module."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"{option}: expected MODULE:NAME, such as drawing:draw, got {name!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    function = getattr(importlib.import_module(module), attribute, None)
    if not callable(function):
        raise ValueError(f"{option}: {module} has no function {attribute!r}")
    return function


def lacking(thing: Any, protocol: type) -> str:
    """What a thing that has some of an interface lacks of it, in words; nothing for one that has none of it."""
    wanted = {name for name in (*vars(protocol), *vars(protocol).get("__annotations__", {})) if name[0] != "_"}
    missing = sorted(name for name in wanted if not hasattr(thing, name))
    return f", which lacks {', '.join(missing)}" if 0 < len(missing) < len(wanted) else ""
