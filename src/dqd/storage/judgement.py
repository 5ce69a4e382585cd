"""What counts of a run whose elites were judged when the search had ended, beside its record. Never imports JAX.

    judged/archive.safetensors      the elites as they were judged, opinions of held-out judges among their fields
    judged/summary.json             metrics, agreement, and the iteration and digest that they belong to

Of several seeds, each has a folder in it. Checkpoints stay what the search saw. A judgement counts as long as the run
has no newer checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dqd.console.saying import say
from dqd.safe import UnreadableError, load_json, load_safetensors
from dqd.storage import durable
from dqd.storage.record import ARCHIVE, locate, to_json

JUDGED, SUMMARY = "judged", "summary.json"


@dataclass(frozen=True)
class Judgement:
    """The metrics of a run by its judges; the arrays are read when they are asked for."""

    folder: Path
    summary: dict[str, Any]
    digest: str

    def arrays(self) -> dict[str, np.ndarray]:
        path = self.folder / ARCHIVE
        if durable.digest_of(path) != self.digest:
            raise UnreadableError(path, "it was changed since it was written", f"remove {self.folder} to do without it")
        return load_safetensors(path)


def write(run: Path, step: int, arrays: Mapping[str, np.ndarray], summary: Mapping[str, Any], part: str = "") -> None:
    """Keep a judgement of the elites of iteration `step`; the summary, last, makes it count.

    Where nothing can be written, a finished run is shown all the same.
    """
    folder = run / JUDGED / part
    durable.refuse_links(run, folder)
    try:
        durable.make_folder(folder)
        durable.replace_file(folder / ARCHIVE, arrays)
        digest = durable.digest_of(folder / ARCHIVE)
        durable.replace_file(folder / SUMMARY, to_json({"step": step, "sha256": digest, "summary": dict(summary)}))
    except OSError as error:
        if error.errno not in durable.READ_ONLY:
            raise
        say(f"dqd: what the judges found is not kept: {error.strerror}: {folder}")


def read(path: Path, step: int) -> Judgement | None:
    """That of the elites of iteration `step` of a run, or of one of its seeds; None if there is none."""
    run, part = locate(path)
    folder = run / JUDGED / part
    try:
        match load_json(folder / SUMMARY):
            case {"step": int(found), "sha256": str(digest), "summary": dict(summary)} if found == step:
                return Judgement(folder, summary, digest)
    except (OSError, UnreadableError):
        pass
    return None


def stamp(path: Path) -> str:
    """Changes when a run, or one of its seeds, is judged anew."""
    run, part = locate(path)
    try:
        return f"-{(run / JUDGED / part / SUMMARY).stat().st_mtime_ns}"
    except OSError:
        return ""
