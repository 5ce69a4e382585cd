"""Is the sigma that is chosen as good as the best of a sweep? On the paper's problems and on six unlike functions.

    python benchmarks/sigma.py                             # writes results/sigma.json after every entry, prints a table
    python benchmarks/sigma.py --algorithms cma-mega       # some of them; entries that are there already stay

The sweep has six values, a factor of 3.2 apart, around the chosen one but without it; Adam's learning rate goes along,
and the initial population has the size that was chosen for it. All spend the same number of evaluations: the search
that looks around first makes three iterations less. What counts is the QD-score above 0, mean of the seeds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from dqd.emitters.scale import scaled

RESULTS = Path(__file__).parent / "results" / "sigma.json"
FACTORS = tuple(10.0**exponent for exponent in (-1.25, -0.75, -0.25, 0.25, 0.75, 1.25))
LOOKING = 3  # iterations' worth of evaluations
LARGEST = 100  # numbers that CMA-ME is given


@dataclass(frozen=True)
class Case:
    score: Any
    grid: dqd.Grid
    x0: jax.Array
    bounds: tuple[float, float] | None = None


def valley(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 2, k = 1, solutions of about 1e-3."""
    y = 1e3 * x
    return 1 / (1 + (1 - y[0]) ** 2 + (y[1] - y[0] ** 2) ** 2), jnp.array([y[0] + jnp.sin(y[1])])


def chain(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 20, k = 3, solutions of about 1e3."""
    y = x / 1e3
    measures = jnp.array([y[:5].sum(), jnp.tanh(y[5:10].sum()), y[10:].mean()])
    return jnp.exp(-jnp.mean((y[1:] - y[:-1]) ** 2)), measures


def network(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 5,000, k = 4: outputs of a small network, by its weights."""
    hidden, out = x[:4900].reshape(70, 70), x[4900:].reshape(4, 25)
    features = jnp.tanh(hidden @ jnp.cos(jnp.arange(70.0)) / jnp.sqrt(70))
    return 1 / (1 + jnp.mean(x**2)), jnp.tanh(out @ features[:25] / 5) + features[30:66].reshape(4, 9).mean(axis=1)


def folded(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 60, k = 6: measures that saturate, each with another range, four cells each."""
    return (1 + jnp.mean(jnp.cos(x))) / 2, jnp.tanh(x.reshape(6, 10).mean(axis=1)) * jnp.arange(1, 7)


def unequal(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 30, k = 2: one measure is a thousand times as steep as the other."""
    return 1 / (1 + jnp.mean(x**2)), jnp.array([100 * x[:15].mean(), 0.1 * jnp.sum(x[15:] ** 2)])


def hills(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """n = 100, k = 2: the first function of the README, inside bounds."""
    return 30 - jnp.mean((x - 1) ** 2 + 3 * jnp.sin(3 * x) ** 2), jnp.array([x[:50].mean(), x[50:].mean()])


def paper(domain: Any) -> Case:
    return Case(domain, domain.grid(), jnp.zeros(domain.n))


def cases(n: int) -> dict[str, Case]:
    """The paper's problems with n numbers, and six others."""
    return {
        "lp-sphere": paper(dqd.LinearProjection("sphere", n)),
        "lp-rastrigin": paper(dqd.LinearProjection("rastrigin", n)),
        "arm": paper(dqd.Arm(n)),
        "valley": Case(valley, dqd.Grid([-10], [10], [500]), jnp.zeros(2)),
        "chain": Case(chain, dqd.Grid([-5, -1, -1], [5, 1, 1], [20] * 3), jnp.zeros(20)),
        "network": Case(network, dqd.Grid([-1.5] * 4, [1.5] * 4, [8] * 4), jnp.zeros(5000) + 0.01),
        "folded": Case(folded, dqd.Grid([-j for j in range(1, 7)], list(range(1, 7)), [4] * 6), jnp.zeros(60)),
        "unequal": Case(unequal, dqd.Grid([-100, 0], [100, 3], [50, 50]), jnp.full(30, 0.1)),
        "hills": Case(hills, dqd.Grid([-4, -4], [4, 4], [100, 100]), jnp.zeros(100), (-4.0, 4.0)),
    }


ALGORITHMS: dict[str, Callable[[], Any]] = {
    "cma-mega": dqd.cma_mega,
    "map-elites": dqd.map_elites,
    "omg-mega": dqd.omg_mega,
    "map-elites-line": dqd.map_elites_line,
    "cma-mega-adam": dqd.cma_mega_adam,
    "cma-me": dqd.cma_me,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    entries = json.loads(given.out.read_text())["entries"] if given.out.exists() else {}
    warnings.simplefilter("ignore")  # a sweep has bad values, too
    for algorithm in given.algorithms.split(","):
        for name, case in cases(LARGEST if algorithm == "cma-me" else 1000).items():
            entry = f"{algorithm}/{name}"
            if entry in entries or (algorithm == "cma-me" and case.x0.size > LARGEST):
                continue
            entries[entry] = measured(case, ALGORITHMS[algorithm], given.iterations, given.seeds)
            what = {"iterations": given.iterations, "seeds": given.seeds, "jax": jax.__version__}
            given.out.write_text(json.dumps({**what, "entries": entries}, indent=1) + "\n")
            print(entry, f"{entries[entry]['share']:.0%}", flush=True)
    print(table(entries))


def measured(case: Case, make: Callable[[], Any], iterations: int, seeds: int) -> dict[str, Any]:
    """What was chosen and found with it, and what the sweep found."""
    options = {"x0": case.x0, "bounds": case.bounds, "seeds": range(seeds), "progress": False}
    own = dqd.illuminate(case.score, make(), case.grid, iterations=iterations - LOOKING, **options)
    start = own.chosen.get("initial_sigma")
    sweep = []
    for factor in FACTORS:
        emitter = scaled(make(), lambda along, factor=factor: own.chosen[along] * factor)
        found = dqd.illuminate(case.score, emitter, case.grid, iterations=iterations, initial_sigma=start, **options)
        sweep.append({"factor": factor, **figures(found)})
    best = max(sweep, key=lambda row: row["qd_score"])
    share = figures(own)["qd_score"] / best["qd_score"]
    return {"chosen": own.chosen, **figures(own), "share": share, "best_factor": best["factor"], "sweep": sweep}


def figures(found: dqd.Results) -> dict[str, float]:
    """Elites below 0 count as nothing: else a search that finds nothing would be better than one that finds them."""
    scores = np.maximum(np.asarray(found.state.archive.objective), 0).mean(axis=1)
    return {"qd_score": float(scores.mean()), "coverage": float(np.mean(found.coverage))}


def table(entries: dict[str, Any]) -> str:
    """QD-score of the chosen sigma in percent of the best of the sweep, and that one's factor in brackets."""
    names = list(cases(10))
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for algorithm in ALGORITHMS:
        row = [entries.get(f"{algorithm}/{name}") for name in names]
        if not any(row):
            continue
        cells = ["-" if each is None else f"{100 * each['share']:.0f} ({each['best_factor']:.2g})" for each in row]
        lines.append(f"| `{algorithm}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
