"""The runs below one folder, read when they are asked for and kept in memory until they change."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dqd.explorer import activity, atlas, describe, page
from dqd.explorer.compare import METRICS, Trial
from dqd.explorer.places import Place, find, lies_below
from dqd.figures.thumbnails import thumbnail
from dqd.safe import UnreadableError, load_safetensors
from dqd.safe.files import load_bytes
from dqd.saved import words
from dqd.saved.archive import SavedArchive
from dqd.saved.load import load
from dqd.storage import judgement, record
from dqd.storage.manifest import Checkpoint

T = TypeVar("T")
Arrays = dict[str, np.ndarray]

FRESH = 1.0  # seconds for which the list of places is believed, or five times as long as it took to make
ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError)  # of a bad record


class NotThereError(LookupError):
    """No run of that name, or nothing of that kind in it."""


class Library:
    """Answers what the pages ask. Safe to be asked by several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        self._places: dict[str, Place] = {}
        self._stale = -math.inf  # when to look again
        self._lock = threading.Lock()
        self._archives = _Cache(4)
        self._summaries = _Cache(10_000)
        self._thumbnails = _Cache(2_000)
        self._curves = _Cache(64)
        self._views = _Cache(128)
        self._pages = _Cache(2)
        self._slots = _Cache(16)

    def places(self) -> dict[str, Place]:
        with self._lock:
            begun = time.monotonic()
            if begun >= self._stale:
                self._places = {place.id: place for place in find(self.root)}
                self._stale = time.monotonic() + max(FRESH, 5 * (time.monotonic() - begun))
            return self._places

    def place(self, name: str) -> Place:
        """The run of that id. Only what a look at the folder has found can be named."""
        try:
            return self.places()[name]
        except KeyError:
            raise NotThereError("there is no such run") from None

    # What is in a run -------------------------------------------------------------------------------------------------

    def lines(self) -> list[dict[str, Any]]:
        """One line for every run; files that are no archives are left out, unless one was opened by name."""
        lines = [self.about(place) for place in self.places().values()]
        return [line for line in lines if line["kind"] == "run" or line["state"] != "broken" or self.root.is_file()]

    def about(self, place: Place) -> dict[str, Any]:
        """What a list shows of a run."""
        found = self._summaries.get((place, self.stamp(place)), lambda: self._summary(place))
        about = {"id": place.id, "name": place.name, "kind": "run" if place.is_run else "file", **found}
        if place.is_run and about["state"] != "broken" and activity.is_running(place.home):
            about["state"] = "running"
        return words.finite({**about, "changed": activity.changed(place.home)})

    def stamp(self, place: Place) -> str:
        """Changes when the run has something new to show."""
        try:
            newest = next(iter(record.step_folders(place.home)), place.home) if place.is_run else place.home
            status, judged = newest.stat(), judgement.stamp(place.path) if place.is_run else ""
        except FileNotFoundError:
            return "gone"  # the next look finds what came instead
        return f"{newest.name}-{status.st_mtime_ns}-{status.st_size}{judged}"

    def archive(self, place: Place) -> SavedArchive:
        return self._archives.get((place, self.stamp(place)), lambda: self._load(place))

    def thumbnail(self, place: Place) -> np.ndarray:
        return self._thumbnails.get(
            (place, self.stamp(place)), lambda: thumbnail(self.archive(place).arrays(solutions=False))
        )

    def curves(self, place: Place) -> dict[str, Any]:
        """How the metrics went, as `describe.curves` has it."""
        if not place.is_run:
            return describe.curves([], [])
        return self._curves.get((place, self.stamp(place)), lambda: self._read(place, _curves))

    def views(self, place: Place) -> list[int]:
        """The iterations of which the run kept a picture."""
        folder = place.home / record.VIEWS
        names = [path.stem for path in folder.glob("*.safetensors")] if place.is_run else []
        return sorted(int(name) for name in names if name.isdecimal() and len(name) <= 18)

    def view(self, place: Place, step: int) -> Arrays:
        """One of these pictures: cells and their objectives."""
        path = place.home / record.VIEWS / f"{step:09d}.safetensors"
        if step not in self.views(place) or not lies_below(self.root, path):
            raise NotThereError(f"there is no view of iteration {step}")
        return self._views.get((place, step, path.stat().st_mtime_ns), lambda: self._view(place, path))

    def _view(self, place: Place, path: Path) -> Arrays:
        _, part = record.locate(place.path)
        names = {f"{part}/{name}" if part else name: name for name in ("cell", "objective", "measures")}
        view = {names[there]: array for there, array in load_safetensors(path, names).items()}
        return describe.view(view, self.archive(place))

    def slots(self, place: Place) -> tuple[np.ndarray, int]:
        """Where the picture of each elite lies, and the size of pictures; 0 if there are none."""
        folder = atlas.folder_of(place.path)
        if not place.is_run or not lies_below(self.root, folder):
            return np.zeros(0, np.int32), 0
        count = len(atlas.pages(folder))
        return self._slots.get((place, self.stamp(place), count), lambda: atlas.slots(folder, self.archive(place)))

    def picture_page(self, place: Place, number: int) -> bytes:
        """A page of pictures."""
        found = atlas.pages(atlas.folder_of(place.path)) if place.is_run else []
        path = found[number].with_suffix(".png") if 0 <= number < len(found) else None
        if path is None or not lies_below(self.root, path):
            raise NotThereError(f"there is no page {number} of pictures")
        try:
            return load_bytes(path, atlas.MOST_BYTES)
        except UnreadableError:
            raise NotThereError(f"there is no page {number} of pictures") from None

    def trial(self, place: Place) -> Trial:
        """The run as a comparison sees it."""
        about = self.about(place)
        figures = {metric: np.nan if about[metric] is None else about[metric] for metric in METRICS}
        curves = self.curves(place)["metrics"]
        return Trial(place.name, about["domain"], about["algorithm"], figures, curves, place.id)

    def page(self, place: Place, solutions: bool) -> bytes:
        """The run as one HTML file."""
        return self._pages.get((place, self.stamp(place), solutions), lambda: self._page(place, solutions))

    def _page(self, place: Place, solutions: bool) -> bytes:
        archive = self.archive(place)
        steps = page.thinned(self.views(place), 8 * len(archive))
        views = {step: describe.narrow(self.view(place, step)) for step in steps}
        run = describe.run(self, place)
        about = {"run": run, "curves": self.curves(place), "views": steps}
        arrays = describe.elites(archive)
        arrays |= {f"view-{step}-{name}": array for step, view in views.items() for name, array in view.items()}
        if solutions and archive.solutions is not None:
            arrays["solutions"] = archive.solutions
            arrays |= self._pictures(place)
        else:
            run["archive"] |= {"numbers": None, "pictures": 0}
        return page.build(words.finite(about), arrays)

    def _pictures(self, place: Place) -> dict[str, np.ndarray]:
        slots, size = self.slots(place)
        if not size:
            return {}
        numbers = range(len(atlas.pages(atlas.folder_of(place.path))))
        each = {f"page-{i}": np.frombuffer(self.picture_page(place, i), np.uint8) for i in numbers}
        return {"slot": slots, **each}

    # Reading ----------------------------------------------------------------------------------------------------------

    def _summary(self, place: Place) -> dict[str, Any]:
        try:
            if not place.is_run:
                return describe.of_file(self.archive(place))
            return describe.of_config(self._read(place, lambda checkpoint: _counted(place, checkpoint)))
        except ERRORS as error:
            began = place.is_run and not record.step_folders(place.home)
            return {**describe.NOTHING, "state": "stopped" if began else "broken", "why": self.said(error)}

    def _load(self, place: Place) -> SavedArchive:
        self._check_links(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged checkpoint beside a good one
            return load(place.path)

    def _read(self, place: Place, use: Callable[[Checkpoint], T]) -> T:
        """What `use` makes of the newest checkpoint."""
        self._check_links(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return record.newest(place.path, use)

    def _check_links(self, place: Place) -> None:
        """Everything that is read lies below the root, links followed."""
        parts = [each for name in (record.STEPS, judgement.JUDGED) for each in (place.home / name).rglob("*")]
        for path in [place.home, place.home / judgement.JUDGED, *parts]:
            if not lies_below(self.root, path):
                raise ValueError(f"{path.name} is a link that leads out of the folder that was opened")

    def said(self, error: BaseException) -> str:
        """An error's first line, without the path of the folder that was opened."""
        return (str(error).splitlines() or [type(error).__name__])[0].replace(f"{self.root.parent}/", "")[:400]


class _Cache:
    """The latest answers. What several threads ask for at once is made once."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, threading.Lock()
        self._kept = OrderedDict[Hashable, Any]()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            value = make()
            with self._lock:
                self._kept[key] = value
                while len(self._kept) > self._size:
                    self._making.pop(self._kept.popitem(last=False)[0], None)
            return value


def _counted(place: Place, checkpoint: Checkpoint) -> dict[str, Any]:
    """The settings of a run, with the figures that count: those of its judges, if it was judged."""
    judged = judgement.read(place.path, checkpoint.step)
    return checkpoint.config if judged is None else {**checkpoint.config, "summary": judged.summary}


def _curves(checkpoint: Checkpoint) -> dict[str, Any]:
    return describe.curves(checkpoint.lines(record.METRICS), checkpoint.timings())
