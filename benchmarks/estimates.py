"""CMA-MEGA with estimated jacobians against algorithms without gradients, at equal evaluations.

    python benchmarks/estimates.py [--seeds 5] [--evaluations 30000] [--out benchmarks/results/estimates.json]

Two problems of 20 numbers: the arm of the paper, and a glider in gusts that bounces off pillars, whose every flight is
another one. Each algorithm first tries four sigmas, on a seed of its own and a third of the evaluations, and runs with
the best. What is found in gusts is judged by the mean of 50 fresh flights for each elite (`dqd.reevaluate`).
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dqd
from device import describe_device, source_digest, today
from numpy_domains import Arm

N = 20
SIGMAS = (0.1, 0.3, 1.0, 3.0)
GUST, PILLARS, RADIUS = 0.03, np.array([[4.0, 3.0], [-5.0, 2.0], [1.0, -6.0]]), 1.5
FLIGHTS = 50  # by which an elite is judged


class Glider:
    """Ten pushes in the plane; where it lands are its measures, little effort and a soft landing its objective."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def evaluate(self, solutions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pushes = solutions.reshape(len(solutions), -1, 2)
        position, velocity = np.zeros((2, len(solutions), 2))
        for push in np.moveaxis(pushes, 1, 0):
            velocity = 0.8 * velocity + 0.3 * push + GUST * self.random.normal(size=velocity.shape)
            there = position + velocity
            hit = (np.linalg.norm(there[:, None] - PILLARS, axis=2) < RADIUS).any(axis=1)
            velocity[hit] *= -1
            position = np.where(hit[:, None], position, there)
        effort = (pushes**2).mean(axis=(1, 2)) / 4
        return 100 * (1 - effort) - 2 * np.linalg.norm(velocity, axis=1), position


@dataclass(frozen=True)
class Problem:
    grid: dqd.Grid
    make: Callable[[int], Glider | Arm]  # by seed
    reach: float  # of samples around a point
    bounds: tuple[float, float] | None = None

    def run(self, contestant: str, sigma: float, evaluations: int, seed: int) -> dqd.Result:
        evaluator, emitter, per_iteration = self._contestant(contestant, sigma, seed)
        result = dqd.illuminate(
            evaluator,
            emitter,
            self.grid,
            x0=np.zeros(N),
            bounds=self.bounds,
            initial_sigma=0.3,
            iterations=(evaluations - emitter.initial_population) // per_iteration,
            seed=seed,
            progress=False,
        )
        if isinstance(self.make(0), Arm):
            return result
        return dqd.reevaluate(result, dqd.evaluator(self.make(10_000 + seed).evaluate), FLIGHTS)

    def _contestant(self, name: str, sigma: float, seed: int) -> tuple:
        """Evaluator, emitter, and how many evaluations an iteration takes."""
        domain = self.make(seed)
        if name == "MAP-Elites (line)":
            return dqd.evaluator(domain.evaluate), dqd.map_elites_line(sigma, 0.2), 36
        if name == "CMA-ME":
            return dqd.evaluator(domain.evaluate), dqd.cma_me(sigma), 36
        jacobian, taken = {
            "exact": (lambda x: (*domain.evaluate(x), np.stack([domain.jacobian(point) for point in x])), 0),
            "fd": (dqd.FiniteDifferences(None if isinstance(domain, Arm) else self.reach), 2 * N),
            "es": (dqd.EvolutionStrategies(N, self.reach, seed), N),
        }[name.split()[-1]]
        return dqd.evaluator(domain.evaluate, jacobian), dqd.cma_mega(sigma), 36 + taken


PROBLEMS = {
    "arm": Problem(dqd.Grid([-N, -N], [N, N], [50, 50]), lambda seed: Arm(), 0.05),
    "glider in gusts": Problem(dqd.Grid([-8, -8], [8, 8], [40, 40]), Glider, 0.3, (-2, 2)),
}
CONTESTANTS = ("CMA-MEGA, exact", "CMA-MEGA, fd", "CMA-MEGA, es", "CMA-ME", "MAP-Elites (line)")


def main() -> None:
    given = _arguments()
    results = {"date": today(), "device": describe_device(), "source": source_digest()}
    results |= {"evaluations": given.evaluations, "problems": {}}
    for title, problem in PROBLEMS.items():
        names = [name for name in CONTESTANTS if hasattr(problem.make(0), "jacobian") or "exact" not in name]
        results["problems"][title] = {name: measure(problem, name, given.evaluations, given.seeds) for name in names}
    given.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results["problems"]))


def measure(problem: Problem, name: str, evaluations: int, seeds: int) -> dict:
    tried = {sigma: problem.run(name, sigma, evaluations // 3, seed=1000).qd_score for sigma in SIGMAS}
    sigma = max(tried, key=tried.get)
    found = [problem.run(name, sigma, evaluations, seed) for seed in range(seeds)]
    print(name, sigma, [round(result.qd_score, 2) for result in found], flush=True)
    return {
        "sigma": sigma,
        "tried": tried,
        "evaluations": [result.provisional.evaluations for result in found],
        "qd_score": [result.qd_score for result in found],
        "coverage": [result.coverage for result in found],
        "believed": [result.provisional.qd_score for result in found],
        "seconds": [result.seconds for result in found],
    }


def table(problems: dict) -> str:
    lines = ["| problem | algorithm | sigma | QD-score | coverage | believed |", "|---|---|---:|---:|---:|---:|"]
    for title, contestants in problems.items():
        for name, figures in contestants.items():
            score, coverage, believed = (np.mean(figures[key]) for key in ("qd_score", "coverage", "believed"))
            error = np.std(figures["qd_score"], ddof=1) / len(figures["qd_score"]) ** 0.5
            row = f"{score:.2f} ± {error:.2f} | {coverage:.1f} % | {believed:.2f}"
            lines.append(f"| {title} | {name} | {figures['sigma']:g} | {row} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=30_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "estimates.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
