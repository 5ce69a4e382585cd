"""`Folder`: where a run is kept, and how often."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Folder:
    """The record of a run on disk. A plain path is a folder with these defaults.

        dqd.illuminate(score, emitter, grid, x0=x0, out=dqd.Folder("runs/arm", checkpoint_seconds=600))

    Args:
        path: a new folder, or one that holds a run of the same settings: that run is resumed, and a finished one is
            returned at once.
        checkpoint_seconds: seconds between two checkpoints; longer where they would take more than 1 % of the time.
            0 writes one at every look.
        about: words of your own for config.json.

    >>> dqd.Folder("runs/arm", checkpoint_seconds=600).path
    'runs/arm'
    """

    path: str | os.PathLike[str]
    checkpoint_seconds: float = 60.0
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.checkpoint_seconds >= 0:
            raise ValueError(f"checkpoint_seconds: expected seconds, at least 0, got {self.checkpoint_seconds!r}")

    @staticmethod
    def of(out: str | os.PathLike[str] | Folder | None) -> Folder | None:
        return out if out is None or isinstance(out, Folder) else Folder(out)
