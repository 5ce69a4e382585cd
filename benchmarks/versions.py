"""Another version of dqd beside this one: milliseconds per iteration of one seed, or several side by side, in turns.

python benchmarks/versions.py OTHER/src [--seeds 20] [--iterations 10000] [--out FILE]

`git worktree add OTHER <commit>` makes another version.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from device import describe_device, today

HERE = Path(__file__).parent
SIGMA = {"sphere": 10.0, "rastrigin": 10.0, "arm": 0.05}
ROUNDS = 5


def serve(seeds: int, iterations: int) -> None:
    """What either version does: for every name of a domain that comes, milliseconds per iteration."""
    import jax.numpy as jnp

    import dqd

    def measure(name: str) -> float:
        domain = dqd.Arm() if name == "arm" else dqd.LinearProjection(name)
        emitter = dqd.cma_mega(SIGMA[name], rank_one="dqd2021")
        found = dqd.illuminate(
            domain,
            emitter,
            domain.grid(),
            x0=jnp.zeros(1000),
            iterations=iterations,
            progress=False,
            **({"seeds": range(seeds)} if seeds > 1 else {"seed": 0}),
        )
        return 1e3 * found.seconds / iterations

    for name in SIGMA:
        measure(name)  # compiled once
    print("ready", flush=True)
    for line in sys.stdin:
        print(measure(line.strip()), flush=True)


def start(source: Path, sizes: list[str]) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(source.resolve()), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, __file__, "--serve", *sizes]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise SystemExit(f"{source}: did not start")
    return process


def ask(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compare(other: Path, seeds: int, iterations: int, out: Path | None) -> None:
    sizes = ["--seeds", str(seeds), "--iterations", str(iterations)]
    versions = {"other": start(other, sizes), "this": start(HERE.parent / "src", sizes)}
    table: dict[str, Any] = {"date": today(), "device": describe_device(), "seeds": seeds, "iterations": iterations}
    for name in SIGMA:
        times: dict[str, list[float]] = {version: [] for version in versions}
        for turn in range(ROUNDS):
            for version in list(versions)[:: 1 if turn % 2 else -1]:
                times[version].append(ask(versions[version], name))
        least = {version: min(values) for version, values in times.items()}
        table[name] = {**least, "ratio": least["this"] / least["other"], "all": times}
        print(name, json.dumps({**least, "ratio": table[name]["ratio"]}), flush=True)
    for process in versions.values():
        process.kill()
    if out is not None:
        out.write_text(json.dumps(table, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.seeds, arguments.iterations)
    elif arguments.other is None:
        parser.error("the folder src of the other version is missing")
    else:
        compare(arguments.other, arguments.seeds, arguments.iterations, arguments.out)


if __name__ == "__main__":
    main()
