"""What CMA-ME costs with each strategy when solutions are long: time and memory per iteration, LP sphere, 36 samples.

    python benchmarks/strategies.py [--quick] [--pyribs] [--out benchmarks/results/strategies-cpu.json]

Every measurement is a fresh process. Milliseconds are a slope, a long run less a short one; `cpu` counts the seconds of
all its threads, which other programs on the machine do not change. Memory is the peak beyond that of random sampling
with the same archive, so what the strategy itself keeps and moves. With --pyribs its emitters run the same beside.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from device import describe_device, source_digest, today

HERE = Path(__file__).parent
STRATEGIES = ("sep-cma-es", "lm-ma-es", "openai-es", "cma-es")
PEERS = {"sep-cma-es": "sep_cma_es", "lm-ma-es": "lm_ma_es", "openai-es": "openai_es", "cma-es": "cma_es"}
SIZES = (1_000, 10_000, 100_000)
FULL = 3_000  # numbers: with more, a covariance of all pairs is left out
SIDE = 20  # cells per measure
SIGMA, BATCH = 0.5, 36


def main() -> None:
    given = _arguments()
    if given.one:
        print(json.dumps(measure(*given.one, int(given.n), given.iterations)))
        return
    out = given.out or Path(os.environ.get("OUT", HERE / "results")) / "strategies-cpu.json"
    results = {"date": today(), "device": describe_device(), "source": source_digest(), "rows": {}}
    for library in ("dqd", "pyribs") if given.pyribs else ("dqd",):
        for n in SIZES[:1] if given.quick else SIZES:
            for strategy in ("random", *STRATEGIES):
                if (strategy == "cma-es" and n > FULL) or (strategy == "random" and library == "pyribs"):
                    continue
                row = _in_a_fresh_process(library, strategy, n, given.iterations)
                results["rows"].setdefault(library, {}).setdefault(str(n), {})[strategy] = row
                print(library, f"n = {n:,}", strategy, row, flush=True)
                out.write_text(json.dumps(results, indent=1) + "\n")


def measure(library: str, strategy: str, n: int, iterations: int) -> dict[str, float]:
    advance = _ours(strategy, n) if library == "dqd" else _pyribs(strategy, n)
    advance(iterations)  # compiles
    before, cpu = time.perf_counter(), time.process_time()
    advance(iterations)
    middle, middle_cpu = time.perf_counter(), time.process_time()
    advance(4 * iterations)
    after, after_cpu = time.perf_counter(), time.process_time()
    slope = (after - middle - (middle - before)) / (3 * iterations)
    used = (after_cpu - middle_cpu - (middle_cpu - cpu)) / (3 * iterations)
    return {"ms": 1000 * slope, "cpu_ms": 1000 * used, "peak_mb": _peak() / 1e6}


def _ours(strategy: str, n: int):
    import jax.numpy as jnp

    import dqd

    domain = dqd.LinearProjection("sphere", n)
    random = strategy == "random"
    emitter = dqd.random_sampling(SIGMA) if random else dqd.cma_me(SIGMA, batch_size=BATCH, strategy=strategy)

    def advance(iterations: int) -> None:
        dqd.illuminate(domain, emitter, domain.grid(SIDE), x0=jnp.zeros(n), iterations=iterations, progress=False)

    return advance


def _pyribs(strategy: str, n: int):
    import numpy as np
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler

    reach = 5.12 * n / 2
    archive = GridArchive(solution_dim=n, dims=(SIDE, SIDE), ranges=[(-reach, reach)] * 2, dtype=np.float32)
    emitter = EvolutionStrategyEmitter(
        archive, x0=np.zeros(n, np.float32), sigma0=SIGMA, es=PEERS[strategy], batch_size=BATCH, ranker="2imp",
        selection_rule="filter", restart_rule="no_improvement",
    )  # fmt: skip
    scheduler = Scheduler(archive, [emitter])

    def advance(iterations: int) -> None:
        for _ in range(iterations):
            x = scheduler.ask()
            y = np.where(np.abs(x) > 5.12, 5.12 / x, x)
            measures = np.stack([y[:, : n // 2].sum(axis=1), y[:, n // 2 :].sum(axis=1)], axis=1)
            scheduler.tell(100 - 100 * ((x - 2.048) ** 2).sum(axis=1) / (n * 7.168**2), measures)

    return advance


def _peak() -> float:
    """Bytes: of the device where it counts them, else of this process."""
    if "jax" in sys.modules:
        import jax

        stats = jax.local_devices()[0].memory_stats()
        if stats:
            return stats["peak_bytes_in_use"]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _in_a_fresh_process(library: str, strategy: str, n: int, iterations: int) -> dict:
    command = [sys.executable, __file__, "--one", library, strategy, "--n", str(n), "--iterations", str(iterations)]
    variables = os.environ | {"PYTHONPATH": str(HERE.parent / "src"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.returncode:  # too large for this machine: said, and the next one is tried
        return {"failed": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else str(done.returncode)}
    return json.loads(done.stdout.splitlines()[-1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest n only")
    parser.add_argument("--pyribs", action="store_true", help="beside pyribs")
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "STRATEGY"), help="one measurement, in this process")
    parser.add_argument("--n", default="1000")
    return parser.parse_args()


if __name__ == "__main__":
    main()
