"""Maps of faces: time, QD-score and coverage of one algorithm, on a CPU by a preview or on a GPU in full.

    python benchmarks/faces.py --compare                            two cores: beside random sampling, with a judge
    python benchmarks/faces.py --algorithm cma-mega-adam --iterations 10000 --resolution 200 --out runs/faces-adam

The networks must be there (`dqd fetch faces`). Everything goes to --out: the record of the search (an interrupted one
goes on where it stopped), metrics.json and collages. With --compare as many evaluations are spent on random
sampling, and `faceres`, an age network that no search has seen, gives a second opinion on the elites of both.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dqd.archives.archive import Archive
from dqd.compiler import cache
from dqd.illumination import illuminate
from dqd.latent import finish
from dqd.latent import presets as latent
from dqd.latent.problems.faces import MEASURES, OBJECTIVE, build
from dqd.paper import presets
from dqd.types import replace

JUDGED = 100  # elites that the second age network looks at


def main() -> None:
    arguments = _arguments()
    cache.enable()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    problem = build(
        objective=arguments.objective,
        measures=tuple(arguments.measure or MEASURES),
        space=arguments.space,
        resolution=arguments.resolution,
        preview=arguments.preview,
        dtype=arguments.dtype,
    )
    if arguments.images:
        problem = replace(problem, domain=replace(problem.domain, images=arguments.images))
    names = [arguments.algorithm, "random"] if arguments.compare else [arguments.algorithm]
    found = {name: _search(problem, name, arguments, out) for name in names}
    report = {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "problem": problem.title,
        "objective": arguments.objective,
        "measures": list(arguments.measure or MEASURES),
        "space": arguments.space,
        "resolution": arguments.resolution,
        "seed": arguments.seed,
        "searches": {name: metrics for name, (_, metrics) in found.items()},
    }
    for name, (archive, _) in found.items():
        finish.pictures(problem, archive, problem.final or problem.domain, out / name)
        if arguments.compare:
            report["searches"][name]["judge"] = _judged(archive, problem)
    (out / "metrics.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", choices=list(latent.LATENT["lsi-faces"].settings), default=latent.ALGORITHM)
    parser.add_argument("--objective", default=OBJECTIVE)
    parser.add_argument("--measure", action="append")
    parser.add_argument("--space", default="p")
    parser.add_argument("--iterations", type=int, default=latent.iterations("lsi-faces"))
    parser.add_argument("--resolution", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "gpu"), help="refuse to run elsewhere")
    parser.add_argument("--preview", type=int, choices=(0, 128, 256), help="pixels; 0: the full network")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--images", type=int, help="images per pass, which bounds memory")
    parser.add_argument("--compare", action="store_true", help="beside random sampling, with the second age network")
    parser.add_argument("--out", type=Path, default=Path("runs/faces"))
    arguments = parser.parse_args()
    if arguments.device and arguments.device != jax.default_backend():
        parser.error(f"--device {arguments.device}: JAX found only {jax.default_backend()}")
    arguments.preview = False if arguments.preview == 0 else arguments.preview
    return arguments


def _search(problem: Any, name: str, arguments: Any, out: Path) -> tuple[Archive, dict[str, Any]]:
    """One search, its elites scored in full at the end if they were not so far."""
    result = illuminate(
        problem.domain,
        presets.preset("lsi-faces", name),
        problem.grid,
        x0=problem.x0,
        bounds=problem.bounds,
        initial_sigma=problem.initial_sigma,
        iterations=arguments.iterations,
        seed=arguments.seed,
        out=out / name,
    )
    metrics = result.summary() | {
        "ms_per_iteration": 1000 * result.seconds / max(result.iterations, 1),
        "cells": len(result.elites),
        "peak_memory_bytes": (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
    }
    if not problem.judges:
        return result.archive, metrics
    started = time.perf_counter()
    archive = problem.judged(result.archive, finish.tenths(print))
    full = {key: float(getattr(archive.metrics, key)) for key in ("qd_score", "coverage", "mean", "best")}
    full |= {"cells": len(archive.elites), "seconds": time.perf_counter() - started}
    return archive, metrics | {"preview_only": True, "full": full}


def _judged(archive: Archive, problem: Any) -> dict[str, float]:
    """How far the second age network agrees with the searched one, over some elites drawn in full."""
    import faceres

    domain = problem.final or problem.domain
    column = domain.measures.index("age")
    elites = archive.elites
    chosen = np.random.default_rng(0).permutation(len(elites))[:JUDGED]
    weights = faceres.download()
    guess = []
    for solution in elites.solutions[chosen]:
        picture = np.moveaxis(domain.render(solution[None]), -1, 1).astype(np.float32) / 127.5 - 1
        guess.append(float(faceres.ages(weights, picture)[0]))
    searched = elites.measures[chosen, column]
    return {
        "elites": len(chosen),
        "correlation": float(np.corrcoef(searched, guess)[0, 1]),
        "mean_difference": float(np.mean(np.abs(searched - np.asarray(guess)))),
        "bias": float(np.mean(np.asarray(guess) - searched)),
    }


if __name__ == "__main__":
    main()
