"""What an iteration costs when one thing grows: cells, batch, emitters, numbers in a solution. CMA-MEGA, LP sphere.

    python benchmarks/limits.py [--only cells batch] [--out benchmarks/results/limits-h200.json]

Microseconds per iteration are a slope: a long run less a short one, over the difference of their iterations, so that
the start does not count. Compilation is that of the first run, with nothing kept from before.
"""

import argparse
import contextlib
import json
import math
from pathlib import Path

import jax.numpy as jnp

import dqd
from device import describe_device, source_digest, today
from dqd.runners.compiled import grain

CELLS = (10**4, 10**6, 10**7)
BATCHES = (36, 1_024, 4_096, 16_384, 32_768)
EMITTERS = (16, 128, 1_024)
SIZES = (10**5, 10**6)


def measure(
    n: int,
    cells: int,
    batch: int = 36,
    emitters: int = 1,
    seeds: int = 1,
    alone: contextlib.AbstractContextManager | None = None,
) -> dict[str, float]:
    """`alone` is held while it is timed, and not while it is compiled."""
    domain = dqd.LinearProjection("sphere", n)
    emitter = dqd.cma_mega(10.0, batch_size=batch)
    emitter = emitter if emitters == 1 else dqd.replicate(emitter, emitters)

    options = {"x0": jnp.zeros(n), "progress": False} | ({"seeds": range(seeds)} if seeds > 1 else {})

    def run(iterations: int) -> dqd.Result | dqd.Results:
        return dqd.illuminate(domain, emitter, domain.grid(round(math.sqrt(cells))), iterations=iterations, **options)

    least = 10 if grain() == 1 else grain()
    compile_seconds = run(2 * least).compile_seconds
    with alone or contextlib.nullcontext():
        guess = max((run(11 * least).seconds - run(least).seconds) / (10 * least), 1e-6)
        short = max(least, min(20_000, int(0.1 / guess)) // least * least)
        long, begin = (min(run(times * short).seconds for _ in range(3)) for times in (5, 1))
    slope = (long - begin) / (4 * short)
    evaluations = batch * emitters * seeds / slope
    return {"us": 1e6 * slope, "compile_seconds": compile_seconds, "evaluations_per_second": evaluations}


def table(only: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    rows = {
        "cells": {f"{cells:,}": {"n": 10, "cells": cells} for cells in CELLS},
        "batch": {f"{batch:,}": {"n": 1_000, "cells": 10**4, "batch": batch} for batch in BATCHES},
        "emitters": {f"{count:,}": {"n": 1_000, "cells": 10**4, "emitters": count} for count in EMITTERS},
        "numbers": {f"{n:,}": {"n": n, "cells": 1_024} for n in SIZES},
    }
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for name in only or rows:
        for label, settings in rows[name].items():
            try:
                measured.setdefault(name, {})[label] = measure(**settings)
            except Exception as error:  # too large for this machine: said, and the next one is tried
                print(name, label, type(error).__name__, str(error)[:200], flush=True)
                continue
            print(name, label, {key: float(f"{value:.4g}") for key, value in measured[name][label].items()}, flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], choices=["cells", "batch", "emitters", "numbers"])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = {"date": today(), "device": describe_device(), "source": source_digest(), **table(given.only)}
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
