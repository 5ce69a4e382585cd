"""Runs a suite: what is missing of it, and nothing twice.

On an accelerator all trials of an entry run side by side in one program, and programs are compiled ahead in threads. On
a CPU every trial is a task for a pool of processes, or for a Dask cluster whose workers see the same folder. A trial is
written when it is done, as a record that is whole or absent, so an interrupted suite goes on where it stopped: a search
that Ctrl-C cut short is no trial, and is not written. `dqd.paper.layout` says where files lie.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dqd.paper.layout import ENTRIES, SUITE, trial_folder
from dqd.paper.pools import Progress, accelerator, run_on_cluster, run_on_cpu, run_on_device
from dqd.paper.suites import Entry, Suite
from dqd.paper.trials import damage, remove_damaged
from dqd.safe import load_json
from dqd.storage import durable
from dqd.storage.lock import Lock
from dqd.storage.record import LOCK
from dqd.storage.settings import SettingsChangedError, plain


class SuiteMismatchError(SettingsChangedError):
    """The folder holds trials of other settings, or of another suite."""


def reproduce(
    suite: Suite,
    out: str | os.PathLike[str],
    *,
    device: str = "auto",
    jobs: int | None = None,
    trial_index: int | None = None,
    cluster: str | None = None,
    insecure: bool = False,
    say: Callable[[str], None] = print,
) -> bool:
    """Run the missing trials of a suite into a folder. True when all of its trials are there.

    `cluster` is the address of a Dask scheduler whose workers share the file system.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"--out: expected a folder, {folder} is a file")
    with _alone(folder):
        _claim(folder, suite)
    wanted = [
        (entry, trial)
        for entry in suite.entries
        for trial in (range(entry.trials) if trial_index is None else [trial_index])
        if trial < entry.trials
    ]
    tasks = [(entry, trial) for entry, trial in wanted if not _is_there(folder, entry, trial, say)]
    total = sum(entry.trials for entry in suite.entries)
    if tasks:
        on_device = cluster is None and device != "cpu" and (accelerator() or device == "gpu")
        say(f"dqd: {len(tasks):,} of {total:,} trials to run, {'all seeds at once' if on_device else 'one by one'}")
        started = time.perf_counter()
        progress = Progress(tasks, say)
        where = ""
        try:
            if cluster is not None:
                where = run_on_cluster(folder, tasks, cluster, insecure, progress)
            elif on_device:
                where = run_on_device(folder, tasks, jobs, progress)
            else:
                where = run_on_cpu(folder, tasks, jobs, progress)
        finally:
            with _alone(folder):
                _add_time(folder, time.perf_counter() - started, progress.execution, where)
    return all(trial_folder(folder, entry.id, t).exists() for entry in suite.entries for t in range(entry.trials))


def _is_there(folder: Path, entry: Entry, trial: int, say: Callable[[str], None]) -> bool:
    """Whether a trial is as it was written. A damaged one is removed."""
    place = trial_folder(folder, entry.id, trial)
    if place.exists() and not damage(place):
        return True
    durable.refuse_links(folder, place)
    with _alone(folder):
        why = remove_damaged(place)
    if why:
        say(f"dqd: {entry.id}/{place.name} is damaged ({why}); it is run again")
    return place.exists()


# The folder -----------------------------------------------------------------------------------------------------------


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """suite.json is read and written by one process at a time: the tasks of an array share it."""
    durable.make_folder(folder)
    durable.refuse_links(folder, folder / LOCK)
    lock = Lock(folder / LOCK)
    try:
        lock.take(wait=True)
        yield
    finally:
        lock.close()


def _claim(folder: Path, suite: Suite) -> None:
    """Write suite.json, or check that the folder holds the same settings; only the number of trials may differ."""
    entries = [entry.describe() for entry in suite.entries]
    wanted: dict[str, Any] = {"suite": suite.name, "title": suite.title, ENTRIES: entries}
    path = folder / SUITE
    so_far = {"seconds": 0.0, "execution_seconds": 0.0, "device": "", "jax": "", "date": ""}
    if path.exists():
        found = _described(path)
        if found["suite"] != suite.name:
            raise SuiteMismatchError(
                f"{folder} holds trials of {found['suite']}, not of {suite.name}; give another --out"
            )
        so_far = {key: found.get(key, nothing) for key, nothing in so_far.items()}
        known = {entry["id"]: entry for entry in found[ENTRIES]}
        for new in entries:
            old = known.get(new["id"], new)
            changed = [key for key in new if key != "trials" and plain(new[key]) != plain(old.get(key))]
            if changed:
                raise SuiteMismatchError(
                    f"{folder} holds trials of other settings ({new['id']}: {', '.join(changed)} differ); "
                    "give another --out, or the settings it was begun with"
                )
    _write_json(path, {**wanted, **so_far})


def _described(path: Path) -> dict[str, Any]:
    found = load_json(path)
    if not isinstance(found, dict) or not {"suite", ENTRIES} <= set(found):
        raise SuiteMismatchError(f"{path} describes no suite; give another --out")
    return found


def _write_json(path: Path, content: Any) -> None:
    durable.replace_file(path, json.dumps(content, indent=2) + "\n")


def _add_time(folder: Path, seconds: float, execution: float, where: str) -> None:
    content = load_json(folder / SUITE)
    content["seconds"] += seconds
    content["execution_seconds"] += execution
    content["device"] = where or content["device"]
    content.update(jax=version("jax"), date=date.today().isoformat())
    _write_json(folder / SUITE, content)
