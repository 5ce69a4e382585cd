"""What runs the trials of a suite: a device, the cores of this machine, or a Dask cluster. Each tells where it ran."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any

from dqd.compiler import cache, flags
from dqd.paper import trials
from dqd.paper.layout import trial_folder
from dqd.paper.suites import Entry

SLOWEST = ("cma-me", "cma-mae")  # they decompose n x n matrices: others are compiled while these run
SHARED_SECONDS = 60.0  # NFS remembers for so long, by default, that a file was not there


class Progress:
    """How much of the suite is done, and how long the rest will take if iterations go on as fast as so far.

    The time until the first trials were done does not count: most of it is compilation.
    """

    def __init__(self, tasks: list[tuple[Entry, int]], say: Callable[[str], None]) -> None:
        self.total, self.say = len(tasks), say
        self.work = sum(entry.iterations for entry, _ in tasks)
        self.finished = self.worked = 0
        self.execution = 0.0  # seconds of an accelerator; processes on a CPU overlap, and have no such sum
        self.started = self.told = time.monotonic()
        self.mark: tuple[float, int] | None = None  # when the first trials were done, and the work they were

    def done(self, entry: Entry, trials: int = 1) -> None:
        """Count trials, and say so from time to time."""
        self.finished, self.worked = self.finished + trials, self.worked + trials * entry.iterations
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


def accelerator() -> bool:
    """Whether JAX sees more than a CPU."""
    import jax

    flags.add_flag(flags.NO_TRITON_PRODUCTS)  # half of the time to compile a suite would go into trying them out
    return jax.default_backend() != "cpu"


def _device_name() -> str:
    import jax

    return jax.devices()[0].device_kind


# One program per entry, on an accelerator -----------------------------------------------------------------------------


def run_on_device(folder: Path, tasks: list[tuple[Entry, int]], jobs: int | None, progress: Progress) -> str:
    """All trials of an entry at once; the next program is compiled and the last results are written meanwhile."""
    entries: dict[str, tuple[Entry, list[int]]] = {}
    for entry, trial in tasks:
        entries.setdefault(entry.id, (entry, []))[1].append(trial)
    threads = jobs or max(1, (os.cpu_count() or 1) // 2)  # XLA has its own besides, and entries run meanwhile
    with ThreadPoolExecutor(threads) as compilers, ThreadPoolExecutor(1) as writer:
        ordered = sorted(entries.values(), key=lambda entry: entry[0].algorithm not in SLOWEST)
        compiled = {compilers.submit(trials.compile_entry, *entry): entry for entry in ordered}
        written: list[Future[None]] = []
        try:
            for future in as_completed(compiled):
                future.result()
                entry, numbers = compiled[future]
                results = trials.run_entry(entry, numbers)
                progress.execution += results[0].seconds
                for earlier in written:  # one entry is written while the next one runs, never more: archives are large
                    earlier.result()
                written = [writer.submit(_write, folder, entry, results, progress)]
            for last in written:
                last.result()
        except BaseException:
            compilers.shutdown(wait=False, cancel_futures=True)
            raise
    return _device_name()


def _write(folder: Path, entry: Entry, results: list[Any], progress: Progress) -> None:
    trials.write_entry(folder, entry, results)
    progress.done(entry, len(results))


# One process per trial, on CPUs ---------------------------------------------------------------------------------------


def run_on_cpu(folder: Path, tasks: list[tuple[Entry, int]], jobs: int | None, progress: Progress) -> str:
    """As many trials at a time as there are processes."""
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    tasks = _first_trials_first(tasks)
    with _one_thread_each(workers), _pool(workers) as pool:
        futures = {pool.submit(trials.run_trial_once, folder, entry, trial): entry for entry, trial in tasks}
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


def _first_trials_first(tasks: list[tuple[Entry, int]]) -> list[tuple[Entry, int]]:
    """So an entry's program is compiled once, and found by later trials."""
    return sorted(tasks, key=lambda task: task[1])


def _pool(workers: int) -> Executor:
    # Spawned, not forked: a fork would copy JAX's threads in whatever state they are.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin_worker)


@contextmanager
def _one_thread_each(workers: int) -> Iterator[None]:
    """Processes share the cores; threads inside each would only fight over them."""
    before = {name: os.environ.get(name) for name in ("XLA_FLAGS", "OPENBLAS_NUM_THREADS")}
    if workers > 1:
        flags.add_flag("--xla_cpu_multi_thread_eigen=false")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


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


# One task per trial, on a Dask cluster --------------------------------------------------------------------------------


def run_on_cluster(
    folder: Path, tasks: list[tuple[Entry, int]], address: str, insecure: bool, progress: Progress
) -> str:
    """As many trials at a time as the cluster has threads."""
    from dqd.workers.dask import Cluster

    cluster = Cluster.of(address, insecure)
    try:
        cores = sum(cluster.client.nthreads().values())
        running = {
            cluster.submit(trials.run_trial_once, folder.resolve(), entry, trial): (entry, trial)
            for entry, trial in _first_trials_first(tasks)
        }
        while running:
            for task in cluster.wait(list(running), None):
                entry, trial = running.pop(task)
                try:
                    cluster.result(task)
                except Exception as error:
                    raise RuntimeError(f"{entry.id}, trial {trial}: {type(error).__name__}: {error}") from error
                _await(trial_folder(folder, entry.id, trial))
                progress.done(entry)
    finally:
        cluster.close()  # the cluster drops what nobody waits for any more
    return f"a Dask cluster of {cores} threads"


def _await(record: Path) -> None:
    """A file system that several machines share may show what another one wrote with a delay."""
    deadline = time.monotonic() + SHARED_SECONDS
    while not record.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(
                f"a worker has written {record}, but it is not there for us; all workers must see the same file system"
            )
        time.sleep(0.5)
