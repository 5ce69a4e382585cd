"""What a run is called: its problem, its algorithm, its measures. From settings that may be anybody's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LONGEST = 200  # characters of a name
MEASURES = {"Arm": ("hand, x", "hand, y")}


def domain(config: Mapping[str, Any]) -> str:
    return _named(config, "domain") or _short(config.get("domain"))


def algorithm(config: Mapping[str, Any]) -> str:
    return _named(config, "algorithm") or _short(config.get("emitter"))


def kind(config: Mapping[str, Any]) -> str:
    """The type of the domain, by which the page knows how to draw a solution."""
    described = config.get("domain")
    return text(described.get("type")) if isinstance(described, dict) else ""


def measures(config: Mapping[str, Any], count: int) -> list[str]:
    """A label for every measure: as the domain has them, or as they were asked for."""
    options, described = _command(config).get("options"), config.get("domain")
    asked = options.get("measure") if isinstance(options, dict) else None
    own = described.get("measures") if isinstance(described, dict) else None
    given = next((each for each in (own, asked) if isinstance(each, list)), MEASURES.get(kind(config), ()))
    labels = [text(each) for each in given]
    return labels if len(labels) == count else [f"measure {j}" for j in range(count)]


def text(value: Any) -> str:
    """Any value as a short text."""
    return "" if value is None else str(value)[:LONGEST]


def finite(value: Any) -> Any:
    """A value that JSON can hold: infinities and NaN become null."""
    if isinstance(value, Mapping):
        return {text(name): finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _command(config: Mapping[str, Any]) -> Mapping[str, Any]:
    command = config.get("command")
    return command if isinstance(command, dict) else {}


def _named(config: Mapping[str, Any], name: str) -> str:
    return text(_command(config).get(name))


def _short(described: Any) -> str:
    """The type of a described thing, or the last part of a function's name."""
    if isinstance(described, dict):
        return text(described.get("type"))
    return text(described).rpartition(".")[2]
