"""CMA-MEGA on an accelerator: 20 seeds x 10,000 iterations side by side, compilation apart.

python benchmarks/gpu.py [--out benchmarks/results/gpu.json]
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

import jax
import jax.numpy as jnp

import dqd

SIGMA = {"sphere": 10.0, "rastrigin": 10.0, "arm": 0.05}
SEEDS, ITERATIONS, ROUNDS = 20, 10_000, 3


def measure(name: str, seeds: int, chunk: int) -> dict[str, float]:
    """Seconds of the fastest and of every round; the first one pays the compilation."""
    domain = dqd.Arm() if name == "arm" else dqd.LinearProjection(name)
    rounds = [
        dqd.illuminate(
            domain,
            dqd.cma_mega(SIGMA[name], rank_one="dqd2021"),
            domain.grid(),
            x0=jnp.zeros(1000),
            iterations=ITERATIONS,
            seeds=range(seeds),
            progress=False,
            chunk=chunk,
        )
        for _ in range(ROUNDS)
    ]
    return {
        "domain": name,
        "seeds": seeds,
        "chunk": chunk,
        "iterations": ITERATIONS,
        "compile_seconds": rounds[0].compile_seconds,
        "seconds": min(r.seconds for r in rounds[1:]),
        "all_seconds": [r.seconds for r in rounds],
        "ms_per_iteration": 1e3 * min(r.seconds for r in rounds[1:]) / ITERATIONS,
        "qd_score": float(rounds[0].qd_score.mean()),
        "coverage": float(rounds[0].coverage.mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu.json"))
    out = parser.parse_args().out
    rows = [measure(name, SEEDS, chunk=1000) for name in SIGMA]
    for row in rows:
        print(json.dumps(row), flush=True)
    device = jax.devices()[0]
    about = {
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "dqd": dqd.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(about | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
