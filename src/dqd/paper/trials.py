"""One trial of a suite, or all trials of an entry side by side: run, and written as records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dqd.compiler import cache
from dqd.paper.layout import trial_folder
from dqd.paper.presets import make_domain, preset
from dqd.paper.suites import Entry

CURVE_ROWS = 100  # lines of metrics per trial


def run_trial(folder: Path, entry: Entry, trial: int) -> None:
    """One trial in this process."""
    import dqd

    with _precision(entry.precision):
        result = _whole(dqd.illuminate(*_search(entry), **_options(entry), seed=trial, progress=False))
        _write(folder, entry, trial, result)


def run_trial_once(folder: Path, entry: Entry, trial: int) -> None:
    """One trial, unless somebody else has written it, or does so meanwhile.

    Other machines may share the folder, and a worker that is lost may have been about to.
    """
    written = trial_folder(folder, entry.id, trial)
    if written.exists():
        return
    cache.enable()
    try:
        run_trial(folder, entry, trial)
    except OSError:
        if not written.exists():
            raise


def compile_entry(entry: Entry, trials: list[int]) -> None:
    """Ahead of time, in a thread of its own; the program comes back through the persistent cache."""
    from dqd.illumination import compile_ahead

    with _precision(entry.precision):
        compile_ahead(*_search(entry), x0=_options(entry)["x0"], seeds=trials)


def run_entry(entry: Entry, trials: list[int]) -> list[Any]:
    """All trials of an entry side by side."""
    import dqd

    with _precision(entry.precision):
        return _on_host(_whole(dqd.illuminate(*_search(entry), **_options(entry), seeds=trials, progress=False)))


def _on_host(results: Any) -> list[Any]:
    """The results as NumPy arrays, so that the device need not be asked again while the next entry runs there.

    All but the first one lose their solutions, which nobody writes.
    """
    import jax

    archive = results.state.archive
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
    domain = make_domain(entry.domain, entry.n)
    return domain, preset(entry.domain, entry.algorithm, **entry.overrides), domain.grid(entry.resolution)


def _options(entry: Entry) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"x0": jnp.zeros(entry.n), "iterations": entry.iterations}


@contextmanager
def _precision(name: str) -> Iterator[None]:
    import jax

    with jax.enable_x64(name == "float64"):
        yield


def _write(folder: Path, entry: Entry, trial: int, result: Any) -> None:
    about = {"cell": entry.id, "trial": trial}
    result.save(trial_folder(folder, entry.id, trial), solutions=trial == 0, rows=CURVE_ROWS, about=about)
