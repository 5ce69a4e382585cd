"""Does a grid that stretches find what a grid with known ranges finds?

    python benchmarks/unbounded.py [--quick] [--seeds 5] [--out benchmarks/results/unbounded-cpu.json]

Functions whose reachable measures are known in closed form: the hand of an arm (a disc) and linear projections (a
square), plain, and with measures moved and scaled so that nobody would guess their range. Both archives have as many
cells and evaluations. `reached` is the share of the cells in reach that are filled, in percent: a cell is in reach if
its middle is. `in the known grid` are the elites of both in a known grid of half the resolution, in percent of its
cells in reach: there both are measured alike.
"""

import argparse
import json
import os
from pathlib import Path
from statistics import mean

import jax.numpy as jnp
import numpy as np

import dqd
from device import describe_device, source_digest, today
from dqd.domains.function import FunctionDomain

HERE = Path(__file__).parent
N, SIDE = 100, 50
MOVED, SCALED = np.array([3e4, -0.2]), np.array([1e3, 1e-4])  # of the measures in units of their reach


def arm(x):
    objective, measures = dqd.Arm(N).score(x)
    return 100 * (1 + objective), measures / N


def sphere(x):
    objective, measures = dqd.LinearProjection("sphere", N).score(x)
    return 100 + objective / (N * 7.168**2) * 100, measures / (5.12 * N / 2)


def elsewhere(score):
    return lambda x: (score(x)[0], score(x)[1] * SCALED + MOVED)


IN_REACH = {"arm": lambda unit: np.hypot(*unit.T) <= 1, "sphere": lambda unit: np.all(np.abs(unit) <= 1, axis=1)}
PLAIN = {"arm": arm, "sphere": sphere}
CASES = {
    ("arm", "cma-mega"): (dqd.cma_mega(sigma=0.05), 4_000),
    ("arm", "map-elites-line"): (dqd.map_elites_line(0.1), 20_000),
    ("arm", "cma-mae"): (dqd.cma_mae(sigma=0.1, batch_size=36, emitters=1), 2_000),
    ("sphere", "cma-mega"): (dqd.cma_mega(sigma=10.0), 4_000),
    ("sphere", "map-elites-line"): (dqd.map_elites_line(0.5), 20_000),
}


def measure(domain: str, name: str, seeds: int, quick: bool) -> dict:
    emitter, iterations = CASES[domain, name]
    iterations = iterations // 10 if quick else iterations
    rows = {}
    for where, score, low, high in (
        ("plain", PLAIN[domain], -np.ones(2), np.ones(2)),
        ("elsewhere", elsewhere(PLAIN[domain]), MOVED - SCALED, MOVED + SCALED),
    ):
        known = dqd.Grid(low, high, [SIDE, SIDE])
        for kind, cells in {"known": known, "unbounded": dqd.UnboundedGrid([SIDE, SIDE])}.items():
            found = dqd.illuminate(
                FunctionDomain(score), emitter, cells, x0=jnp.zeros(N), iterations=iterations, seeds=range(seeds),
                progress=False,
            )  # fmt: skip
            rows[f"{where}, {kind}"] = [described(result, domain, low, high) for result in found]
    return rows


def described(result: dqd.Result, domain: str, low: np.ndarray, high: np.ndarray) -> dict:
    saved = result.to_numpy()
    half = dqd.Grid(low, high, [SIDE // 2, SIDE // 2])
    return {
        "reached": reached(saved, domain, low, high),
        "in the known grid": reached(saved.retessellate(half), domain, low, high),
        "coverage": saved.coverage,
        "mean": saved.mean,
        "lower": list(saved.tessellation.lower),
        "upper": list(saved.tessellation.upper),
    }


def reached(saved: dqd.SavedArchive, domain: str, low: np.ndarray, high: np.ndarray) -> float:
    unit = 2 * (saved.tessellation.centers() - low) / (high - low) - 1
    inside = np.flatnonzero(IN_REACH[domain](unit))
    return 100 * len(np.intersect1d(saved.cell, inside)) / len(inside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    folder = Path(os.environ.get("OUT", HERE / "results"))
    parser.add_argument("--out", type=Path, default=folder / "unbounded-cpu.json")
    given = parser.parse_args()
    results = {
        "date": today(),
        "device": describe_device(),
        "source": source_digest(),
        "n": N,
        "side": SIDE,
        "cases": {},
    }
    print(
        "| | | reached, known | unbounded | ratio | in the known grid, known | unbounded | ratio |\n" + "|---" * 8 + "|"
    )
    for case in CASES:
        rows = results["cases"][".".join(case)] = measure(*case, given.seeds, given.quick)
        given.out.write_text(json.dumps(results, indent=1) + "\n")
        for where in ("plain", "elsewhere"):
            cells = []
            for figure in ("reached", "in the known grid"):
                one, other = (mean(row[figure] for row in rows[f"{where}, {kind}"]) for kind in ("known", "unbounded"))
                cells += [f"{one:.1f}", f"{other:.1f}", f"{100 * other / one:.1f} %"]
            print(f"| {'.'.join(case)} | {where} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
