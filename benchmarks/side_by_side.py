"""Does any bit depend on whether a GPU's kernels wait for each other? Searches with and without, byte for byte.

    python benchmarks/side_by_side.py [--seconds 140] [--workers 5] [--only cma_mega ...] [--out FILE]

Every set-up is searched in one process with `DQD_SIDE_BY_SIDE` and in another one without: in launches of 250, the same
again, and in launches of other lengths. All must end in the same state, archive included. Processes share the device
and compile at once; what is not done after `--seconds` is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import dqd
from device import describe_device, source_digest, today
from dqd.compiler.flags import side_by_side
from dqd.runners.task import task_of

HERE = Path(__file__).parent
ITERATIONS = 2_000
WHOLE = [250]
CUTS = {"whole": WHOLE, "again": WHOLE, "and again": WHOLE, "cut": [250, 1, 37, 113, 99]}
MODES = {"side by side": "1", "one after the other": "0"}
SPHERE, RASTRIGIN = dqd.LinearProjection("sphere", 100), dqd.LinearProjection("rastrigin", 100)
LONG, LONGER, ARM = dqd.LinearProjection("sphere", 1000), dqd.LinearProjection("sphere", 8_000), dqd.Arm(1000)
CELLS = SPHERE.grid(50)
MEGA, ME = dqd.cma_mega(10.0), dqd.cma_me(0.5)
PAIR = {"annealing": 0.01, "minimum": 0.0, "batch_size": 72, "emitters": 2}
# A domain, an emitter, cells; `seeds`, `seed` and `bounds` where they differ from the usual.
SETUPS: dict[str, Callable[[], tuple[Any, Any, Any, dict[str, Any]]]] = {
    "cma_mega": lambda: (LONG, dqd.cma_mega(10.0, rank_one="dqd2021"), LONG.grid(), {}),
    "large batch": lambda: (SPHERE, dqd.cma_mega(10.0, batch_size=5_000), CELLS, {}),
    "targeting": lambda: (RASTRIGIN, dqd.targeting(), CELLS, {"seeds": 2}),
    "eight seeds": lambda: (LONG, MEGA, LONG.grid(), {"seeds": 8}),
    "another seed": lambda: (LONG, MEGA, LONG.grid(), {"seed": 7}),
    "rastrigin": lambda: (dqd.LinearProjection("rastrigin", 1000), MEGA, LONG.grid(), {}),
    "arm": lambda: (ARM, dqd.cma_mega(0.05), ARM.grid(), {}),
    "adam": lambda: (RASTRIGIN, dqd.cma_mega_adam(10.0, 0.002), CELLS, {}),
    "cma_me": lambda: (SPHERE, ME, CELLS, {"seeds": 3}),
    "map_elites_line": lambda: (RASTRIGIN, dqd.map_elites_line(0.5, 0.2), CELLS, {}),
    "omg_mega": lambda: (SPHERE, dqd.omg_mega(10.0), CELLS, {"seeds": 3}),
    "og_map_elites_line": lambda: (SPHERE, dqd.og_map_elites_line(0.5, 0.2, 0.5), CELLS, {}),
    "cma_mae": lambda: (SPHERE, dqd.cma_mae(0.5, 0.01, 0.0, batch_size=72, emitters=2), CELLS, {}),
    "cma_maega": lambda: (SPHERE, dqd.cma_maega(10.0, 1.0, **PAIR), CELLS, {}),
    "replicated": lambda: (SPHERE, dqd.replicate(MEGA, 4), CELLS, {}),
    "combined": lambda: (SPHERE, dqd.combine(MEGA, dqd.map_elites(0.5)), CELLS, {}),
    "centroids": lambda: (SPHERE, MEGA, SPHERE.cells(500), {}),
    "smooth bounds": lambda: (SPHERE, MEGA, CELLS, {"bounds": dqd.Bounds(-5.12, 5.12, by="smooth")}),
    "without cells": lambda: (SPHERE, ME, dqd.DNS(2, 500), {}),
    "moving cells": lambda: (SPHERE, MEGA, dqd.UnboundedGrid((50, 50)), {}),
    "sep-cma-es": lambda: (SPHERE, dqd.cma_me(0.5, strategy="sep-cma-es"), CELLS, {}),
    "many numbers": lambda: (LONGER, MEGA, LONGER.grid(), {}),
}


def digests(name: str, iterations: int) -> dict[str, str]:
    """What every way of launching the same search ends in."""
    domain, emitter, cells, options = SETUPS[name]()
    x0, seeds = jnp.zeros(domain.n), options.get("seeds", 1)
    numbers = jnp.arange(seeds) if seeds > 1 else jnp.asarray(options.get("seed", 0))

    def ended(lengths: list[int]) -> str:
        task = task_of(domain, emitter, 1, cells, x0, options.get("bounds"), None, None, None, 0.0, None, {})
        runner = task.runner(None, seeds > 1, None, iterations)
        state, done = runner.start(task.begun(), task.x0, numbers), 0
        while done < iterations:
            length = min(lengths[0], iterations - done)
            lengths = [*lengths[1:], lengths[0]]
            state, _, _ = runner.launch(state, length)
            done += length
        return digest(state)

    def digest(state: Any) -> str:
        content = hashlib.sha256()
        for leaf in jax.tree.leaves(state):
            key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            content.update(jax.device_get(jax.random.key_data(leaf) if key else jnp.asarray(leaf)).tobytes())
        return content.hexdigest()[:16]

    return {cut: ended(lengths) for cut, lengths in CUTS.items()}


def serve(iterations: int) -> None:
    """Answers every name on a line with a line: the digests, or what went wrong."""
    print(json.dumps({"device": jax.devices()[0].device_kind, "on": side_by_side() is not None}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            print(json.dumps(digests(name, iterations)), flush=True)
        except Exception as error:  # told, and the next one is tried
            print(json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--workers", type=int, default=5, help="of each mode")
    parser.add_argument("--only", nargs="+", choices=SETUPS, default=list(SETUPS))
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def report(given: argparse.Namespace) -> None:
    about = {"date": today(), "host": describe_device(), "source": source_digest(), "jax": jax.__version__}
    found, switched = measure(given)
    results = about | {
        "iterations": given.iterations,
        "switch": switched,
        "setups": {name: judged(by) for name, by in found.items()},
        "not done": [name for name in given.only if len(found[name]) < len(MODES)],
    }
    results["all equal"] = not results["not done"] and all(row["equal"] for row in results["setups"].values())
    print(json.dumps({"all equal": results["all equal"], "not done": results["not done"], "switch": switched}))
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")


def judged(by_mode: dict[str, dict[str, str]]) -> dict[str, Any]:
    ends = [end for cuts in by_mode.values() for end in cuts.values()]
    whole = len(by_mode) == len(MODES) and not any("failed" in cuts for cuts in by_mode.values())
    return {"equal": whole and len(set(ends)) == 1, "ends": by_mode}


def measure(given: argparse.Namespace) -> tuple[dict[str, dict[str, dict[str, str]]], dict[str, dict[str, Any]]]:
    """By set-up and mode; and what each mode's processes say of the switch."""
    found: dict[str, dict[str, dict[str, str]]] = {name: {} for name in given.only}
    switched: dict[str, dict[str, Any]] = {}
    processes, threads = [], []
    for mode, switch in MODES.items():
        names: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in given.only:
            names.put(name)
        for _ in range(given.workers):
            process = _start(given, switch)
            processes.append(process)
            threads.append(threading.Thread(target=_ask, args=(process, names, mode, found, switched), daemon=True))
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, given.seconds - (time.monotonic() - begin)))
    for process in processes:
        process.kill()
    return found, switched


def _start(given: argparse.Namespace, switch: str) -> subprocess.Popen[str]:
    own = {"PYTHONPATH": str(HERE.parent / "src"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "DQD_NO_CACHE": "1"}
    command = [sys.executable, __file__, "--serve", "--iterations", str(given.iterations)]
    environment, pipe = os.environ | own | {"DQD_SIDE_BY_SIDE": switch}, subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment)


def _ask(
    process: subprocess.Popen[str],
    names: queue.SimpleQueue[str],
    mode: str,
    found: dict[str, dict[str, dict[str, str]]],
    switched: dict[str, dict[str, Any]],
) -> None:
    assert process.stdin
    assert process.stdout
    try:
        switched[mode] = json.loads(process.stdout.readline())
        while True:
            name = names.get_nowait()
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            found[name][mode] = answer = json.loads(process.stdout.readline())
            print(mode, name, answer, flush=True)
    except (queue.Empty, ValueError, OSError):  # nothing is left to do, or the process was ended
        return


if __name__ == "__main__":
    given = _arguments()
    serve(given.iterations) if given.serve else report(given)
