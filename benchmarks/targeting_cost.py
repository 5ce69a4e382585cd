"""What an iteration of targeting costs beside one of CMA-MEGA, in turns: milliseconds on the clock, LP sphere.

    python benchmarks/targeting_cost.py [--rounds 5] [--out benchmarks/results/targeting-cost-cpu.json]

A slope: a long run less a short one, over the difference of their iterations; the least of the rounds.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp

import dqd
from device import describe_device, source_digest, today

SHORT, LONG = 500, 5_500
CASES = ((1000, 100), (100, 100), (100, 1000))  # numbers in a solution, cells per measure


def slopes(n: int, side: int, rounds: int) -> dict[str, float]:
    domain = dqd.LinearProjection("sphere", n)
    emitters = {"cma-mega": dqd.cma_mega(10.0), "targeting": dqd.targeting()}

    def seconds(name: str, iterations: int) -> float:
        grid, x0 = domain.grid(side), jnp.zeros(n)
        return dqd.illuminate(domain, emitters[name], grid, x0=x0, iterations=iterations, progress=False).seconds

    for name in emitters:
        seconds(name, SHORT)
    turns = [
        {name: 1e3 * (seconds(name, LONG) - seconds(name, SHORT)) / (LONG - SHORT) for name in emitters}
        for _ in range(rounds)
    ]
    least = {name: min(turn[name] for turn in turns) for name in emitters}
    return least | {"ratio": least["targeting"] / least["cma-mega"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "targeting-cost-cpu.json")
    given = parser.parse_args()
    about = {"date": today(), **describe_device(), "jax": jax.__version__, "source": source_digest()}
    found = {f"n = {n}, {side * side:,} cells": slopes(n, side, given.rounds) for n, side in CASES}
    given.out.write_text(json.dumps(about | {"ms_per_iteration": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
