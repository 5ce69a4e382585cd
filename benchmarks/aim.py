"""Targeting beside CMA-MEGA on the paper's domains: percent of the ceiling, evaluations and seconds to CMA-MEGA's end.

    python benchmarks/aim.py [--seeds 20] [--iterations 10000] [--rounds 3] [--out benchmarks/results/aim-h200.json]

n = 1000, 100 x 100 cells, all seeds side by side in one program. `fewer` is how many times fewer evaluations the median
seed of targeting needs to reach the mean QD-score of CMA-MEGA after all iterations; seconds are of the loop alone, the
two algorithms in turns.
"""

import argparse
import json
from pathlib import Path
from statistics import median

import jax.numpy as jnp
import numpy as np

import dqd
from device import describe_device, source_digest, today
from dqd.emitters.emitter import Emitter

CEILING = {"sphere": 75.418, "rastrigin": 77.33, "arm": 80.24}  # docs/targeting.md
SIGMA = {"sphere": 10.0, "rastrigin": 10.0, "arm": 0.05}
EVALUATIONS = 36  # per iteration: 35 branches and the point with its jacobian


def domain_of(name: str) -> dqd.Domain:
    return dqd.Arm() if name == "arm" else dqd.LinearProjection(name)


def search(name: str, emitter: Emitter, iterations: int, seeds: int) -> dqd.Results:
    domain = domain_of(name)
    return dqd.illuminate(
        domain, emitter, domain.grid(), x0=jnp.zeros(1000), iterations=iterations, seeds=range(seeds), progress=False
    )


def first_reached(scores: np.ndarray, wanted: float) -> list[int | None]:
    """Per seed, the iterations until this QD-score."""
    reached = scores >= wanted
    return [int(np.argmax(one)) + 1 if one.any() else None for one in reached.T]


def compare(name: str, iterations: int, seeds: int, rounds: int) -> dict[str, object]:
    emitters = {"cma-mega": dqd.cma_mega(SIGMA[name], rank_one="dqd2021"), "targeting": dqd.targeting()}
    found = {label: [search(name, each, iterations, seeds)] for label, each in emitters.items()}
    for _ in range(rounds):
        for label, each in emitters.items():
            found[label].append(search(name, each, iterations, seeds))
    seconds = {label: median(run.seconds for run in runs[1:]) for label, runs in found.items()}
    scores = {label: np.asarray(runs[0].history["qd_score"]) for label, runs in found.items()}
    wanted = float(scores["cma-mega"][-1].mean())
    reached = first_reached(scores["targeting"], wanted)
    middle = float(np.median([iterations if one is None else one for one in reached]))
    share = {label: 100 * score[-1] / CEILING[name] for label, score in scores.items()}
    return {
        "percent_of_ceiling": {
            label: {"mean": float(each.mean()), "deviation": float(each.std(ddof=1)), "least": float(each.min())}
            for label, each in share.items()
        },
        "percent_at_evaluations": {
            str(at): {
                label: float(100 * score[at // EVALUATIONS - 1].mean() / CEILING[name])
                for label, score in scores.items()
            }
            for at in (5_000, 20_000, 80_000)
            if at // EVALUATIONS <= iterations
        },
        "wanted_qd_score": wanted,
        "iterations_to_it": reached,
        "fewer": iterations / middle,
        "ms_per_iteration": {label: 1e3 * each / iterations for label, each in seconds.items()},
        "seconds_to_it": {"cma-mega": seconds["cma-mega"], "targeting": seconds["targeting"] * middle / iterations},
        "compile_seconds": {label: runs[0].compile_seconds for label, runs in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(CEILING), default=list(CEILING))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {
        "command": f"python benchmarks/aim.py --seeds {given.seeds} --iterations {given.iterations}",
        "date": today(),
        "device": describe_device(),
        "source": source_digest(),
        "seeds": given.seeds,
        "iterations": given.iterations,
    }
    for name in given.only:
        results[name] = compare(name, given.iterations, given.seeds, given.rounds)
        print(name, json.dumps(results[name], indent=1), flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
