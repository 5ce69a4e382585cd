"""What test_devices.py asks of a process with 8 devices; answers with one line of JSON."""

import json
import os
import tempfile

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np

import dqd
from dqd.domains.domain import Domain
from dqd.types import pytree

jax.config.update("jax_disable_most_optimizations", True)  # quick to compile

N, SHARES = 20, 8
ARM = dqd.Arm(N)
MEGA = dqd.cma_mega(0.5, batch_size=5)
LINE = dqd.map_elites_line(0.1, 0.3, batch_size=13, initial_population=19)  # neither divides by 8


def run(emitter, domain=ARM, iterations=30, **options):
    x0 = jnp.linspace(-0.4, 0.5, N)
    return dqd.illuminate(
        domain, emitter, ARM.grid(20), x0=x0, iterations=iterations, chunk=10, progress=False, **options
    )


def same(one, other):
    names = ("cell", "solutions", "objective", "measures", "found")
    elites = all(np.array_equal(getattr(one.elites, name), getattr(other.elites, name)) for name in names)
    return bool(elites and one.summary()["restarts"] == other.summary()["restarts"] and len(one.elites) > 20)


@pytree
class SlicedRows(Domain):
    """One device that evaluates the shares of 8 devices, one after the other."""

    domain: Domain

    def evaluate(self, solutions):
        return self._slices(self.domain.evaluate, solutions)

    def evaluate_with_jacobian(self, solutions):
        return self._slices(self.domain.evaluate_with_jacobian, solutions)

    def score(self, x):
        return self.domain.score(x)

    def _slices(self, function, solutions):
        rows = len(solutions)
        full = jnp.pad(solutions, ((0, -rows % SHARES), (0, 0)), mode="edge")
        parts = jax.lax.map(function, full.reshape(SHARES, -1, full.shape[1]))
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:rows], parts)


def resumed(whole):
    with tempfile.TemporaryDirectory() as folder:
        run(LINE, seeds=range(16), where=dqd.Devices(8), iterations=10, out=f"{folder}/run")
        again = run(LINE, seeds=range(16), where=dqd.Devices(8), out=f"{folder}/run")
        return [same(again[i], whole[i]) for i in range(16)]


def mistake(**options):
    try:
        run(LINE, iterations=1, **options)
    except (ValueError, TypeError) as error:
        return str(error)
    return "nothing"


def main():
    shared = run(LINE, seeds=range(16), where=dqd.Devices(8))
    alone = [run(LINE, seeds=[seed, seed + 1]) for seed in range(0, 16, 2)]
    together = run(LINE, seeds=range(16))
    copies = dqd.replicate(MEGA, 16)
    copied = run(copies, seed=1, where=dqd.Devices(8))
    rows = run(LINE, seed=2, where=dqd.Devices(jax.devices()))
    placed = jax.tree.map(lambda leaf: len(leaf.sharding.device_set), copied.state.emitter)
    answer = {
        "seeds": [same(shared[i], alone[i // 2][i % 2]) for i in range(16)],
        "seeds on": len(shared.state.archive.objective.sharding.device_set),
        "means": [float(np.mean(shared.qd_score)), float(np.mean(together.qd_score)), float(np.std(together.qd_score))],
        "evaluations": [shared[3].evaluations, together[3].evaluations],
        "resumed": resumed(shared),
        "copies": same(copied, run(copies, SlicedRows(ARM), seed=1)),
        "copies on": max(jax.tree.leaves(placed)),
        "copy of one device": list(copied.state.emitter.theta.addressable_shards[3].data.shape),
        "rows": same(rows, run(LINE, SlicedRows(ARM), seed=2)),
        "mistakes": [
            mistake(seeds=range(9), where=dqd.Devices(8)),
            mistake(where=dqd.Devices(9)),
            mistake(where=dqd.Devices("gpu")),
            mistake(where=dqd.Devices([])),
        ],
    }
    print(json.dumps(answer))


main()
