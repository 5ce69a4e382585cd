"""Runs a suite: what is missing of it, and nothing twice.

On an accelerator all trials of a cell run side by side in one program, and all programs are compiled ahead in threads.
On a CPU every trial is a task for a pool of processes, or for a Dask cluster whose workers see the same folder. A trial
is written when it is done, as a record that is whole or absent, so an interrupted suite goes on where it stopped: a
search that Ctrl-C cut short is no trial, and is not written.

    OUT/suite.json                what was asked for, with the published numbers
    OUT/<cell>/trial-000/         one record per trial; solutions only in the first one of each cell
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any

from dqd import cache, durable
from dqd.describe import SettingsChangedError
from dqd.experiments.presets import make_domain, preset
from dqd.experiments.suites import Cell, Suite
from dqd.safe import load_json

CURVE_ROWS = 100  # lines of metrics per trial
CHUNK = 500  # iterations between two looks at a trial
SHARED_SECONDS = 60.0  # NFS remembers for so long, by default, that a file was not there


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
    _claim(folder, suite)
    tasks = [
        (cell, trial)
        for cell in suite.cells
        for trial in (range(cell.trials) if trial_index is None else [trial_index])
        if trial < cell.trials and not (folder / cell.id / trial_name(trial)).exists()
    ]
    total = sum(cell.trials for cell in suite.cells)
    if tasks:
        on_device = cluster is None and (device == "gpu" or (device == "auto" and accelerator()))
        say(f"dqd: {len(tasks):,} of {total:,} trials to run, {'all seeds at once' if on_device else 'one by one'}")
        started = time.perf_counter()
        progress = _Progress(tasks, say)
        where = ""
        try:
            if cluster is not None:
                where = _run_on_cluster(folder, tasks, cluster, insecure, progress)
            elif on_device:
                where = _run_on_device(folder, tasks, jobs, progress)
            else:
                where = _run_on_cpu(folder, tasks, jobs, progress)
        finally:
            _add_time(folder, time.perf_counter() - started, progress.execution, where)
    return all((folder / cell.id / trial_name(t)).exists() for cell in suite.cells for t in range(cell.trials))


def trial_name(trial: int) -> str:
    return f"trial-{trial:03d}"


def accelerator() -> bool:
    """Whether JAX sees more than a CPU."""
    import jax

    return jax.default_backend() != "cpu"


# The folder -----------------------------------------------------------------------------------------------------------


def _claim(folder: Path, suite: Suite) -> None:
    """Write suite.json, or check that the folder holds the same settings; only the number of trials may differ."""
    cells = [cell.describe() for cell in suite.cells]
    wanted: dict[str, Any] = {"suite": suite.name, "title": suite.title, "cells": cells}
    path = folder / "suite.json"
    so_far = {"seconds": 0.0, "execution_seconds": 0.0, "device": ""}
    if path.exists():
        found = _described(path)
        if found["suite"] != suite.name:
            raise SuiteMismatchError(
                f"{folder} holds trials of {found['suite']}, not of {suite.name}; give another --out"
            )
        so_far = {key: found.get(key, nothing) for key, nothing in so_far.items()}
        known = {cell["id"]: cell for cell in found["cells"]}
        for new in cells:
            old = known.get(new["id"], new)
            changed = [key for key in new if key != "trials" and _plain(new[key]) != _plain(old.get(key))]
            if changed:
                raise SuiteMismatchError(
                    f"{folder} holds trials of other settings ({new['id']}: {', '.join(changed)} differ); "
                    "give another --out, or the settings it was begun with"
                )
    _write_json(path, {**wanted, **so_far})


def _described(path: Path) -> dict[str, Any]:
    found = load_json(path)
    if not isinstance(found, dict) or not {"suite", "cells"} <= set(found):
        raise SuiteMismatchError(f"{path} describes no suite; give another --out")
    return found


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.replace_file(path, (json.dumps(content, indent=2) + "\n").encode())


def _add_time(folder: Path, seconds: float, execution: float, where: str) -> None:
    content = load_json(folder / "suite.json")
    content["seconds"] += seconds
    content["execution_seconds"] += execution
    content["device"] = where or content["device"]
    _write_json(folder / "suite.json", content)


def _device_name() -> str:
    import jax

    return jax.devices()[0].device_kind


# One program per cell, on an accelerator ------------------------------------------------------------------------------


def _run_on_device(folder: Path, tasks: list[tuple[Cell, int]], jobs: int | None, progress: _Progress) -> str:
    cells: dict[str, tuple[Cell, list[int]]] = {}
    for cell, trial in tasks:
        cells.setdefault(cell.id, (cell, []))[1].append(trial)
    with ThreadPoolExecutor(jobs or os.cpu_count()) as compilers, ThreadPoolExecutor(1) as writer:
        compiled = {compilers.submit(_compile, cell, trials): (cell, trials) for cell, trials in cells.values()}
        written: list[Future[None]] = []
        try:
            for future in as_completed(compiled):
                future.result()
                cell, trials = compiled[future]
                results = _illuminate(cell, trials)
                progress.execution += results[0].seconds
                for earlier in written:  # one cell is written while the next one runs, never more: archives are large
                    earlier.result()
                written = [writer.submit(_write_all, folder, cell, results, progress)]
            for last in written:
                last.result()
        except BaseException:
            compilers.shutdown(wait=False, cancel_futures=True)
            raise
    return _device_name()


def _compile(cell: Cell, trials: list[int]) -> None:
    """Ahead of time, in a thread of its own; the program comes back through the persistent cache."""
    from dqd.run import compile_ahead

    with _precision(cell.precision):
        compile_ahead(*_search(cell), **_options(cell), seeds=trials)


def _illuminate(cell: Cell, trials: list[int]) -> list[Any]:
    import dqd

    with _precision(cell.precision):
        return _on_host(_whole(dqd.illuminate(*_search(cell), **_options(cell), seeds=trials, progress=False)))


def _whole(result: Any) -> Any:
    """The first Ctrl-C makes `illuminate` return what it has so far."""
    if result.stopped:
        raise KeyboardInterrupt
    return result


def _on_host(results: Any) -> list[Any]:
    """The results as NumPy arrays, so that the device need not be asked again while the next cell runs there.

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


def _write_all(folder: Path, cell: Cell, results: list[Any], progress: _Progress) -> None:
    with _precision(cell.precision):
        for result in results:
            _write(folder, cell, result.seed, result)
    progress.done(cell, len(results))


def _search(cell: Cell) -> tuple[Any, Any, Any]:
    domain = make_domain(cell.domain, cell.n)
    return domain, preset(cell.domain, cell.algorithm, **cell.overrides), domain.grid(cell.resolution)


def _options(cell: Cell) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"x0": jnp.zeros(cell.n), "iterations": cell.iterations, "chunk": CHUNK}


@contextmanager
def _precision(name: str) -> Iterator[None]:
    import jax

    with jax.enable_x64(name == "float64"):
        yield


# One process per trial, on CPUs ---------------------------------------------------------------------------------------


def _run_on_cpu(folder: Path, tasks: list[tuple[Cell, int]], jobs: int | None, progress: _Progress) -> str:
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    tasks = _first_trials_first(tasks)
    with _one_thread_each(workers), _pool(workers) as pool:
        futures = {pool.submit(run_trial_once, folder, cell, trial): cell for cell, trial in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                progress.done(futures[future])
        except BaseException as reason:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(reason, KeyboardInterrupt):  # otherwise trials that have begun are finished
                for worker in active_children():
                    worker.terminate()
            raise
    return f"{os.cpu_count()} CPU cores"


def _first_trials_first(tasks: list[tuple[Cell, int]]) -> list[tuple[Cell, int]]:
    """So a cell's program is compiled once, and found by later trials."""
    return sorted(tasks, key=lambda task: task[1])


def _pool(workers: int) -> Executor:
    # Spawned, not forked: a fork would copy JAX's threads in whatever state they are.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin_worker)


@contextmanager
def _one_thread_each(workers: int) -> Iterator[None]:
    """Processes share the cores; threads inside each would only fight over them."""
    names = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OPENBLAS_NUM_THREADS": "1"}
    old = {name: os.environ.get(name) for name in names}
    if workers > 1:
        for name, value in names.items():
            os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name in names:
            if old[name] is None:
                os.environ.pop(name, None)


def _begin_worker() -> None:
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the parent decides; `illuminate` would listen, too
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import jax

    jax.config.update("jax_platforms", "cpu")
    cache.enable()  # processes share what they compile


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def run_trial(folder: Path, cell: Cell, trial: int) -> None:
    """One trial in this process."""
    import dqd

    with _precision(cell.precision):
        result = _whole(dqd.illuminate(*_search(cell), **_options(cell), seed=trial, progress=False))
        _write(folder, cell, trial, result)


# One task per trial, on a Dask cluster --------------------------------------------------------------------------------


def _run_on_cluster(
    folder: Path, tasks: list[tuple[Cell, int]], address: str, insecure: bool, progress: _Progress
) -> str:
    from dqd.interop.executor import Cluster, connect

    cluster = Cluster(connect(address, insecure), owned=True)
    try:
        cores = sum(cluster.client.nthreads().values())
        running = {
            cluster.submit(run_trial_once, folder.resolve(), cell, trial): (cell, trial)
            for cell, trial in _first_trials_first(tasks)
        }
        while running:
            for task in cluster.wait(list(running), None):
                cell, trial = running.pop(task)
                try:
                    cluster.result(task)
                except Exception as error:
                    raise RuntimeError(f"{cell.id}, trial {trial}: {type(error).__name__}: {error}") from error
                _await(folder / cell.id / trial_name(trial))
                progress.done(cell)
    finally:
        cluster.close()  # the cluster drops what nobody waits for any more
    return f"a Dask cluster of {cores} threads"


def run_trial_once(folder: Path, cell: Cell, trial: int) -> None:
    """One trial, unless somebody else has written it, or does so meanwhile: other machines may share the folder, and
    a worker that is lost may have been about to."""
    if not (folder / cell.id / trial_name(trial)).exists():
        cache.enable()
        with suppress(FileExistsError):
            run_trial(folder, cell, trial)


def _await(record: Path) -> None:
    """A file system that several machines share may show what another one wrote with a delay."""
    deadline = time.monotonic() + SHARED_SECONDS
    while not record.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(
                f"a worker has written {record}, but it is not there for us; all workers must see the same file system"
            )
        time.sleep(0.5)


def _write(folder: Path, cell: Cell, trial: int, result: Any) -> None:
    result.save(
        folder / cell.id / trial_name(trial),
        solutions=trial == 0,
        rows=CURVE_ROWS,
        about={"cell": cell.id, "trial": trial},
    )


class _Progress:
    """How much of the suite is done, and how long the rest will take if iterations go on as fast as so far.

    The time until the first trials were done does not count: most of it is compilation.
    """

    def __init__(self, tasks: list[tuple[Cell, int]], say: Callable[[str], None]) -> None:
        self.total, self.say = len(tasks), say
        self.work = sum(cell.iterations for cell, _ in tasks)
        self.finished = self.worked = 0
        self.execution = 0.0  # seconds of an accelerator; processes on a CPU overlap, and have no such sum
        self.started = self.told = time.monotonic()
        self.mark: tuple[float, int] | None = None  # when the first trials were done, and the work they were

    def done(self, cell: Cell, trials: int = 1) -> None:
        self.finished, self.worked = self.finished + trials, self.worked + trials * cell.iterations
        now = time.monotonic()
        self.mark = self.mark or (now, self.worked)
        if self.finished < self.total and now - self.told < (1.0 if sys.stderr.isatty() else 10.0):
            return
        self.told = now
        first, compiled = self.mark
        left = ""
        if self.worked > compiled:
            left = f", about {(now - first) * (self.work - self.worked) / (self.worked - compiled):.0f} s left"
        self.say(f"dqd: {self.finished:,} of {self.total:,} trials in {now - self.started:.0f} s{left}")
