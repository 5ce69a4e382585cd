"""The same program twice: how long until its result is there, beyond imports, with an empty cache and with a full one?

    python benchmarks/second_start.py [--repeats 5] [--out benchmarks/results/second-start.json]

The function of the README, 10 iterations, so that nearly all is compilation and what is left of it. Every start is a
process of its own; the first finds an empty folder of compiled programs, the others what it left there. Besides the
seconds on the clock stand those of the processor, of all threads: on a machine that others use, too, these tell more.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from device import describe_device, source_digest, today

LIMIT = 1.5  # seconds of a second start
SCORE = """
import sys, time
import jax, jax.numpy as jnp, numpy as np
import dqd
[getattr(dqd, name) for name in dqd.__all__]
began, cpu = time.perf_counter(), time.process_time()

def score(x):
    objective = 30 - jnp.mean((x - 1) ** 2 + 3 * jnp.sin(3 * x) ** 2)
    return objective, jnp.array([x[:50].mean(), x[50:].mean()])

def simulate(x):
    return 30 - ((x - 1) ** 2).mean(axis=1), np.stack([x[:, :50].mean(axis=1), x[:, 50:].mean(axis=1)], axis=1)

grid = dqd.Grid(lower=[-4, -4], upper=[4, 4], shape=[100, 100])
settings = {"x0": np.zeros(100), "iterations": 10, "progress": False}
"""
PROGRAMS = {
    "illuminate(score)": "dqd.illuminate(score, dqd.cma_mega(sigma=1.0), grid, bounds=(-4, 4), **settings)",
    "illuminate(score), sigma chosen": "dqd.illuminate(score, dqd.cma_mega(), grid, bounds=(-4, 4), **settings)",
    "illuminate(evaluator)": 'dqd.illuminate(dqd.evaluator(simulate, "es"), dqd.cma_mega(1.0), grid, **settings)',
    "AskTell": """
search = dqd.AskTell(dqd.map_elites_line(0.1, 0.2), grid, x0=np.zeros(100))
while search.iteration < 10:
    search.tell(*simulate(search.ask()))
search.result()
""",
}
TOLD = '\nprint("took", time.perf_counter() - began, time.process_time() - cpu)'


def seconds(program: str, cache: Path) -> dict[str, float]:
    """Of one start, beyond its imports."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "JAX_PLATFORMS": "cpu"}
    environment.pop("DQD_NO_CACHE", None)
    command = [sys.executable, "-W", "ignore", "-c", SCORE + program + TOLD]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    clock, processor = said.split("took")[1].split()
    return {"clock": float(clock), "processor": float(processor)}


def measure(program: str, repeats: int) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        first, *others = (seconds(program, Path(cache)) for _ in range(1 + repeats))
    second = {kind: round(statistics.median(one[kind] for one in others), 3) for kind in first}
    best = round(min(one["clock"] for one in others), 3)
    return {"first": {kind: round(value, 3) for kind, value in first.items()}, "second": second, "best_clock": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "second-start.json")
    given = parser.parse_args()
    found = {"date": today(), "device": describe_device(), "source": source_digest(), "limit": LIMIT, "programs": {}}
    for name, program in PROGRAMS.items():
        found["programs"][name] = measure(program, given.repeats)
        print(name, found["programs"][name], flush=True)
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
