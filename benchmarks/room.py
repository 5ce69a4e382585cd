"""Archives as large as a device's memory: what an iteration costs in them. CMA-MEGA, LP sphere.

    python benchmarks/room.py [--quick] [--solutions float16] [--out benchmarks/results/room-h200.json]

10^4 cells of 10^6 numbers and 10^6 cells of 10^4 numbers take 40 GB each, in numbers of 16 bits half of it. The floor
of an iteration is measured beside it: a copy of as many numbers as it has in its batch, read once and written once.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import dqd
from device import describe_device, source_digest, today

ARCHIVES = {
    "10^4 cells x 10^6": (10**4, 10**6),
    "10^6 cells x 10^4": (10**6, 10**4),
    "1,024 cells x 10^6": (1024, 10**6),
}
QUICK = {"100 cells x 10^4": (100, 10**4)}


def measure(cells: int, n: int, quick: bool, solutions: str | None) -> dict[str, float]:
    domain = dqd.LinearProjection("sphere", n)
    grid = domain.grid(round(cells**0.5))

    def run(iterations: int) -> dqd.Result:
        emitter = dqd.cma_mega(10.0)
        options = {"x0": jnp.zeros(n), "iterations": iterations, "progress": False, "solutions": solutions}
        return dqd.illuminate(domain, emitter, grid, **options)

    short, long = (250, 500) if quick else (2500, 7500)
    compiling = run(250).compile_seconds
    begin = run(short).seconds
    again = run(long)
    return {
        "us": 1e6 * (again.seconds - begin) / (long - short),
        "compile_seconds": compiling,
        "coverage": again.coverage,
        "peak_bytes": (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0),
        "floor_us": floor(36, n, 5 if quick else 200),
    }


def floor(batch: int, n: int, times: int) -> float:
    """Microseconds to read a batch and to write it once."""
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = add(jnp.zeros((batch, n)))
    jax.block_until_ready(x)
    begin = time.perf_counter()
    for _ in range(times):
        x = add(x)
    jax.block_until_ready(x)
    return 1e6 * (time.perf_counter() - begin) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--solutions", choices=["float16"], help="what elites are kept in")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: dict = {"date": today(), "device": describe_device(), "source": source_digest()}
    results |= {"solutions": given.solutions, "archives": {}}
    for name, (cells, n) in (QUICK if given.quick else ARCHIVES).items():
        try:
            results["archives"][name] = measure(cells, n, given.quick, given.solutions)
        except Exception as error:  # too large for this machine: said, and the next one is tried
            results["archives"][name] = {"failed": f"{type(error).__name__}: {error}"[:400]}
        print(name, results["archives"][name], flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
