"""Scores by name, as axes of a map: what they mean in words, and their usual range. A minus in front negates one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dqd.tessellations.grid import Grid


class Score(NamedTuple):
    label: str
    lower: float
    upper: float


def label(name: str, scores: Mapping[str, Score]) -> str:
    words = scores[name.removeprefix("-")].label
    return f"minus {words}" if name.startswith("-") else words


def grid(measures: Sequence[str], scores: Mapping[str, Score], resolution: int) -> Grid:
    """`resolution` cells over the range of each measure."""
    ranges = [scores[name.removeprefix("-")][1:] for name in measures]
    signed = [(-b, -a) if name.startswith("-") else (a, b) for name, (a, b) in zip(measures, ranges, strict=True)]
    lower, upper = zip(*signed, strict=True)
    return Grid(lower, upper, (resolution,) * len(signed))
