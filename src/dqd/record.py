"""The record of a run on disk: plain files that any tool can read. NumPy, safetensors and JSON only; never JAX.

    config.json               what was asked for: settings, versions, seed, iterations
    steps/000010000/          a checkpoint, named by its iteration
        manifest.json         config, final figures, and size and SHA-256 of every other file
        metrics.jsonl         one JSON object per line: iteration, qd_score, coverage, best, mean
        timings.jsonl         iteration, seconds, compile_seconds
        archive.safetensors   the elites (cell, objective, measures, solutions, found) and the grid
        state.safetensors     all the rest that the search needs to go on
    views/000001000.safetensors   small pictures of the archive over time: cell, objective
    lock                      who is writing

A checkpoint is written aside and renamed, so it is whole or absent, and it never changes afterwards. Reading takes the
newest one whose digests are right. Several seeds that ran side by side share a folder: their metrics and archives lie
in seed-S/ of each checkpoint, and `read("runs/x/seed-3")` reads one of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dqd import __version__, durable
from dqd.describe import describe as describe
from dqd.describe import plain
from dqd.safe import load_json, load_jsonl, load_safetensors
from dqd.safe.files import opened
from dqd.safe.text import parse_json

FORMAT = 2
CONFIG, LOCK, MANIFEST, STEPS, VIEWS = "config.json", "lock", "manifest.json", "steps", "views"
METRICS, TIMINGS, ARCHIVE, STATE = "metrics.jsonl", "timings.jsonl", "archive.safetensors", "state.safetensors"
MANIFEST_BYTES = 16 * 2**20  # a longer one is not ours
FILE_NAME = re.compile(r"(seed-\d{1,10}/)?[a-z]{1,20}\.(jsonl|safetensors)")

T = TypeVar("T")


class DamagedError(ValueError):
    """A checkpoint is not as it was written, or none of a run is."""


@dataclass(frozen=True)
class Record:
    """A run read back."""

    config: dict[str, Any]  # with the figures of the checkpoint under "summary"
    metrics: list[dict[str, float]]
    arrays: dict[str, np.ndarray]
    step: int = 0  # iterations done


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

    def arrays(self, name: str = ARCHIVE, only: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """The arrays of a file, or those of some names that are there."""
        return load_safetensors(self.path(name), only)

    def record(self) -> Record:
        return Record(self.config, self.lines(METRICS), self.arrays(), self.step)


# Reading --------------------------------------------------------------------------------------------------------------


def read(folder: str | os.PathLike[str]) -> Record:
    """Read the newest valid checkpoint of a run; it may be running. Damaged ones are named in a warning."""
    return newest(folder, Checkpoint.record)


def newest(folder: str | os.PathLike[str], use: Callable[[Checkpoint], T]) -> T:
    """What `use` makes of the newest valid checkpoint.

    Nothing is locked. When a writer removes a checkpoint while it is looked at, its newer ones are looked at instead.
    """
    run, part = _locate(Path(folder))
    damaged: dict[str, str] = {}
    while places := [place for place in step_folders(run) if place.name not in damaged]:
        place = places[0]
        try:
            manifest = verify(place)
            _check_part(run, manifest, part)
            result = use(Checkpoint(place, manifest, part))
        except DamagedError as error:
            if place.is_dir():
                damaged[place.name] = str(error)
        except FileNotFoundError:
            if place.is_dir():
                raise
        else:
            warn_about(run, damaged, place.name)
            return result
    raise _nothing(run, damaged)


def step_folders(run: Path) -> list[Path]:
    """The checkpoints of a run, newest first, valid or not."""
    folder = run / STEPS
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return [folder / name for name in sorted((n for n in names if n.isdecimal()), key=int, reverse=True)]


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


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What was asked for last. When config.json is lost or damaged, what the newest valid checkpoint says."""
    run = Path(folder)
    check_format(run)
    try:
        config = load_json(run / CONFIG)
        return {**config, "format": config["format"]}
    except (OSError, ValueError, KeyError, TypeError):
        return newest(run, lambda checkpoint: checkpoint.manifest["config"])


def check_format(folder: Path) -> None:
    """Refuse what another version wrote. A config.json that is damaged says nothing."""
    try:
        found = load_json(folder / CONFIG)["format"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if found != FORMAT:
        raise ValueError(f"{folder}: record format {found!r}, this version reads {FORMAT}")


def _locate(folder: Path) -> tuple[Path, str]:
    """The run and, for runs/x/seed-3 of a run of several seeds, the part of it."""
    if re.fullmatch(r"seed-\d+", folder.name) and not folder.exists() and (folder.parent / STEPS).is_dir():
        return folder.parent, folder.name
    return folder, ""


def _check_part(run: Path, manifest: Mapping[str, Any], part: str) -> None:
    seeds = manifest["config"].get("seeds") or []
    if part and part not in manifest["summary"]:
        raise ValueError(f"{run / part}: no such seed; the run has seeds {', '.join(map(str, seeds)) or 'of its own'}")


def warn_about(run: Path, damaged: Mapping[str, str], used: str) -> None:
    """Name the damaged checkpoints, and the one that is used instead."""
    for name, why in damaged.items():
        warnings.warn(f"{run / STEPS / name} is damaged ({why}); {used} is used instead", stacklevel=3)


def _nothing(run: Path, damaged: Mapping[str, str]) -> Exception:
    """Why there is nothing to read."""
    if damaged:
        return no_valid_checkpoint(run, damaged)
    if not (run / CONFIG).is_file():
        return FileNotFoundError(f"{run} is not the record of a run: {CONFIG} and {STEPS}{os.sep} missing")
    try:
        check_format(run)
    except ValueError as error:
        return error
    return FileNotFoundError(f"{run} holds no checkpoint yet: the run has begun, or ended before its first one")


def no_valid_checkpoint(run: Path, damaged: Mapping[str, str]) -> DamagedError:
    reasons = "; ".join(f"{name}: {why}" for name, why in damaged.items())
    return DamagedError(f"{run} holds no valid checkpoint ({reasons}); restore one from a copy, or begin elsewhere")


# Writing --------------------------------------------------------------------------------------------------------------


def write(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    metrics: Iterable[Mapping[str, float]],
    arrays: Mapping[str, np.ndarray],
) -> Path:
    """Write a finished run, whose figures are `config["summary"]`, to a folder that does not exist yet, or is empty."""
    rows, summary = list(metrics), dict(config.get("summary", {}))
    step = summary.get("iterations", rows[-1]["iteration"] if rows else 0)
    about = {name: value for name, value in config.items() if name != "summary"}
    return write_run(folder, int(step), about, summary, {METRICS: to_lines(rows), ARCHIVE: arrays})


def write_run(
    folder: str | os.PathLike[str],
    step: int,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    files: Mapping[str, durable.Content],
) -> Path:
    """A run of one checkpoint, in a folder that is whole or absent."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} already exists and is not an empty folder; choose another name")
    durable.make_folder(target.parent)
    durable.remove_temporary(target.parent, target.name)
    aside = target.with_name(f"{durable.TEMPORARY}{target.name}-{os.getpid()}")
    try:
        durable.make_folder(aside / STEPS)
        config = with_versions(config)
        durable.write_file(aside / CONFIG, to_json(config))
        write_step(aside / STEPS, step, config, summary, files)
        if target.exists():
            target.rmdir()
        durable.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return target


def write_step(
    steps: Path,
    step: int,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    files: Mapping[str, durable.Content],
) -> None:
    """Commit a checkpoint: aside, synced, renamed, the parent synced."""
    aside = steps / f"{durable.TEMPORARY}{step:09d}-{os.getpid()}"
    try:
        durable.make_folder(aside)
        entries = {}
        for name, content in files.items():
            durable.make_folder((aside / name).parent)
            entries[name] = durable.write_file(aside / name, content)
        about = {"format": FORMAT, "step": step, "summary": plain(dict(summary)), "config": config, "files": entries}
        durable.write_file(aside / MANIFEST, _seal(about))
        for folder in {(aside / name).parent for name in (MANIFEST, *files)}:
            durable.sync_folder(folder)
        durable.rename(aside, steps / f"{step:09d}")
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def with_versions(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "dqd": __version__, "numpy": np.__version__, **config}


def to_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"


def to_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object per line."""
    return "".join(json.dumps(plain(dict(row))) + "\n" for row in rows).encode()
