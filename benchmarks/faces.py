"""Maps of faces: who finds the best one, and whom does an age network believe that no search has seen?

    python benchmarks/faces.py --algorithms cma-mega-adam random          two cores: 50 iterations by a preview
    python benchmarks/faces.py --resolution 200 --iterations 500 --seeds 3 --judged 2000       on a GPU, in full

To compile takes longer than such a search. Five processes at a time, one for each algorithm, share the wait: give each
`--algorithms NAME --seeds 1 --side-by-side --out runs/NAME`, and then the others of all `--known runs/*.json`.

The networks must be there (`dqd fetch faces`). All spend 36 evaluations per iteration. Trials that the file has already
are not made again. The first seed of each algorithm draws its collage, of the best face of each block and of the best
one that the judge agrees with.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dqd
import maps
from dqd.archives.archive import Archive
from dqd.compiler import cache
from dqd.latent import presets as latent
from dqd.latent.problems.faces import MEASURES, OBJECTIVE, build
from dqd.paper.presets import ALGORITHMS, preset
from dqd.saved.agreement import Agreement
from dqd.types import Evaluation, replace

CONTESTANTS = ("cma-mega-adam", "cma-maega", "targeting", "map-elites-line", "random")


def main() -> None:
    chosen = _arguments()
    cache.enable()
    pair = (chosen.objective, *(chosen.measure or MEASURES))
    options = {"space": chosen.space, "resolution": chosen.resolution, "preview": chosen.preview}
    problem = build(objective=pair[0], measures=pair[1:], dtype=chosen.dtype, **options)
    if chosen.images:
        problem = replace(problem, domain=replace(problem.domain, images=chosen.images))
    about = {"iterations": chosen.iterations, "judged": chosen.judged, "views": [], **options}
    path = chosen.out.with_suffix(".json")
    rows = [row for file in (path, *chosen.known) for row in maps.known_trials(file, about)]
    made = {maps.key(row) for row in rows}
    for seed, name in itertools.product(range(chosen.seeds), chosen.algorithms):
        if (name, pair, seed) not in made:
            rows.append(trial(problem, name, pair, seed, chosen))
            print(json.dumps(rows[-1]), flush=True)
            maps.write(path, about, rows)
    words = f"lsi-faces, space {chosen.space}, {chosen.resolution} × {chosen.resolution} cells, "
    words += f"{chosen.iterations:,} iterations of 36 evaluations, mean and standard deviation of {chosen.seeds} seeds."
    chosen.out.with_suffix(".md").write_text(maps.table(rows, words))
    print(maps.table(rows, words))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", choices=list(latent.LATENT["lsi-faces"].settings))
    parser.add_argument("--objective", default=OBJECTIVE)
    parser.add_argument("--measure", action="append")
    parser.add_argument("--space", default="p")
    parser.add_argument("--iterations", type=int, default=latent.iterations("lsi-faces"))
    parser.add_argument("--resolution", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--preview", type=int, choices=(0, 128, 256), help="pixels; 0: the full network")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--images", type=int, help="images per pass, which bounds memory")
    parser.add_argument("--judged", type=int, default=100, help="elites of each trial that the judge looks at")
    parser.add_argument("--side-by-side", action="store_true", help="others use this device: no seconds")
    parser.add_argument("--known", type=Path, nargs="*", default=(), help="files of trials that need not be made again")
    parser.add_argument("--out", type=Path, default=Path("runs/faces"))
    parser.set_defaults(algorithms=CONTESTANTS)
    arguments = parser.parse_args()
    arguments.preview = False if arguments.preview == 0 else arguments.preview
    return arguments


def trial(problem: Any, name: str, pair: tuple[str, ...], seed: int, chosen: argparse.Namespace) -> maps.Row:
    """One search; its elites scored in full at the end if they were not so far; some of them judged by the other."""
    unheard = replace(problem, witness=None)
    emitter = preset("lsi-faces", name)
    result = dqd.illuminate(unheard, emitter, iterations=chosen.iterations, seed=seed, progress=False)
    started = time.perf_counter()
    part = judged(problem, result, chosen.judged)
    agreement = Agreement(part.to_numpy(False), problem.opinions)
    kept = agreement.qd_score / max(float(part.metrics.qd_score), 1e-9)
    said = agreement.summary()
    row = maps.figures(result, name, pair, seed) | {
        "cells": len(result.elites),
        "judged": len(part.elites),
        "trusted": kept * result.qd_score,
        "agreement": agreement.share,
        "opinions": said["opinions"],
        "judge_seconds": time.perf_counter() - started,
        "peak_memory_bytes": (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
        "side_by_side": chosen.side_by_side,
    }
    if seed == 0:
        draw(problem, part, result, name, row, chosen)
    return row


def judged(problem: Any, result: dqd.Result, most: int) -> Archive:
    """Some elites, drawn without choice, with what the held-out judge says of them. To judge all takes minutes."""
    elites = result.elites
    rows = np.random.default_rng(0).permutation(len(elites))[:most]
    found = Evaluation(jnp.asarray(elites.objective[rows]), jnp.asarray(elites.measures[rows]))
    some, _ = Archive.empty(problem.grid, problem.x0.size).add(jnp.asarray(elites.solutions[rows]), found)
    return replace(problem, domain=problem.final or problem.domain, final=None).judged(some)


def draw(problem: Any, part: Archive, result: dqd.Result, name: str, row: maps.Row, chosen: argparse.Namespace) -> None:
    """Collages: of all elites, and of those judged ones that are trusted."""
    render = (problem.final or problem.domain).render
    agreed = f"trusted {row['trusted']:.1f}: {row['agreement']:.0f} % agreed by a second age network"
    title = f"{problem.title}\n{ALGORITHMS[name].title}, {chosen.iterations:,} iterations, seed 0\n"
    title += f"QD-score {result.qd_score:.1f}, {agreed}"
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    for pick, found in {"best": result.archive, "trusted": part}.items():
        axes = dqd.plot.collage(found, render, labels=problem.labels[1:], title=title, pick=pick)
        axes.figure.savefig(chosen.out.parent / f"{chosen.out.name}-{name}-{pick}.jpg", dpi=200)


if __name__ == "__main__":
    main()
