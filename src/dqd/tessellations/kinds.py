"""The tessellations that files are read as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dqd.tessellations.grid import Grid
from dqd.tessellations.tessellation import Tessellation

KINDS: dict[str, type[Tessellation]] = {Grid.kind: Grid}


def register(tessellation: type[Tessellation]) -> type[Tessellation]:
    """A decorator for your own tessellation: files that hold one are read as this class from now on."""
    KINDS[tessellation.kind] = tessellation
    return tessellation


def from_arrays(arrays: Mapping[str, Any]) -> Tessellation:
    """The tessellation that a file holds, told by the first word of its arrays' names."""
    for kind, tessellation in KINDS.items():
        if any(name.startswith(f"{kind}_") for name in arrays):
            try:
                return tessellation.from_arrays(arrays)
            except KeyError as error:
                raise ValueError(f"{error.args[0]} missing") from None
    raise ValueError(f"no tessellation of a known kind ({', '.join(KINDS)})")
