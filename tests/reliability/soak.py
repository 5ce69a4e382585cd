"""A long run of small iterations, watched from inside: memory, open files, compiled programs.

    python soak.py ITERATIONS FOLDER

Prints one JSON object. What is there after a tenth of the run is the measure for the rest.
"""

import json
import os
import resource
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from reliability.samples import score

import dqd

PAGE = resource.getpagesize()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def main(iterations: int, folder: str) -> dict:
    programs, chunks, warm, worst, compiled, files = [], 0, None, 0, 0, set()

    def listen(event: str, seconds: float, **_: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append(seconds)

    def watch(metrics: dict) -> bool:
        nonlocal chunks, warm, worst, compiled
        chunks, compiled = chunks + 1, len(programs)
        if metrics["iteration"] >= iterations / 10:
            warm = warm or (metrics["iteration"], resident(), compiled)
            worst = max(worst, resident())
            files.add(len(os.listdir("/proc/self/fd")))
        return False

    jax.monitoring.register_event_duration_secs_listener(listen)
    emitter, grid = dqd.cma_mega(1.0, batch_size=8), dqd.Grid([-9, -9], [9, 9], [20, 20])
    options = {"iterations": iterations, "until": watch, "progress": False, "out": Path(folder) / "run"}
    result = dqd.illuminate(score, emitter, grid, x0=jnp.zeros(4), **options)
    return {
        "iterations": result.iterations,
        "chunks": chunks,
        "seconds": result.seconds,
        "resident_when_warm": warm[1],
        "growth": worst - warm[1],
        "bytes_of_history": 16 * len(result.history["iteration"]),  # four float32 a row
        "files": sorted(files),
        "compiled_when_warm": warm[2],
        "compilations": compiled - warm[2],
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2])))
