"""The tessellations that files are read as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from dqd.inputs.names import lacking
from dqd.tessellations.categorical import CategoricalGrid
from dqd.tessellations.cvt import CVT
from dqd.tessellations.grid import Grid
from dqd.tessellations.scattered import Scattered
from dqd.tessellations.tessellation import Tessellation
from dqd.tessellations.uneven import UnevenGrid

T = TypeVar("T", bound=Tessellation)
BUILT_IN: dict[str, type[Tessellation]] = {
    each.kind: each for each in (Grid, UnevenGrid, CategoricalGrid, CVT, Scattered)
}
KINDS = dict(BUILT_IN)


def register(tessellation: type[T]) -> type[T]:
    """A decorator for your own tessellation: files that hold one are read as this class from now on."""
    kind = getattr(tessellation, "kind", None)
    if not isinstance(kind, str) or not kind.isalnum() or kind in (*BUILT_IN, "qd"):
        raise ValueError(f"kind: expected one word of letters, such as 'voronoi', that no other has; got {kind!r}")
    KINDS[kind] = tessellation
    return tessellation


def from_arrays(arrays: Mapping[str, Any]) -> Tessellation:
    """The tessellation that a file holds, told by the first word of its arrays' names."""
    for kind, tessellation in KINDS.items():
        if any(name.startswith(f"{kind}_") for name in arrays):
            try:
                return tessellation.from_arrays(arrays)
            except KeyError as error:
                raise ValueError(f"{error.args[0]} missing") from None
    raise ValueError(
        f"no tessellation of a known kind ({', '.join(KINDS)}); import the module that registers your own first"
    )


def check_tessellation(thing: Any) -> None:
    """Raise TypeError unless the thing is a tessellation, and one that can be read back from a file."""
    named = f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
    if isinstance(thing, type) or not isinstance(thing, Tessellation):
        raise TypeError(
            f"tessellation: expected cells such as a dqd.Grid or dqd.CVT, got {named}{lacking(thing, Tessellation)}"
        )
    if thing.kind not in KINDS:
        raise TypeError(
            f"tessellation: files would not know {named}; decorate the class with @dqd.tessellations.register"
        )
