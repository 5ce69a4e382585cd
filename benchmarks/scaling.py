"""What a large archive costs: time per iteration, and memory beyond the archive itself.

    python benchmarks/scaling.py [--rounds 7] [--out benchmarks/results/scaling-cpu.json]

Everything is measured in fresh processes of this same program; the one that starts them loads no JAX, because a child's
peak memory would otherwise begin at its parent's.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from device import describe_device, source_digest, today

SMALL, LARGE = 100, 1000  # cells per measure, for time
TINY, WIDE, SOLUTION = 10, 500, 1000  # cells per measure and solution size, for memory
HERE = Path(__file__).parent


def main() -> None:
    given = _arguments()
    if given.measure == "time":
        answer = measure_time(given.rounds, given.iterations)
    elif given.measure == "memory":
        answer = measure_memory(given.side)
    else:
        answer = measure_all(given.rounds, given.iterations, given.out)
    print(json.dumps(answer) if given.measure else answer)


def measure_all(rounds: int, iterations: int, out: Path) -> str:
    source = source_digest()
    turns = _in_a_fresh_process("time", "--rounds", str(rounds), "--iterations", str(iterations))
    peaks = {side: _in_a_fresh_process("memory", "--side", str(side)) for side in (TINY, WIDE)}
    if source_digest() != source:
        raise SystemExit("src/dqd changed during the measurement: nothing is kept, run it again")
    ratios = [large / small for small, large in zip(turns[str(SMALL)], turns[str(LARGE)], strict=True)]
    archive = WIDE * WIDE * SOLUTION * 4
    extra = peaks[WIDE]["peak_bytes"] - peaks[TINY]["peak_bytes"]
    results = {
        "date": today(),
        "device": describe_device(),
        "source": source,
        "time": {
            "milliseconds_per_iteration": turns,
            "ratio": median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
        },
        "memory": {"peaks": peaks, "archive_bytes": archive, "extra_bytes": extra, "ratio": extra / archive},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")
    return table(results)


def table(results: dict) -> str:
    cost = {side: median(costs) for side, costs in results["time"]["milliseconds_per_iteration"].items()}
    memory = results["memory"]
    return "\n".join(
        [
            "| | small | large | ratio |",
            "|---|---|---|---|",
            f"| ms per iteration, {SMALL} x {SMALL} and {LARGE} x {LARGE} cells, n = 10 | {cost[str(SMALL)]:.4f} | "
            f"{cost[str(LARGE)]:.4f} | {results['time']['ratio']:.3f} |",
            f"| peak MB, {TINY} x {TINY} and {WIDE} x {WIDE} cells, n = {SOLUTION} | "
            f"{memory['peaks'][TINY]['peak_bytes'] / 1e6:.0f} | {memory['peaks'][WIDE]['peak_bytes'] / 1e6:.0f} | "
            f"difference / archive: {memory['ratio']:.3f} |",
        ]
    )


def measure_time(rounds: int, iterations: int) -> dict[int, list[float]]:
    """Milliseconds per iteration of both grids, in turns within one process."""
    import jax.numpy as jnp

    from dqd.domains import FunctionDomain
    from dqd.emitters.presets import cma_mega
    from dqd.tessellations.grid import Grid
    from worker_ours import OurSearch

    def score(x):
        return -jnp.sum(x**2), jnp.stack([jnp.sum(x[:5]), jnp.sum(x[5:])])

    searches = {}
    for side in (SMALL, LARGE):
        grid = Grid((-50.0, -50.0), (50.0, 50.0), (side, side))
        searches[side] = OurSearch(FunctionDomain(score), cma_mega(1.0), grid, n=10, seed=0)
        searches[side].advance(iterations)
    costs: dict[int, list[float]] = {side: [] for side in searches}
    for number in range(rounds):
        for side in sorted(searches, reverse=number % 2 == 1):
            begin = time.perf_counter()
            searches[side].advance(iterations)
            costs[side].append(1000 * (time.perf_counter() - begin) / iterations)
    return costs


def measure_memory(side: int) -> dict[str, float]:
    """Peak of this process after 200 iterations of CMA-MEGA on the sphere, from start to result."""
    import jax.numpy as jnp

    import dqd
    from dqd.domains import LinearProjection

    domain = LinearProjection("sphere", SOLUTION)
    result = dqd.illuminate(
        domain, dqd.cma_mega(10.0), domain.grid(side), x0=jnp.zeros(SOLUTION), iterations=200, seed=0, progress=False
    )
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"peak_bytes": peak, "qd_score": float(result.qd_score)}


def _in_a_fresh_process(*arguments: str) -> dict:
    command = [sys.executable, __file__, "--measure", *arguments]
    variables = os.environ | {"PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=variables)
    return json.loads(done.stdout.splitlines()[-1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=5000, help="per turn")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scaling-cpu.json")
    parser.add_argument("--measure", choices=("time", "memory"), help="do one measurement in this process")
    parser.add_argument("--side", type=int, default=TINY, help="cells per measure for --measure memory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
