"""Who maps a generator best? CMA-MEGA, CMA-MEGA (Adam), CMA-ME, MAP-Elites and random sampling on lsi-digits.

    python benchmarks/digits.py                # five seeds of 2,000 iterations; writes results/digits.json and .md

All spend 36 evaluations per iteration. Every elite is also read by a judge that took no part: its nearest neighbours
among the real digits of scikit-learn, drawn as the generator's training data were.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import dqd
from dqd.paper.presets import ALGORITHMS, make_problem, preset

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from train_digits import draw

RESULTS = Path(__file__).parent / "results"
CONTESTANTS = ("cma-mega-adam", "cma-mega", "cma-me", "map-elites-line", "map-elites", "random")
DIGIT = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--space", default="p", help="p is guarded, free is not")
    parser.add_argument("--out", type=Path, default=RESULTS / "digits")
    chosen = parser.parse_args()
    judge = nearest_neighbours()
    rows = {name: contest(name, chosen.space, chosen.seeds, chosen.iterations, judge) for name in CONTESTANTS}
    about = {"seeds": chosen.seeds, "iterations": chosen.iterations, "space": chosen.space, "digit": DIGIT}
    chosen.out.parent.mkdir(exist_ok=True)
    chosen.out.with_suffix(".json").write_text(json.dumps(about | {"algorithms": rows}, indent=2) + "\n")
    chosen.out.with_suffix(".md").write_text(table(rows, about))
    print(table(rows, about))


def contest(name: str, space: str, seeds: int, iterations: int, judge: KNeighborsClassifier) -> dict[str, Any]:
    """The figures of one algorithm, a list over seeds each."""
    problem = make_problem("lsi-digits", space=space, objective=f"digit-{DIGIT}")
    begin, results = time.perf_counter(), []
    for seed in range(seeds):
        results.append(
            dqd.illuminate(
                problem.domain,
                preset("lsi-digits", name),
                problem.grid,
                x0=problem.x0,
                bounds=problem.bounds,
                iterations=iterations,
                seed=seed,
                progress=False,
            )
        )
    wall = (time.perf_counter() - begin) / seeds
    print(f"{name}: {wall:.1f} s per trial", file=sys.stderr, flush=True)
    return {
        "qd_score": [result.qd_score for result in results],
        "coverage": [result.coverage for result in results],
        "best": [result.best for result in results],
        "evaluations": results[0].evaluations,
        "seconds": wall,
        "agreement": [agreement(problem.domain, result.elites.solutions, judge) for result in results],
    }


def nearest_neighbours() -> KNeighborsClassifier:
    images, labels = load_digits(return_X_y=True)
    several = np.repeat(np.arange(len(labels)), 3)
    drawings = draw(images.reshape(-1, 8, 8)[several] / 16, np.random.default_rng(1))
    return KNeighborsClassifier(5).fit(drawings.reshape(len(drawings), -1), labels[several])


def agreement(domain: Any, solutions: np.ndarray, judge: KNeighborsClassifier) -> float:
    """Share of (at most 500) elites that the nearest neighbours read as the digit, in percent."""
    some = solutions[np.random.default_rng(0).permutation(len(solutions))[:500]]
    ink = domain.render(some)[..., 0].reshape(len(some), -1) / 255
    return 100 * float(np.mean(judge.predict(ink) == DIGIT))


def table(rows: dict[str, dict[str, Any]], about: dict[str, Any]) -> str:
    words = (
        f"lsi-digits, objective digit-{about['digit']}, measures ink and slant, space {about['space']}, "
        f"100 x 100 cells, {about['iterations']:,} iterations, mean and standard deviation of {about['seeds']} seeds. "
        "Agreement: elites that nearest neighbours among real digits, which took no part, read as the digit.\n"
    )
    head = "| algorithm | QD-score | coverage (%) | best | agreement (%) | s per trial |\n|---|---|---|---|---|---|"
    ranked = sorted(rows.items(), key=lambda row: -np.mean(row[1]["qd_score"]))
    lines = [
        f"| {ALGORITHMS[name].title} | {spread(row['qd_score'])} | {spread(row['coverage'])} | "
        f"{np.mean(row['best']):.2f} | {spread(row['agreement'])} | {row['seconds']:.0f} |"
        for name, row in ranked
    ]
    return "\n".join([words, head, *lines, ""])


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.2f}"


if __name__ == "__main__":
    main()
