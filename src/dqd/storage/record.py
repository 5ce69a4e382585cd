"""The record of a run on disk: plain files that any tool can read. NumPy, safetensors and JSON only; never JAX.

    config.json               what was asked for: settings, versions, seed, iterations
    steps/000010000/          a checkpoint, named by its iteration
        manifest.json         config, final figures, and size and SHA-256 of every other file
        metrics.jsonl         one JSON object per line: iteration, qd_score, coverage, best, mean
        timings.jsonl         iteration, seconds, compile_seconds; in some lines evaluations and restarts
        archive.safetensors   the elites (cell, objective, measures, solutions, found) and the grid
        state.safetensors     all the rest that the search needs to go on
    views/000001000.safetensors   small pictures of the archive over time: cell, objective
    failures.jsonl            evaluations that failed, if any did
    lock                      who is writing

A checkpoint is written aside and renamed, so it is whole or absent, and it never changes afterwards. Reading takes the
newest one whose digests are right. Several seeds that ran side by side share a folder: their metrics and archives lie
in seed-S/ of each checkpoint, and `read("runs/x/seed-3")` reads one of them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dqd import __version__
from dqd.console import saying
from dqd.safe import load_json
from dqd.storage import durable
from dqd.storage.manifest import ARCHIVE as ARCHIVE
from dqd.storage.manifest import FORMAT as FORMAT
from dqd.storage.manifest import METRICS as METRICS
from dqd.storage.manifest import STATE as STATE
from dqd.storage.manifest import TIMINGS as TIMINGS
from dqd.storage.manifest import Checkpoint, DamagedError, to_lines, verify, write_step
from dqd.storage.settings import describe as describe

CONFIG, LOCK, STEPS, VIEWS, FAILURES = "config.json", "lock", "steps", "views", "failures.jsonl"
ATTEMPTS = 10  # to save a run: another machine that does not see our locks may take what is half written for a leftover

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """A run read back."""

    config: dict[str, Any]  # with the figures of the checkpoint under "summary"
    metrics: list[dict[str, float]]
    arrays: dict[str, np.ndarray]
    step: int = 0  # iterations done
    timings: list[dict[str, float]] = field(default_factory=list)  # what had been spent when


# Reading --------------------------------------------------------------------------------------------------------------


def read(folder: str | os.PathLike[str]) -> Record:
    """Read the newest valid checkpoint of a run; it may be running. Damaged ones are named in a warning."""
    return newest(folder, record_of)


def record_of(checkpoint: Checkpoint) -> Record:
    lines, arrays = checkpoint.lines(METRICS), checkpoint.arrays()
    return Record(checkpoint.config, lines, arrays, checkpoint.step, checkpoint.timings())


def newest(folder: str | os.PathLike[str], use: Callable[[Checkpoint], T]) -> T:
    """What `use` makes of the newest valid checkpoint.

    Nothing is locked. When a writer removes a checkpoint while it is looked at, its newer ones are looked at instead.
    """
    run, part = locate(Path(folder))
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


def locate(folder: Path) -> tuple[Path, str]:
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
        saying.warn(f"{run / STEPS / name} is damaged ({why}); {used} is used instead", stacklevel=3)


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
    """A run of one checkpoint, in a folder that is whole or absent. Of several that write it at once, one wins."""
    target, config = Path(folder).resolve(), with_versions(config)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{os.fspath(folder)} already exists and is not an empty folder; choose another name")
    durable.make_folder(target.parent)
    durable.remove_temporary(target.parent, target.name)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with durable.new_folder(target) as aside:
                durable.write_file(aside / CONFIG, to_json(config))
                durable.add_folder(aside / STEPS)
                write_step(aside / STEPS, step, config, summary, files)
            break
        except FileNotFoundError:
            if attempt == ATTEMPTS:
                raise
    return Path(folder)


def with_versions(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "dqd": __version__, "numpy": np.__version__, **config}


def to_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"
