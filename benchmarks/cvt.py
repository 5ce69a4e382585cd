"""What cells around centroids cost: one batch of 36 into archives of 10^4 to 10^6 cells with 2, 10 and 50 measures.

    python benchmarks/cvt.py [--cells 10000 100000 1000000] [--measures 2 10 50] [--rounds 7] [--qdax FOLDER]

`dqd` is `archive.add` in float32, for batches of 36 solutions of 10 numbers, in a compiled loop as `dqd.illuminate` has
it; `dqd, called` is one call per batch, as a loop of one's own has it. `pyribs` is `CVTArchive.add` with its default, a
tree, in float64. `qdax` is `MapElitesRepertoire.add` in a compiled loop, in float32; its packages are those of

    pip install --no-deps --target FOLDER qdax==0.5.0 flax==0.12.8 chex toolz absl-py jaxtyping wadler-lindig msgpack

so that all run in one process by one JAX. All have the same centroids and are given batches of the same kind, in turns:
measures uniform within the range, which is what a search with known bounds has. A turn has as many batches as take a
second, 3 at least and 500 at most: of fewer, what a call costs by itself would be a good part. Milliseconds per batch:
of the wall clock the median over the rounds, and of the processor's time in all threads, which other programs change
less, the least.
"""

import argparse
import functools
import json
import sys
import time
from pathlib import Path
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
from ribs.archives import CVTArchive

import dqd
from device import describe_device, source_digest, today
from dqd.archives import Archive
from dqd.types import Evaluation

BATCH, N = 36, 10
TURN = 1000.0  # milliseconds
FEWEST, MOST = 3, 500  # batches of a turn


def insert(archive: Archive, batch: tuple[jax.Array, ...]) -> Archive:
    solutions, objective, measures = batch
    return archive.add(solutions, Evaluation(objective, measures))[0]


call = jax.jit(insert, donate_argnums=0)


@functools.partial(jax.jit, donate_argnums=0)
def loop(archive: Archive, batches: tuple[jax.Array, ...]) -> Archive:
    step = lambda i, archive: insert(archive, tuple(part[i] for part in batches))  # noqa: E731
    return jax.lax.fori_loop(0, len(batches[1]), step, archive)


class Called:
    """One call per batch."""

    def __init__(self, centroids: np.ndarray) -> None:
        begin = time.perf_counter()
        cells = dqd.CVT(centroids, (0.0,) * centroids.shape[1], (1.0,) * centroids.shape[1])
        self.made = time.perf_counter() - begin
        self.archive = Archive.empty(cells, N)

    def add(self, batches: tuple[np.ndarray, ...]) -> None:
        for batch in zip(*batches, strict=True):
            self.archive = call(self.archive, tuple(jnp.asarray(part, jnp.float32) for part in batch))
        jax.block_until_ready(self.archive.count)


class Compiled(Called):
    """All batches in one program."""

    def add(self, batches: tuple[np.ndarray, ...]) -> None:
        self.archive = loop(self.archive, tuple(jnp.asarray(part, jnp.float32) for part in batches))
        jax.block_until_ready(self.archive.count)


class Pyribs:
    def __init__(self, centroids: np.ndarray) -> None:
        begin = time.perf_counter()
        self.archive = CVTArchive(solution_dim=N, centroids=centroids, ranges=[(0, 1)] * centroids.shape[1])
        self.made = time.perf_counter() - begin

    def add(self, batches: tuple[np.ndarray, ...]) -> None:
        for batch in zip(*batches, strict=True):
            self.archive.add(*batch)


class QDax:
    """All batches in one program, as `MAPElites.scan_update` has it."""

    def __init__(self, centroids: np.ndarray) -> None:
        from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire

        begin = time.perf_counter()
        given = jnp.asarray(centroids, jnp.float32)
        self.archive = MapElitesRepertoire.init_default(jnp.zeros(N), given)
        self.made = time.perf_counter() - begin

        @functools.partial(jax.jit, donate_argnums=0)
        def loop(archive, batches):
            step = lambda archive, batch: (archive.add(batch[0], batch[2], batch[1][:, None]), None)  # noqa: E731
            return jax.lax.scan(step, archive, batches)[0]

        self.loop = loop

    def add(self, batches: tuple[np.ndarray, ...]) -> None:
        self.archive = self.loop(self.archive, tuple(jnp.asarray(part, jnp.float32) for part in batches))
        jax.block_until_ready(self.archive.fitnesses)


def measure(cells: int, k: int, rounds: int, qdax: bool) -> dict:
    random = np.random.default_rng(0)
    centroids = random.uniform(size=(cells, k))
    contestants = {"dqd": Compiled(centroids), "dqd, called": Called(centroids), "pyribs": Pyribs(centroids)}
    contestants |= {"qdax": QDax(centroids)} if qdax else {}
    wall: dict[str, list[float]] = {name: [] for name in contestants}
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    turns = {name: _turn(contestant, random, k) for name, contestant in contestants.items()}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            cost = _milliseconds(contestant, random, k, turns[name])
            wall[name].append(cost[0])
            cpu[name].append(cost[1])
    made = {name: contestant.made for name, contestant in contestants.items()}
    return {"cells": cells, "k": k, "made": made, "batches": turns, "milliseconds": wall, "cpu_milliseconds": cpu}


def _turn(contestant: Called | Pyribs | QDax, random: np.random.Generator, k: int) -> int:
    """How many batches are a turn; programs for as many are compiled."""
    _milliseconds(contestant, random, k, FEWEST)
    cost = _milliseconds(contestant, random, k, FEWEST)[1]
    turn = int(min(max(TURN / max(cost, 1e-3), FEWEST), MOST))
    _milliseconds(contestant, random, k, turn)
    return turn


def _milliseconds(
    contestant: Called | Pyribs | QDax, random: np.random.Generator, k: int, count: int
) -> tuple[float, float]:
    rows = (count, BATCH)
    batches = random.normal(size=(*rows, N)), random.normal(size=rows), random.uniform(size=(*rows, k))
    begin, cpu = time.perf_counter(), time.process_time()
    contestant.add(batches)
    return 1000 * (time.perf_counter() - begin) / count, 1000 * (time.process_time() - cpu) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--measures", type=int, nargs="+", default=[2, 10, 50])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--qdax", type=Path, help="folder of the packages of QDax")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cvt-cpu.json")
    given = parser.parse_args()
    results = {"date": today(), "device": describe_device(), "source": source_digest(), "batch": BATCH, "cases": []}
    names = ("dqd", "dqd, called", "pyribs", *(("qdax",) if given.qdax else ()))
    if given.qdax:
        sys.path.append(str(given.qdax))
    print(f"| measures | cells | {' | '.join(names)} | dqd made, s | pyribs made, s |\n{'|---:' * (4 + len(names))}|")
    for k in given.measures:
        for cells in given.cells:
            case = measure(cells, k, given.rounds, bool(given.qdax))
            results["cases"].append(case)
            pairs = ((median(case["milliseconds"][name]), min(case["cpu_milliseconds"][name])) for name in names)
            costs = " | ".join(f"{wall:.3g} ({cpu:.3g})" for wall, cpu in pairs)
            made = " | ".join(f"{case['made'][name]:.2f}" for name in ("dqd", "pyribs"))
            print(f"| {k} | {cells:,} | {costs} | {made} |", flush=True)
            given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
