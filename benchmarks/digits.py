"""Who maps a generator best, and whom does a judge believe that no search has seen? Six maps of lsi-digits.

    python benchmarks/digits.py                # five seeds of 2,000 iterations; writes results/digits.json and .md
    python benchmarks/digits.py --workers 12   # side by side, each trial on a core of its own
    python benchmarks/digits.py --space free --pairs 1 --out benchmarks/results/digits-free

All spend 36 evaluations per iteration. Trials that the file has already are not made again, so a run that was
interrupted goes on; seeds come first, so what is there is a fair table at any time. The first seed of every pair draws
its collage if --pictures names a folder.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import dqd
import maps
from dqd.paper.presets import make_problem, preset

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
Trial = tuple[str, tuple[str, ...], int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--space", default="p", help="p is guarded, free is not")
    parser.add_argument("--pairs", type=int, default=len(PAIRS), help="how many of the maps")
    parser.add_argument("--algorithms", nargs="+", default=CONTESTANTS)
    parser.add_argument("--workers", type=int, default=1, help="trials side by side, each on one core")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "digits")
    chosen = parser.parse_args()
    path = chosen.out.with_suffix(".json")
    about = {"iterations": chosen.iterations, "space": chosen.space, "workers": chosen.workers}
    rows = maps.known_trials(path, about)
    made = {maps.key(row) for row in rows}
    order = itertools.product(range(chosen.seeds), PAIRS[: chosen.pairs], chosen.algorithms)
    wanted = [(name, pair, seed) for seed, pair, name in order if (name, pair, seed) not in made]
    for row in trials(wanted, chosen):
        rows.append(row)
        print(json.dumps(row), flush=True)
        maps.write(path, about, rows)
    rows.sort(key=lambda row: (PAIRS.index(tuple(row["pair"])), row["seed"]))
    maps.write(path, about, rows)
    words = f"lsi-digits, space {chosen.space}, 100 × 100 cells, {chosen.iterations:,} iterations of 36 evaluations, "
    text = maps.table(rows, f"{words}mean and standard deviation of {chosen.seeds} seeds.")
    chosen.out.with_suffix(".md").write_text(text)
    print(text)


def trials(wanted: list[Trial], chosen: argparse.Namespace) -> Iterator[maps.Row]:
    """One after the other here, or side by side in processes that have a core each."""
    make = functools.partial(trial, chosen=chosen)
    if chosen.workers == 1:
        yield from map(make, wanted)
        return
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    mine = sorted(os.sched_getaffinity(0))[: chosen.workers]
    for core in mine:
        cores.put(core)
    with ProcessPoolExecutor(len(mine), context, initializer=settle, initargs=(cores,)) as pool:
        for done in as_completed([pool.submit(make, each) for each in wanted]):
            yield done.result()


def settle(cores: multiprocessing.Queue) -> None:
    os.sched_setaffinity(0, {cores.get()})  # before JAX counts its threads


def trial(wanted: Trial, chosen: argparse.Namespace) -> maps.Row:
    name, pair, seed = wanted
    problem = make_problem("lsi-digits", space=chosen.space, objective=pair[0], measures=pair[1:])
    emitter = preset("lsi-digits", name)
    result = dqd.illuminate(problem, emitter, iterations=chosen.iterations, seed=seed, progress=False)
    if chosen.pictures and seed == 0:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
        axes = dqd.plot.collage(result, problem.domain.render, labels=problem.labels[1:])
        axes.figure.savefig(chosen.pictures / f"{'-'.join(pair)}-{name}.png")
    judged = {"trusted": result.agreement.qd_score, "agreement": result.agreement.share}
    return maps.figures(result, name, pair, seed) | judged


if __name__ == "__main__":
    main()
