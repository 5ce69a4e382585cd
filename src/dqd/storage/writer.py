"""The one process that writes a run while it runs: it holds the lock, commits checkpoints and keeps the last three.

Never imports JAX; `dqd.runners.checkpoints` is the part that knows searches.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dqd.console import saying
from dqd.safe.files import opened
from dqd.storage import durable, record
from dqd.storage.lock import Lock, LockedError
from dqd.storage.record import CONFIG, FAILURES, LOCK, STEPS, VIEWS

KEPT = 3  # checkpoints
MOST_VIEWS = 50


class CheckpointError(OSError):
    """A checkpoint could not be written."""


class Writer:
    """Use it as a context: the folder is made and locked on entering, unlocked on leaving.

    A run that has done its `iterations` is only read: without a lock, also where nothing can be written.

    `latest` is the newest valid checkpoint that was there. Damaged ones are named in a warning and stay until the next
    commit; if all of them are damaged, that is an error, never a silent fresh start.
    """

    def __init__(self, folder: str | os.PathLike[str], iterations: int | None = None) -> None:
        self.folder, self.iterations = Path(folder), iterations
        self.latest: record.Checkpoint | None = None
        self._lock: Lock | None = None
        self._valid: list[str] = []  # names of checkpoints, oldest first

    def __enter__(self) -> Writer:
        _check_place(self.folder)
        if self._is_finished():
            return self
        with explained(self.folder, "prepare the folder", 4096):
            durable.make_folder(self.folder)
            self._lock = _lock(self.folder / LOCK)
        try:
            with explained(self.folder, "prepare the folder", 4096):
                for folder in (self.folder, self.folder / STEPS, self.folder / VIEWS):
                    durable.make_folder(folder)
                    durable.remove_temporary(folder)
            self._look()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _is_finished(self) -> bool:
        """Whether the newest checkpoint is the last one that is wanted, and whole."""
        for place in record.step_folders(self.folder)[:1]:
            if self.iterations is not None and int(place.name) >= self.iterations:
                with contextlib.suppress(record.DamagedError):
                    self.latest, self._valid = record.Checkpoint(place, record.verify(place)), [place.name]
        return self.latest is not None

    def _look(self) -> None:
        damaged = {}
        for place in record.step_folders(self.folder):
            try:
                checkpoint = record.Checkpoint(place, record.verify(place))
            except record.DamagedError as error:
                damaged[place.name] = str(error)
            else:
                self.latest = self.latest or checkpoint
                self._valid.insert(0, place.name)
        if damaged and self.latest is None:
            raise record.no_valid_checkpoint(self.folder, damaged)
        if damaged and self.latest is not None:
            record.warn_about(self.folder, damaged, self.latest.folder.name)

    def _check_lock(self) -> None:
        if self._lock is not None and self._lock.in_place():
            return
        raise LockedError(
            f"{self.folder / LOCK} was removed or replaced while this process wrote the run, so another one may write "
            f"it too. This one stops. When no process writes there, {_next(self.folder)}"
        )

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write config.json, unless it says the same already, or the run is finished."""
        content, path = record.to_json(config), self.folder / CONFIG
        if self._lock is not None and not _holds(path, content):
            with explained(path, "write the settings", len(content)):
                durable.replace_file(path, content)

    def commit(
        self, step: int, config: Mapping[str, Any], summary: Mapping[str, Any], files: Mapping[str, durable.Content]
    ) -> Path:
        """Write a checkpoint, whole or not at all; then let go of those before the last three. Returns its folder.

        One that is there and valid stays as it is: it was made of the same state.
        """
        needed = sum(durable.size_of(content) for content in files.values())
        place = self.folder / STEPS / f"{step:09d}"
        if place.name in self._valid:
            return place
        self._check_lock()
        with explained(place, f"write the checkpoint of iteration {step:,}", needed):
            record.write_step(place.parent, step, config, summary, files)
            self._valid = [*self._valid, place.name][-KEPT:]
            for other in record.step_folders(self.folder):
                if other.name not in self._valid:
                    durable.remove_folder(other)
        return place

    def view(self, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        """A small picture of the archive; of more than fifty, the one with the nearest neighbours goes.

        Nothing depends on views, so they are not synced: after a power cut the newest may be gone.
        """
        path = self.folder / VIEWS / f"{step:09d}.safetensors"
        self._check_lock()
        with explained(path, "write a view", durable.size_of(arrays)):
            durable.replace_file(path, arrays, sync=False)
            views = sorted(self._views(), key=_step)
            if len(views) > MOST_VIEWS:
                _, crowded = min((_step(views[i + 1]) - _step(views[i - 1]), i) for i in range(1, len(views) - 1))
                views[crowded].unlink()

    def forget_views_after(self, step: int) -> None:
        """Those of iterations that will be done again."""
        for path in self._views():
            if self._lock is not None and _step(path) > step:
                path.unlink()

    def _views(self) -> list[Path]:
        return [path for path in (self.folder / VIEWS).glob("*.safetensors") if path.stem.isdecimal()]


def _holds(path: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError, ValueError), opened(path, len(content)) as (file, size):
        return file.read(size) == content
    return False


def _step(view: Path) -> int:
    return int(view.stem)


def _check_place(folder: Path) -> None:
    """A folder that is new, empty, or a run's."""
    if folder.is_dir():
        record.check_format(folder)
        _check_kinds(folder)
        names = {path.name for path in folder.iterdir()}
        if STEPS in names or names <= {CONFIG, LOCK} or not names:
            return
    if folder.exists():
        raise FileExistsError(f"{folder} already exists and is not an empty folder; choose another name")


def _check_kinds(folder: Path) -> None:
    """What is written to, or removed from, lies in the folder itself: through a link it could be anybody's."""
    kinds = {LOCK: stat.S_ISREG, FAILURES: stat.S_ISREG, STEPS: stat.S_ISDIR, VIEWS: stat.S_ISDIR}
    for name, is_right in kinds.items():
        with contextlib.suppress(FileNotFoundError):
            if not is_right((folder / name).lstat().st_mode):
                expected = "folder" if is_right is stat.S_ISDIR else "file"
                raise FileExistsError(
                    f"{folder / name} is a link, or no plain {expected}; a run is written to what lies in its folder, "
                    "so move it there or choose another folder"
                )


def _lock(path: Path) -> Lock:
    """Take the lock of a run, or say who holds it."""
    lock = Lock(path)
    try:
        state = lock.take()
        if state == "another's":
            raise LockedError(f"{path.parent} is being written by {lock.holder()}; wait for it, or stop it")
        if state == "unknown":
            saying.warn(f"{path.parent}: this file system has no locks; let one process write", stacklevel=4)
        lock.sign()
    except BaseException:
        lock.close()
        raise
    return lock


@contextlib.contextmanager
def explained(path: Path, what: str, needed: int) -> Iterator[None]:
    """A disk that fails is named, with what was to be written and how much room that takes."""
    try:
        yield
    except OSError as error:
        if isinstance(error, CheckpointError) or error.errno is None:
            raise
        free = ""
        with contextlib.suppress(OSError):
            free = f", {shutil.disk_usage(path.parent).free:,} bytes are free"
        run = next((place for place in (path, *path.parents[:2]) if (place / STEPS).exists()), path)
        words = f"could not {what}: {error.strerror}; {needed:,} bytes are needed{free}. With that mended, {_next(run)}"
        raise CheckpointError(error.errno, words, str(path)) from error


def _next(run: Path) -> str:
    """What there is to go on from."""
    if record.step_folders(run):
        return "the same command or call goes on: earlier checkpoints are intact"
    return "the same command or call begins anew: there is no earlier checkpoint"
