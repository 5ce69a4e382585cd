"""The paper on annealing (Fontaine & Nikolaidis 2023): does one trial run as pyribs' does, and what does it cost?

    python benchmarks/annealing.py peers [--iterations 1000] [--trials 2] [--domains lp-sphere lp-plateau]
    python benchmarks/annealing.py roots iterations [--quick]     # for a GPU: where the time of the suite goes

`peers` runs CMA-MAE and CMA-ME of pyribs, with the settings of the paper and the result archive of its authors, beside
ours: QD-score and coverage over iterations. `roots` times the square roots of 300 covariances of 100 x 100 numbers, by
eigenvectors and by products; `iterations` an iteration of every entry of `dqd reproduce annealing`, 20 seeds side by
side, so that 10,000 of them are the suite. Each part is written as soon as it is there.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
DOMAINS = ("lp-sphere", "lp-rastrigin", "lp-plateau", "arm")
N, SIDE, EMITTERS, BATCH, SEEDS = 100, 100, 15, 36, 20
LIMIT, SHIFT = 5.12, 2.048


def main() -> None:
    given = _arguments()
    results = {"date": today(), "device": describe_device(), "source": source_digest()}
    for name in given.parts:
        try:
            results[name] = PARTS[name](given)
        except Exception as error:  # said, and the next part is tried
            results[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        print(name, json.dumps(results[name])[:2000], flush=True)
        given.out.write_text(json.dumps(results, indent=1) + "\n")


# Beside pyribs --------------------------------------------------------------------------------------------------------


def peers(given: argparse.Namespace) -> dict:
    rows = {}
    for domain in given.domains:
        for algorithm in ("cma-mae", "cma-me"):
            ours = _ours(domain, algorithm, given.iterations, given.trials)
            theirs = [_pyribs(domain, algorithm, given.iterations, seed) for seed in range(given.trials)]
            rows[f"{domain}.{algorithm}"] = {"dqd": ours, "pyribs": theirs}
            print(domain, algorithm, *([trial[-1] for trial in each] for each in (ours, theirs)), flush=True)
    return {"iterations": given.iterations, "every": _every(given.iterations), "qd_score_and_coverage": rows}


def _every(iterations: int) -> int:
    return max(1, iterations // 10)


def _ours(domain: str, algorithm: str, iterations: int, trials: int) -> list:
    results = _run(next(e for e in _entries() if (e.domain, e.algorithm) == (domain, algorithm)), iterations, trials)
    rows = slice(_every(iterations) - 1, None, _every(iterations))
    return [
        [[float(q), float(c)] for q, c in zip(r.history["qd_score"][rows], r.history["coverage"][rows], strict=True)]
        for r in results
    ]


def _entries() -> tuple:
    from dqd.paper import suites

    return suites.suite("annealing").entries


def _run(entry, iterations: int, seeds: int):
    import dqd
    from dqd.paper.trials import _options, _search

    options = {**_options(entry), "iterations": iterations}
    return dqd.illuminate(*_search(entry), **options, seeds=range(seeds), progress=False)


def _pyribs(domain: str, algorithm: str, iterations: int, seed: int) -> list:
    """Its result archive takes any objective into an empty cell; the archive of CMA-MAE has thresholds from 0."""
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler

    reach, sigma = (float(N), 0.1) if domain == "arm" else (LIMIT * N / 2, 0.5)
    cells = {"solution_dim": N, "dims": (SIDE, SIDE), "ranges": [(-reach, reach)] * 2, "seed": seed}
    annealed = {"learning_rate": 0.01, "threshold_min": 0.0} if algorithm == "cma-mae" else {}
    archive, result = GridArchive(**cells, **annealed), GridArchive(**cells)
    emitters = [
        EvolutionStrategyEmitter(
            archive, x0=np.zeros(N), sigma0=sigma, ranker="imp" if annealed else "2imp", selection_rule="mu",
            restart_rule="basic", batch_size=BATCH, seed=100 * seed + i,
        )
        for i in range(EMITTERS)
    ]  # fmt: skip
    # One by one, as the authors' code: else all candidates of a batch that share a new cell count as new.
    scheduler, curve = Scheduler(archive, emitters, result_archive=result, add_mode="single"), []
    for iteration in range(1, iterations + 1):
        solutions = scheduler.ask()
        scheduler.tell(*_evaluated(domain, solutions))
        if iteration % _every(iterations) == 0:
            stats = result.stats
            curve.append([float(stats.qd_score) / SIDE**2, 100 * float(stats.coverage)])
    conditions = [float(emitter._opt.cov.condition_number) for emitter in emitters]
    print("condition numbers", f"{min(conditions):.3g} to {max(conditions):.3g}", flush=True)
    return curve


def _evaluated(domain: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if domain == "arm":
        directions = np.cumsum(x, axis=1)
        return 100 * (1 - x.var(axis=1)), np.stack([np.cos(directions).sum(1), np.sin(directions).sum(1)], axis=1)
    inside = np.abs(x) <= LIMIT
    y = np.where(inside, x, LIMIT / np.where(inside, 1, x))
    measures = np.stack([y[:, : N // 2].sum(axis=1), y[:, N // 2 :].sum(axis=1)], axis=1)
    d, far = x - SHIFT, LIMIT + SHIFT
    if domain == "lp-plateau":
        return 100 - np.mean(np.maximum(np.abs(x) - LIMIT, 0) ** 2, axis=1), measures
    if domain == "lp-sphere":
        return 100 * (1 - (d * d).mean(axis=1) / far**2), measures
    terms = (10 + d * d - 10 * np.cos(2 * np.pi * d)).mean(axis=1)
    return 100 * (1 - terms / (10 + far * far - 10 * np.cos(2 * np.pi * far))), measures


# On a GPU -------------------------------------------------------------------------------------------------------------


def roots(given: argparse.Namespace) -> dict:
    import jax
    import jax.numpy as jnp

    from dqd.strategies.roots import by_eigenvectors, by_products

    count, d = (4, 20) if given.quick else (300, 100)
    factors = jax.random.normal(jax.random.key(0), (count, d, 3 * d))
    matrices = factors @ factors.transpose(0, 2, 1) / (3 * d)
    ways = {
        "products, all at once": jax.jit(jax.vmap(by_products)),
        "eigenvectors, all at once": jax.jit(jax.vmap(by_eigenvectors)),
        "eigenvectors, one by one": jax.jit(lambda all: jax.lax.map(by_eigenvectors, all)),
    }
    found = {}
    for name, way in ways.items():
        found[name] = {str(n): 1000 * _seconds(way, matrices[:n]) for n in sorted({count // 3, count})}
    exact = np.linalg.eigh(np.asarray(matrices, np.float64))
    root = np.einsum("bij,bj,bkj->bik", exact[1], np.sqrt(exact[0]), exact[1])
    off = np.abs(np.asarray(ways["products, all at once"](matrices).root) - root).max() / np.abs(root).max()
    products = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    found["one product of all"] = {str(count): 1000 * _seconds(products, matrices)}
    return {"matrices": count, "numbers": d, "milliseconds": found, "largest error of products": float(off)}


def _seconds(function, argument, repetitions: int = 5) -> float:
    import jax

    jax.block_until_ready(function(argument))
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        jax.block_until_ready(function(argument))
        times.append(time.perf_counter() - begin)
    return min(times)


def iterations(given: argparse.Namespace) -> dict:
    """A slope: the second half of a run of twice as many iterations less the first."""
    length, seeds = (25, 2) if given.quick else (500, SEEDS)
    found = {}
    for entry in _entries():
        if given.quick and entry.domain != "arm":
            continue
        seconds = {}
        for factor in (1, 1, 3):  # the first one compiles
            begin = time.perf_counter()
            results = _run(entry, factor * length, seeds)
            seconds[factor] = time.perf_counter() - begin
        slope = (seconds[3] - seconds[1]) / (2 * length)
        found[entry.id] = {
            "milliseconds": 1000 * slope,
            "seconds of 10,000": 10_000 * slope,
            "qd_score": float(np.mean([result.qd_score for result in results])),
            "restarts": sum(results[0].restart_reasons.values()),
        }
        print(entry.id, found[entry.id], flush=True)
    return found


PARTS = {"peers": peers, "roots": roots, "iterations": iterations}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=["lp-sphere"])
    parser.add_argument("--quick", action="store_true")
    folder = Path(os.environ.get("OUT", HERE / "results"))
    parser.add_argument("--out", type=Path, default=folder / "annealing.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
