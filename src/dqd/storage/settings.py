"""Settings as plain JSON, and how two of them differ."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

LISTED = 64  # numbers; a larger array is described by its digest

RESERVED = {"format", "dqd", "numpy", "seed", "seeds", "summary"}  # names in config.json, besides those of the settings


class SettingsChangedError(ValueError):
    """The folder holds a run of other settings."""


def describe(thing: Any) -> Any:
    """Descriptions (frozen dataclasses) as JSON: the type's name and its fields, but for what follows from others."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        own = [field.name for field in dataclasses.fields(thing) if field.compare]
        fields = {name: describe(getattr(thing, name)) for name in own}
        return {"type": type(thing).__name__, **fields}
    if isinstance(thing, functools.partial):
        arguments = describe((thing.args, thing.keywords))
        return {"type": "partial", "function": describe(thing.func), "arguments": arguments}
    if isinstance(thing, Mapping):
        return {str(name): describe(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [describe(value) for value in thing]
    return plain(thing)


def with_about(about: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Words of one's own, and the settings; the names of settings are taken."""
    own = describe(about or {})
    if taken := [name for name in own if name in RESERVED | settings.keys()]:
        raise ValueError(
            f"about: expected names that config.json does not use itself, got {', '.join(taken)}; "
            f"choose another name, such as my_{taken[0]}"
        )
    return {**own, **settings}


def plain(value: Any) -> Any:
    """A value that JSON can hold; equal values give equal answers in every process."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON knows no infinity
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):
        return _array(value)
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def finite(value: Any) -> Any:
    """The same with None wherever a number is NaN or infinite, which JSON does not know."""
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _array(value: Any) -> Any:
    if getattr(value, "size", 1) <= LISTED:
        return plain(value.tolist())
    array = np.ascontiguousarray(value)
    digest = hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}


def differences(there: Any, here: Any, name: str = "") -> Iterator[str]:
    """One line for every setting that differs: `emitter.strategy.sigma: 0.5 there, 0.2 here`."""
    alike = isinstance(there, dict) and isinstance(here, dict) and there.get("type") == here.get("type")
    if alike and "sha256" not in there:
        for key in [*there, *(key for key in here if key not in there)]:
            yield from differences(there.get(key), here.get(key), f"{name}.{key}" if name else key)
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for i, (one, other) in enumerate(zip(there, here, strict=True)):
            yield from differences(one, other, f"{name}[{i}]")
    elif there != here:
        yield f"{name}: {_short(there)} there, {_short(here)} here"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "type" in value:
        return str(value["type"])
    if isinstance(value, dict) and "sha256" in value:
        return f"{value['dtype']} {tuple(value['shape'])} with digest {value['sha256'][:8]}"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
