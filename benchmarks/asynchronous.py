"""How busy are workers whose evaluations take very unequal times, with and without waiting for whole batches?

    python benchmarks/asynchronous.py [--evaluations 1440] [--out benchmarks/results/asynchronous.json]

The linear projection of the sphere, n = 20, on 8 processes. An evaluation sleeps for a time drawn from a lognormal
distribution of mean 0.25 s (sigma 1: one in a hundred takes 6 times the mean), which costs no processor: 2 cores are
enough. Every process writes down when an evaluation begins and ends. `busy` is the sum of these times over 8 times
the time from the first beginning to the last end. In one run a process is killed now and then, and the pool made again.
"""

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from device import describe_device, source_digest, today
from numpy_domains import domain_of

WORKERS, N, MEAN, SIGMA, SEED = 8, 20, 0.25, 1.0, 0
KILL_SECONDS = 20.0


@dataclass(frozen=True)
class Sleeping:
    """An evaluator that sleeps as long as the solution says, and keeps a diary for every process."""

    diary: str

    def evaluate(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begin = time.monotonic()
        random = np.random.default_rng(np.frombuffer(solutions.tobytes(), np.uint32))
        time.sleep(random.lognormal(np.log(MEAN) - SIGMA**2 / 2, SIGMA, len(solutions)).sum())
        found = domain_of("lp-sphere", N).evaluate(solutions)
        with (Path(self.diary) / str(os.getpid())).open("a") as file:
            file.write(f"{begin} {time.monotonic()}\n")
        return found

    def evaluate_with_jacobian(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *self.evaluate(solutions), np.stack([domain_of("lp-sphere", N).jacobian(x) for x in solutions])


def cases() -> dict:
    """Emitter, rounds at once, and whether processes are killed."""
    import dqd

    me, mega, elites = dqd.cma_me(sigma=0.5), dqd.cma_mega(sigma=1.0), dqd.map_elites_line(0.1, 0.2, batch_size=36)
    single = dqd.map_elites_line(0.1, 0.2, batch_size=1)
    return {
        "cma-me, synchronous": (me, 1, False),
        "cma-me, 4 rounds": (me, 4, False),
        "cma-me, 4 rounds, workers killed": (me, 4, True),
        "cma-mega, synchronous": (mega, 1, False),
        "cma-mega, 4 rounds": (mega, 4, False),
        "map-elites (line), synchronous": (elites, 1, False),
        "map-elites (line), batches of 1, 24 rounds": (single, 24, False),
    }


def measure(emitter: object, rounds: int, kill: bool, evaluations: int) -> dict:
    import dqd

    pools = []

    def pool() -> ProcessPoolExecutor:
        pools.append(ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")))
        list(pools[-1].map(time.sleep, [0.5] * WORKERS))  # all processes are there
        return pools[-1]

    def run(diary: str, iterations: int):
        return dqd.illuminate(
            Sleeping(diary),
            emitter,
            dqd.LinearProjection("sphere", N).grid(50),
            x0=np.zeros(N),
            iterations=iterations,
            seed=SEED,
            progress=False,
            where=dqd.Workers(pool, rows=1, rounds=rounds),
        )

    iterations = (evaluations - emitter.initial_population) // emitter.batch_size
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as diary:
        run(warm, max(1, 72 // emitter.batch_size))  # compiled
        kills, done = [], threading.Event()
        killer = threading.Thread(target=_kill, args=(pools, kills, done))
        if kill:
            killer.start()
        result = run(diary, iterations)
        done.set()
        lines = [line.split() for file in Path(diary).iterdir() for line in file.read_text().splitlines()]
    times = np.array(lines, float)
    wall = times[:, 1].max() - times[:, 0].min()
    return {
        "busy": float((times[:, 1] - times[:, 0]).sum() / (WORKERS * wall)),
        "seconds": float(wall),
        "evaluations": result.evaluations,
        "evaluated": len(times),
        "killed": len(kills),
        "nonfinite": result.nonfinite,
        "qd_score": result.qd_score,
        "coverage": result.coverage,
    }


def _kill(pools: list, kills: list, done: threading.Event) -> None:
    while not done.wait(KILL_SECONDS):
        process = next(iter((pools[-1]._processes or {}).values()), None)
        if process is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills.append(process.pid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=1440)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "asynchronous.json")
    given = parser.parse_args()
    results = {"date": today(), "device": describe_device(), "source": source_digest()}
    results |= {"workers": WORKERS, "mean_seconds": MEAN, "lognormal_sigma": SIGMA, "cases": {}}
    for name, case in cases().items():
        found = results["cases"][name] = measure(*case, given.evaluations)
        print(f"{name:45} busy {100 * found['busy']:5.1f} %  {found['seconds']:6.1f} s  {found}", flush=True)
    given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
