"""A loop of one's own around NumPy functions, in archives of 10^2 to 10^6 cells: does an iteration cost more there?

    python benchmarks/own_loop.py [--sides 10 32 100 316 1000] [--out benchmarks/results/own-loop-cpu.json]
                                  [--contestants dqd-ask-tell dqd-evaluator]   where pyribs cannot be installed

CMA-MEGA on the linear projection of the sphere, n = 1000. All contestants evaluate the same NumPy functions, in turns
as in `speed.py`. What is beyond the evaluations is counted within the loop: there they take twice as long as in a loop
of their own, `alone`, whose arrays never leave the caches. Besides the milliseconds on the clock stand those of the
processor, of all threads: on a machine that others use, too, these tell more.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from contestants import start
from device import describe_device, source_digest, today
from numpy_domains import domain_of

CONTESTANTS = ("dqd-ask-tell", "dqd-evaluator", "pyribs")
TURN = 250  # iterations
KINDS = {
    "seconds": "on the clock",
    "cpu_seconds": "of the processor",
    "evaluation_seconds": "in evaluations, on the clock",
}


def main() -> None:
    given = _arguments()
    results = {"date": today(), "device": describe_device(), "source": source_digest(), "n": given.n}
    results["alone"] = [_alone(given.n) for _ in range(given.rounds)]
    results["sides"] = {}
    for side in given.sides:
        results["sides"][str(side)] = measure(side, given.n, given.rounds, given.contestants)
        given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results["sides"]))
    print(f"Evaluations alone: {median(results['alone']):.3f}")


def measure(side: int, n: int, rounds: int, contestants: Sequence[str]) -> dict:
    """Milliseconds per iteration of every contestant, of each kind, one number per round."""
    running = {name: start(name, "lp-sphere", "cma-mega", n, seed=0, side=side) for name in contestants}
    costs: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in KINDS} for name in running}
    try:
        for number in range(rounds):
            names = list(running)
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                turn = running[name].run(TURN)
                for kind in KINDS:
                    costs[name][kind].append(1000 * turn[kind] / TURN)
    finally:
        for contestant in running.values():
            contestant.stop()
    return costs


def _alone(n: int) -> float:
    """Those of one iteration, a point with its jacobian and 35 branches, milliseconds."""
    domain, points = domain_of("lp-sphere", n), np.random.default_rng(0).normal(size=(36, n)).astype(np.float32)
    begin = time.perf_counter()
    for _ in range(TURN):
        domain.evaluate(points[:1])
        domain.jacobian(points[0])
        domain.evaluate(points[1:])
    return 1000 * (time.perf_counter() - begin) / TURN


def table(sides: dict) -> str:
    lines, names = [], list(next(iter(sides.values())))
    for kind, words in KINDS.items():
        lines += [f"Milliseconds {words}:", f"| cells | {' | '.join(names)} | {names[0]} / {names[-1]} |"]
        lines += ["|---:|" + "---:|" * (len(names) + 1)]
        for side, costs in sides.items():
            pairs = zip(costs[names[0]][kind], costs[names[-1]][kind], strict=True)
            cells = " | ".join(f"{median(costs[name][kind]):.2f}" for name in names)
            lines += [f"| {int(side) ** 2:,} | {cells} | {median(a / b for a, b in pairs):.2f} |"]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 32, 50, 100, 200, 316, 1000])
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=CONTESTANTS)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "own-loop-cpu.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
