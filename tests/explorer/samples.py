"""Runs and archives made without a search, and a server that shows them."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from dqd.explorer.app import build
from dqd.explorer.guard import Guard
from dqd.explorer.server import listening, names, settings
from dqd.saved.archive import SavedArchive
from dqd.storage import record
from dqd.storage.writer import Writer
from dqd.tessellations import Grid

ARM = {"type": "Arm", "n": 6}
COMMAND = {"domain": "arm", "algorithm": "cma-mega"}


def archive(shape=(12, 9), *, seed=0, filled=0.7, n=6, config=None) -> SavedArchive:
    """Elites at random; measure j runs from 0 to j + 1."""
    random = np.random.default_rng(seed)
    grid = Grid([0.0] * len(shape), [j + 1.0 for j in range(len(shape))], shape)
    cells = np.sort(random.choice(grid.num_cells, max(1, int(filled * grid.num_cells)), replace=False)).astype(np.int32)
    width = np.array([(j + 1.0) / length for j, length in enumerate(shape)])
    measures = (grid.centers()[cells] + random.uniform(-0.3, 0.3, (len(cells), len(shape))) * width).astype(np.float32)
    objective = random.uniform(10, 100, len(cells)).astype(np.float32)
    solutions = random.normal(size=(len(cells), n)).astype(np.float32)
    found = random.integers(1, 500, len(cells)).astype(np.int32)
    return SavedArchive(cells, objective, measures, solutions, found, grid, config=config or {})


def config(**changes: Any) -> dict[str, Any]:
    return {"command": COMMAND, "domain": ARM, "seed": 0, "iterations": 500, **changes}


def summary(saved: SavedArchive, iterations=500, **changes: Any) -> dict[str, Any]:
    figures = {"qd_score": saved.qd_score, "coverage": saved.coverage, "best": saved.best, "mean": saved.mean}
    counts = {"iterations": iterations, "evaluations": 36 * iterations, "gradients": iterations, "restarts": 2}
    return {**figures, **counts, "seconds": 1.5, "stopped": None, "seed": 0, **changes}


def metrics(count=20, last=500) -> list[dict[str, float]]:
    steps = np.linspace(last / count, last, count).astype(int).tolist()
    return [{"iteration": i, "qd_score": i / 10, "coverage": i / 8, "best": 90 + i / 100, "mean": 60.0} for i in steps]


def make_run(folder: Path, saved: SavedArchive | None = None, **changes: Any) -> SavedArchive:
    """A finished run on disk, with the settings changed."""
    saved = saved or archive()
    settings = config(**changes)
    about = {**settings, "summary": summary(saved, settings["iterations"], seed=settings["seed"])}
    record.write(folder, about, metrics(last=settings["iterations"]), saved.arrays())
    return saved


def commit(writer: Writer, step: int, saved: SavedArchive, **changes: Any) -> None:
    """A checkpoint and a view of a run that is going on."""
    writer.configure(record.with_versions(config(**changes)))
    timings = [
        {"iteration": i, "seconds": (i / 100) ** 2, "evaluations": 100 + 36 * i, "restarts": i // 50}
        for i in range(step // 4, step + 1, step // 4)
    ]
    files = {
        record.METRICS: record.to_lines(metrics(last=step)),
        record.TIMINGS: record.to_lines(timings),
        record.ARCHIVE: saved.arrays(),
    }
    writer.commit(step, record.with_versions(config(**changes)), summary(saved, step), files)
    writer.view(step, {"cell": saved.cell, "objective": saved.objective})


class Served:
    """An explorer in a thread of this process."""

    def __init__(self, root: Path, host: str = "127.0.0.1", listener: socket.socket | None = None) -> None:
        self.listener = listener or listening(host, 0)
        self.port = self.listener.getsockname()[1]
        self.said: list[str] = []
        self.guard = Guard(build(root), self.port, names(host), self.said.append)
        self.server = uvicorn.Server(settings(self.guard))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> dict[str, str]:
        return {self.guard.cookie: self.guard.secret}

    def start(self) -> None:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


@contextlib.contextmanager
def served(root: Path, host: str = "127.0.0.1", listener: socket.socket | None = None) -> Iterator[Served]:
    server = Served(root, host, listener)
    server.start()
    try:
        yield server
    finally:
        server.stop()
