"""What there is to see below a folder. Everything the explorer opens is found here first, and lies below it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dqd.storage import record

ARCHIVES = (".npz", ".parquet", ".csv", ".safetensors")
MOST_PLACES = 5_000
DEEPEST = 8  # folders below the root
LARGEST_FILE = 256 * 2**20  # that is looked into unasked; a larger one opens when it is named


@dataclass(frozen=True)
class Place:
    """A run, one seed of a run, or an archive in a file."""

    id: str  # by which the browser asks for it; tells nothing of the path
    name: str  # for people: the path below the root
    path: Path  # what `dqd.load` takes
    home: Path  # the folder or file on disk

    @property
    def is_run(self) -> bool:
        return self.home.is_dir()


def find(root: Path) -> list[Place]:
    """The runs and archives at or below `root`, in the order of their names."""
    root = root.resolve(strict=True)
    found = _file(root, root.parent) if root.is_file() else _below(root, root, 0)
    places = []
    for place in found:
        places.append(place)
        if len(places) == MOST_PLACES:
            break
    return sorted(places, key=lambda place: place.name)


def is_run(folder: Path) -> bool:
    return (folder / record.STEPS).is_dir() or all((folder / name).is_file() for name in (record.CONFIG, record.LOCK))


def lies_below(root: Path, path: Path) -> bool:
    """Whether a path, links followed, is the root or in it."""
    return path.resolve().is_relative_to(root if root.is_dir() else root.parent)


def _below(folder: Path, root: Path, depth: int) -> Iterator[Place]:
    run = is_run(folder)
    if run:
        yield from _run(folder, root)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or not lies_below(root, path):
            continue
        if entry.is_dir() and not entry.is_symlink() and not run and depth < DEEPEST:
            yield from _below(path, root, depth + 1)
        elif path.suffix.lower() in ARCHIVES and entry.is_file() and entry.stat().st_size <= LARGEST_FILE:
            yield from _file(path, root)


def _run(folder: Path, root: Path) -> Iterator[Place]:
    seeds = _seeds(folder)
    for path in [folder / f"seed-{seed}" for seed in seeds] or [folder]:
        yield _place(path, root, folder)


def _seeds(folder: Path) -> list[int]:
    """Of a run of several seeds, which."""
    try:
        seeds = record.read_config(folder).get("seeds")
    except (OSError, ValueError):
        return []
    return [seed for seed in seeds if isinstance(seed, int)] if isinstance(seeds, list) else []


def _file(path: Path, root: Path) -> Iterator[Place]:
    yield _place(path, root, path)


def _place(path: Path, root: Path, home: Path) -> Place:
    """Named from the folder that was opened, so that one run alone has a name too."""
    name = path.relative_to(root.parent if home == root else root).as_posix()
    name = name.encode("utf-8", "replace").decode()  # file names are bytes, and not all of them are text
    return Place(hashlib.sha256(os.fsencode(path)).hexdigest()[:20], name, path, home)
