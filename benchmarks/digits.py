"""Who maps a generator best, and whom does a judge believe that no search has seen? Six maps of lsi-digits.

    python benchmarks/digits.py                # five seeds of 2,000 iterations; writes results/digits.json and .md

All spend 36 evaluations per iteration. Trials that the file has already are not made again, so a run that was
interrupted goes on; seeds come first, so what is there is a fair table at any time. The first seed of every pair draws
its collage if --pictures names a folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

import dqd
from device import describe_device, source_digest, today
from dqd.paper.presets import ALGORITHMS, make_problem, preset

RESULTS = Path(__file__).parent / "results"
PAIRS = (  # objective and measures
    ("digit-3", "ink", "slant"),
    ("digit-8", "width", "slant"),
    ("digit-4", "height", "ink"),
    ("digit-5", "ink", "width"),
    ("digit-2", "slant", "height"),
    ("digit-0", "width", "height"),
)
CONTESTANTS = ("cma-mega", "cma-mega-adam", "targeting", "map-elites-line", "random")
COLUMNS = {"qd_score": "QD-score", "trusted": "trusted QD-score", "agreement": "agreement (%)", "seconds": "s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--space", default="p", help="p is guarded, free is not")
    parser.add_argument("--algorithms", nargs="+", default=CONTESTANTS)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "digits")
    chosen = parser.parse_args()
    path = chosen.out.with_suffix(".json")
    about = {"iterations": chosen.iterations, "space": chosen.space}
    found = json.loads(path.read_text()) if path.is_file() else {}
    rows = found.get("trials", []) if all(found.get(name) == value for name, value in about.items()) else []
    made = {(row["algorithm"], tuple(row["pair"]), row["seed"]) for row in rows}
    for seed, pair, name in itertools.product(range(chosen.seeds), PAIRS, chosen.algorithms):
        if (name, pair, seed) not in made:
            rows.append(trial(name, pair, seed, chosen))
            print(json.dumps(rows[-1]), flush=True)
            write(path, about, rows)
    chosen.out.with_suffix(".md").write_text(table(rows, chosen))
    print(table(rows, chosen))


def trial(name: str, pair: tuple[str, ...], seed: int, chosen: argparse.Namespace) -> dict[str, Any]:
    problem = make_problem("lsi-digits", space=chosen.space, objective=pair[0], measures=pair[1:])
    emitter = preset("lsi-digits", name)
    result = dqd.illuminate(problem, emitter, iterations=chosen.iterations, seed=seed, progress=False)
    if chosen.pictures and seed == 0:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
        axes = dqd.plot.collage(result, problem.domain.render, labels=problem.labels[1:])
        axes.figure.savefig(chosen.pictures / f"{'-'.join(pair)}-{name}.png")
    return {
        "algorithm": name,
        "pair": list(pair),
        "seed": seed,
        "qd_score": result.qd_score,
        "coverage": result.coverage,
        "best": result.best,
        "trusted": result.agreement.qd_score,
        "agreement": result.agreement.share,
        "seconds": result.seconds,
    }


def write(path: Path, about: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    machine = {"date": today(), "dqd": dqd.__version__, "source": source_digest(), **describe_device()}
    path.write_text(json.dumps(about | machine | {"trials": rows}, indent=1) + "\n")


def table(rows: list[dict[str, Any]], chosen: argparse.Namespace) -> str:
    """Of each pair the algorithms, best trusted QD-score first."""
    lines = [f"| map | algorithm | {' | '.join(COLUMNS.values())} |", "|---|---|" + "---:|" * len(COLUMNS)]
    for pair in PAIRS:
        entries = {n: [r for r in rows if r["pair"] == list(pair) and r["algorithm"] == n] for n in chosen.algorithms}
        ranked = sorted(entries, key=lambda n: -np.mean([row["trusted"] for row in entries[n]]))
        for place, name in enumerate(ranked):
            cells = [spread([row[column] for row in entries[name]]) for column in COLUMNS]
            title = f"{pair[0]}: {' × '.join(pair[1:])}" if place == 0 else ""
            lines.append(f"| {title} | {ALGORITHMS[name].title} | {' | '.join(cells)} |")
    words = (
        f"lsi-digits, space {chosen.space}, 100 × 100 cells, {chosen.iterations:,} iterations of 36 evaluations, mean"
    )
    return f"{words} and standard deviation of {chosen.seeds} seeds.\n\n" + "\n".join(lines) + "\n"


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.1f}"


if __name__ == "__main__":
    main()
