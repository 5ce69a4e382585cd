"""What checkpoints cost: a commit, saving and loading a large archive, and the share of a run's time.

    python benchmarks/checkpoint.py [--seconds 600] [--rounds 5] [--out benchmarks/results/checkpoint-cpu.json]

Without --seconds only commits and archives are measured. Files go to a temporary folder beside --out, so that the disk
is the one that counts.
"""

import argparse
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from device import describe_device, source_digest, today
from dqd.archives import Archive, Metrics
from dqd.inputs.layout import Layout
from dqd.result import Result
from dqd.runners.checkpoints import Checkpoints
from dqd.runners.progress import CompileClock
from dqd.runners.snapshot import settings
from dqd.search.history import History
from dqd.search.search import Search
from dqd.storage import record
from dqd.storage.writer import Writer
from dqd.types import replace

ARCHIVES = {"10,000 cells, n = 1000": (100, 1000), "1,000,000 cells, n = 10": (1000, 10)}
ITERATIONS = 10_000  # of history


def main() -> None:
    given = _arguments()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    results = {"date": today(), "device": describe_device(), "source": source_digest(), "archives": {}}
    with tempfile.TemporaryDirectory(dir=given.out.parent, prefix=".checkpoint-") as folder:
        for name, (side, n) in ARCHIVES.items():
            results["archives"][name] = measure_archive(Path(folder), side, n, given.rounds)
        if given.seconds:
            results["run"] = measure_run(Path(folder), given.seconds)
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


def measure_archive(folder: Path, side: int, n: int, rounds: int) -> dict:
    """A full archive as the last checkpoint of a run, as a saved result, and read back."""
    result = full_result(side, n)
    rounds_of = [_round(folder / f"{side}-{number}", result) for number in range(rounds)]
    times = {name: [each[name] for each in rounds_of] for name in rounds_of[0]}
    return {name: {"median": median(values), "worst": max(values)} for name, values in times.items()}


def _round(folder: Path, result: Result) -> dict[str, float]:
    run, saved, times = folder / "run", folder / "saved", {}
    start = (result.search, Archive.empty(result.archive.tessellation, result.state.x0.size), result.state.x0)
    with Writer(run) as writer:
        checkpoints = checkpoints_of(writer, result)
        checkpoints.restore(*start)  # nothing to go on from yet; writes config.json
        times["commit_seconds"] = timed(lambda: checkpoints.keep(result.state, None, None, last=True))
    times["save_seconds"] = timed(lambda: result.save(saved))
    times["load_seconds"] = timed(lambda: record.read(saved))
    with Writer(run) as writer:
        again = checkpoints_of(writer, result)
        times["restore_seconds"] = timed(lambda: jax.block_until_ready(again.restore(*start)[0]))
    times["megabytes"] = sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 1e6
    shutil.rmtree(folder)
    return times


def full_result(side: int, n: int) -> Result:
    """A search whose every cell is occupied."""
    domain, cells = dqd.LinearProjection("sphere", n), side * side
    search, x0 = Search(dqd.cma_mega(sigma=1.0)), jnp.zeros(n)
    random = np.random.default_rng(0)
    archive = Archive.empty(domain.grid(side), n)
    state = jax.jit(Search.init)(search, archive, x0, jax.random.key(0))
    archive = replace(
        state.archive,
        solutions=jnp.asarray(random.normal(size=(cells, n)), jnp.float32),
        objective=jnp.asarray(random.uniform(size=cells), jnp.float32),
        measures=jnp.asarray(random.normal(size=(cells, 2)), jnp.float32),
        count=jnp.asarray(cells, jnp.int32),
    )
    state = replace(state, archive=archive, iteration=jnp.asarray(ITERATIONS, jnp.int32))
    history = History()
    history.append(Metrics(*(np.zeros(ITERATIONS, np.float32) for _ in range(4))))
    return Result(search, jax.block_until_ready(state), history.arrays(), 0, None, 0.0, 0.0, Layout.of(x0)[0], domain)


def checkpoints_of(writer: Writer, result: Result) -> Checkpoints:
    about = settings(result.search, result.archive, result.state.x0, result.domain)
    config = record.with_versions({**about, "seed": 0, "iterations": ITERATIONS})
    return Checkpoints(writer, config, 60.0, CompileClock(), result.search)


def measure_run(folder: Path, seconds: float) -> dict:
    """CMA-MEGA at the paper's size with checkpoints as they are by default: the time in which nothing is launched."""
    spent: list[float] = []
    keep = Checkpoints.keep

    def watched(self: Checkpoints, *arguments: object, **options: object) -> None:
        spent.append(timed(lambda: keep(self, *arguments, **options)))

    Checkpoints.keep = watched
    domain = dqd.LinearProjection("sphere", 1000)

    def run(iterations: int, name: str) -> Result:
        return dqd.illuminate(
            domain,
            dqd.cma_mega(sigma=10.0),
            domain.grid(100),
            x0=jnp.zeros(1000),
            iterations=iterations,
            out=folder / name,
        )

    trial = run(100_000, "trial")  # a short one would be slower per iteration
    spent.clear()
    iterations = math.ceil(seconds * trial.iterations / trial.seconds / 1000) * 1000
    result = run(iterations, "run")
    return {
        "iterations": iterations,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "times_kept": len(spent),
        "keeping_seconds": sum(spent),
        "longest": max(spent),
        "share": sum(spent) / result.seconds,
    }


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.0, help="length of the run whose checkpoints are timed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "checkpoint-cpu.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
