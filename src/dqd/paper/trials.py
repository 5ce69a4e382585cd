"""One trial of a suite, or all trials of an entry side by side: run, and written as records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dqd.compiler import cache
from dqd.paper.layout import trial_folder
from dqd.paper.presets import make_cells, make_domain, preset
from dqd.paper.suites import Entry
from dqd.storage import durable, record

CURVE_ROWS = 100  # lines of metrics per trial


def run_trial(folder: Path, entry: Entry, trial: int) -> None:
    """One trial in this process."""
    import dqd

    with _precision(entry.precision):
        result = _whole(dqd.illuminate(*_search(entry), **_options(entry), seed=trial, progress=False))
        _write(folder, entry, trial, result)


def run_trial_once(folder: Path, entry: Entry, trial: int) -> None:
    """One trial, unless somebody else has written it."""
    if not trial_folder(folder, entry.id, trial).exists():
        cache.enable()
        run_trial(folder, entry, trial)


def damage(place: Path) -> str:
    """What is wrong with the record of a trial; nothing is an empty answer."""
    record.check_format(place)  # another version's is not damaged
    try:
        record.verify(record.step_folders(place)[0])
    except record.DamagedError as error:
        return str(error)
    except (IndexError, FileNotFoundError):
        return "it holds no checkpoint"
    return ""


def remove_damaged(place: Path) -> str:
    """Remove a trial if it is damaged, and say why; alone in the folder, so that nobody has run it again meanwhile."""
    if not place.exists() or not (why := damage(place)):
        return ""
    others = {path.name for path in place.iterdir()} - {record.CONFIG, record.STEPS}
    if others:
        raise FileExistsError(f"{place} is damaged, and holds what is not a trial's ({min(others)}); move it away")
    durable.remove_folder(place)
    return why


def compile_entry(entry: Entry, trials: list[int]) -> None:
    """Ahead of time, in a thread of its own; the program comes back through the persistent cache."""
    from dqd.illumination import compile_ahead

    with _precision(entry.precision):
        options = _options(entry)
        compile_ahead(*_search(entry), x0=options["x0"], seeds=trials, result_archive=options["result_archive"])


def run_entry(entry: Entry, trials: list[int]) -> list[Any]:
    """All trials of an entry side by side."""
    import dqd

    with _precision(entry.precision):
        return _on_host(_whole(dqd.illuminate(*_search(entry), **_options(entry), seeds=trials, progress=False)))


def _on_host(results: Any) -> list[Any]:
    """The results as NumPy arrays, so that the device need not be asked again while the next entry runs there.

    All but the first one lose their solutions, which nobody writes; so does an archive with another beside it.
    """
    import jax

    archive = results.state.reported
    solutions = jax.device_get(archive.solutions[0])
    archive = replace(archive, solutions=archive.solutions[..., :0])
    results.state = jax.device_get(replace(results.state, archive=archive))
    first = results[0]
    first.state = replace(first.state, archive=replace(first.archive, solutions=solutions))
    return [first, *results[1:]]


def write_entry(folder: Path, entry: Entry, results: list[Any]) -> None:
    """One record per trial."""
    with _precision(entry.precision):
        for result in results:
            _write(folder, entry, result.seed, result)


def _whole(result: Any) -> Any:
    """The first Ctrl-C makes `illuminate` return what it has so far."""
    if result.stopped:
        raise KeyboardInterrupt
    return result


def _search(entry: Entry) -> tuple[Any, Any, Any]:
    domain, cells = make_domain(entry.domain, entry.n), make_cells(entry.domain, entry.n, entry.resolution, entry.cells)
    return domain, preset(entry.domain, entry.algorithm, **entry.overrides), cells


def _options(entry: Entry) -> dict[str, Any]:
    import jax.numpy as jnp

    beside = make_cells(entry.domain, entry.n, entry.resolution, entry.cells) if entry.results else None
    return {"x0": jnp.zeros(entry.n), "iterations": entry.iterations, "result_archive": beside}


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    import jax

    with jax.enable_x64(name == "float64"):
        yield


def _write(folder: Path, entry: Entry, trial: int, result: Any) -> None:
    """Others may run the same trial, on another machine or as a worker that was thought lost: the first one wins."""
    place, about = trial_folder(folder, entry.id, trial), {"cell": entry.id, "trial": trial}
    with contextlib.suppress(FileExistsError):
        result.save(place, solutions=trial == 0, rows=CURVE_ROWS, about=about)
