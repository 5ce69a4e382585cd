"""The names of the metrics; and things asked for by name: an unknown one is answered with the nearest ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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
    raise ValueError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")


def lacking(thing: Any, protocol: type) -> str:
    """What a thing that has some of an interface lacks of it, in words; nothing for one that has none of it."""
    wanted = {name for name in (*vars(protocol), *vars(protocol).get("__annotations__", {})) if name[0] != "_"}
    missing = sorted(name for name in wanted if not hasattr(thing, name))
    return f", which lacks {', '.join(missing)}" if 0 < len(missing) < len(wanted) else ""
