"""Numbers of the user's own, kept for every elite and used for nothing else: `fields={"energy": (), "forces": (3,)}`.

NumPy only. Among arrays by name, be it on the way to a worker, in a file or in a table, they begin with `field_`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FIELD = "field_"
Shapes = Mapping[str, tuple[int, ...]]


def check_fields(fields: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes that a user gave, checked."""
    if not isinstance(fields, Mapping):
        raise TypeError(f'fields: expected names and shapes, such as {{"energy": ()}}, got {type(fields).__name__}')
    for name, shape in fields.items():
        if not isinstance(name, str) or not name.isidentifier() or re.search(r"_\d+$", name):
            raise ValueError(
                f"fields: expected names like those of variables, without a number at the end, got {name!r}"
            )
        sizes = isinstance(shape, tuple | list) and all(isinstance(size, int) and size > 0 for size in shape)
        if not sizes or len(shape) > 1:
            raise ValueError(f"fields: {name}: expected the shape () or (m,), got {shape!r}")
    return {name: tuple(shape) for name, shape in fields.items()}


def nested(named: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by name as what an `Evaluation` is made of."""
    fields = {name.removeprefix(FIELD): part for name, part in named.items() if name.startswith(FIELD)}
    others = {name: part for name, part in named.items() if not name.startswith(FIELD)}
    return others | ({"fields": fields} if fields else {})


def flat(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse; what is None is left out."""
    fields = parts.get("fields") or {}
    others = {name: part for name, part in parts.items() if name != "fields" and part is not None}
    return others | {FIELD + name: part for name, part in fields.items()}
