"""Scores as they are asked for: by name, turned round by a minus in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def unsigned(terms: Sequence[str]) -> list[str]:
    """Names of scores without the minus."""
    return [term.removeprefix("-") for term in terms]


def signed(term: str, columns: Mapping[str, Any]) -> Any:
    """The column that a term names, turned round if it says so."""
    return -columns[term[1:]] if term.startswith("-") else columns[term]
