"""One checkpoint on disk: its files, and the manifest that says what they were when they were written. Never JAX.

A checkpoint is written aside and renamed, so it is whole or absent, and it never changes afterwards. The manifest holds
size and SHA-256 of every other file and a digest of itself, so whatever changes later is found out.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dqd.safe import load_jsonl, load_safetensors
from dqd.safe.files import opened
from dqd.safe.text import parse_json
from dqd.storage import durable
from dqd.storage.settings import plain

FORMAT = 2
MANIFEST = "manifest.json"
METRICS, TIMINGS, ARCHIVE, STATE = "metrics.jsonl", "timings.jsonl", "archive.safetensors", "state.safetensors"
MANIFEST_BYTES = 16 * 2**20  # a longer one is not ours
FILE_NAME = re.compile(r"(seed-\d{1,10}/)?[a-z]{1,20}\.(jsonl|safetensors)")


class DamagedError(ValueError):
    """A checkpoint is not as it was written, or none of a run is."""


@dataclass(frozen=True)
class Checkpoint:
    """One step of a run, its digests verified. `part` is the seed to look at, `seed-S`, or empty."""

    folder: Path
    manifest: dict[str, Any]
    part: str = ""

    @property
    def step(self) -> int:
        return self.manifest["step"]

    @property
    def config(self) -> dict[str, Any]:
        """What was asked for, with the figures so far under "summary"."""
        return {**self.manifest["config"], "summary": self.summary}

    @property
    def summary(self) -> dict[str, Any]:
        summary = self.manifest["summary"]
        return summary[self.part] if self.part else summary

    def path(self, name: str) -> Path:
        """Where a file of this checkpoint lies; the seed's own where there is one."""
        own = f"{self.part}/{name}" if self.part else name
        found = own if own in self.manifest["files"] else name
        if found not in self.manifest["files"]:
            seeds = self.manifest["config"].get("seeds")
            hint = f"; it holds seeds, read one: seed-{seeds[0]} behind the folder's name" if seeds else ""
            raise FileNotFoundError(f"{self.folder} holds no {own}{hint}")
        return self.folder / found

    def of(self, part: str) -> Checkpoint:
        return replace(self, part=part)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return load_jsonl(self.path(name))

    def timings(self) -> list[dict[str, Any]]:
        """What had been spent when, if that is known. Lists have a number for each seed: this one's is taken."""
        if TIMINGS not in self.manifest["files"]:
            return []
        own = list(self.manifest["summary"]).index(self.part) if self.part else 0
        return [_of_seed(row, own) for row in self.lines(TIMINGS)]

    def arrays(self, name: str = ARCHIVE, only: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """The arrays of a file, or those of some names that are there."""
        return load_safetensors(self.path(name), only)


def verify(place: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, after a look at every file it names."""
    manifest = _unseal(place / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise DamagedError(f"record format {manifest.get('format')!r}, this version reads {FORMAT}")
    if not _is_manifest(manifest):
        raise DamagedError(f"{MANIFEST} is not one that dqd wrote")
    if manifest["step"] != int(place.name):
        raise DamagedError(f"it is the checkpoint of iteration {manifest['step']}, not of {int(place.name)}")
    for name, expected in manifest["files"].items():
        _verify_file(place, name, expected)
    return manifest


def _is_manifest(content: dict[str, Any]) -> bool:
    match content:
        case {"step": int(), "summary": dict(), "config": dict(), "files": dict(files)}:
            return all(isinstance(entry, dict) and entry.keys() == {"size", "sha256"} for entry in files.values())
    return False


def _verify_file(place: Path, name: str, expected: Mapping[str, Any]) -> None:
    if not FILE_NAME.fullmatch(name):
        raise DamagedError(f"{MANIFEST} names {name!r}, which no checkpoint holds")
    try:
        about = (place / name).stat()
        size = about.st_size if stat.S_ISREG(about.st_mode) else -1
        if size != expected["size"]:
            raise DamagedError(f"{name} has {size:,} bytes instead of {expected['size']:,}")
        if durable.digest_of(place / name) != expected["sha256"]:
            raise DamagedError(f"{name} has another SHA-256 than when it was written")
    except OSError as error:
        raise DamagedError(f"{name} cannot be read: {error.strerror}") from error


def _unseal(path: Path) -> dict[str, Any]:
    """The manifest carries a digest of itself; its text is exactly what `_seal` writes, or it was changed."""
    try:
        with opened(path, MANIFEST_BYTES) as (file, size):
            text = file.read(size)
        content = parse_json(path, text)
        digest = content.pop("sha256")
    except OSError as error:
        raise DamagedError(f"{MANIFEST} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError(f"{MANIFEST} is not one that dqd wrote") from None
    if _seal(content) != text:
        raise DamagedError(f"{MANIFEST} was changed: its SHA-256 is not {str(digest)[:16]}...")
    return content


def _seal(content: Mapping[str, Any]) -> bytes:
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps({**content, "sha256": digest}, indent=1).encode() + b"\n"


def write_step(
    steps: Path,
    step: int,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    files: Mapping[str, durable.Content],
) -> None:
    """Commit a checkpoint: aside, synced, renamed, the parent synced."""
    target = steps / f"{step:09d}"
    with durable.new_folder(target) as aside:
        parts = {(aside / name).parent for name in files} - {aside}  # of several seeds
        for part in parts:
            durable.add_folder(part)
        entries = {name: durable.write_file(aside / name, content) for name, content in files.items()}
        about = {"format": FORMAT, "step": step, "summary": plain(dict(summary)), "config": config, "files": entries}
        durable.write_file(aside / MANIFEST, _seal(about))
        for part in parts:
            durable.sync_folder(part)
        if target.exists():  # a damaged one, which stays until this one is whole
            durable.remove_folder(target)


def to_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object per line."""
    return "".join(json.dumps(plain(dict(row))) + "\n" for row in rows).encode()


def _of_seed(row: Mapping[str, Any], index: int) -> dict[str, Any]:
    """A line with one number where there is a list of them, one for each seed."""
    parts = {name: value[index : index + 1] if isinstance(value, list) else [value] for name, value in row.items()}
    return {name: part[0] for name, part in parts.items() if part}
