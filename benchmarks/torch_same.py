"""The same perceptron in PyTorch and in JAX: are jacobians equal, and archives equal in distribution?

    python benchmarks/torch_same.py [--seeds 20] [--out benchmarks/results/torch-same.json]

CMA-MEGA, 100 iterations, 30 x 30 cells; the seeds of one are not those of the other. Distributions are compared by the
two-sample test of Kolmogorov and Smirnov.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from scipy.stats import ks_2samp

import dqd
from device import describe_device, source_digest, today

N, HIDDEN, OUTPUTS = 16, 32, 64
GRID = dqd.Grid([0.35, 0.35], [0.65, 0.65], [30, 30])
SETTINGS = {"x0": np.zeros(N), "iterations": 100, "progress": False}

torch.set_num_threads(1)
torch.manual_seed(0)
inner, outer = torch.nn.Linear(N, HIDDEN), torch.nn.Linear(HIDDEN, OUTPUTS)
first, second = ([jnp.asarray(part.detach().numpy()) for part in layer.parameters()] for layer in (inner, outer))


def in_torch(z):
    out = torch.sigmoid(outer(torch.tanh(inner(z))))
    return -out.diff().square().mean(), [half.mean() for half in out.chunk(2)]


def in_jax(z):
    out = jax.nn.sigmoid(second[0] @ jnp.tanh(first[0] @ z + first[1]) + second[1])
    return -jnp.mean(jnp.diff(out) ** 2), jnp.stack([half.mean() for half in jnp.split(out, 2)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "torch-same.json")
    given = parser.parse_args()
    evaluator, emitter = dqd.torch_evaluator(in_torch), dqd.cma_mega(sigma=0.5)
    x = np.random.default_rng(0).normal(size=(200, N)).astype(np.float32)
    expected = jax.vmap(jax.jacobian(lambda z: jnp.hstack(in_jax(z))))(x)
    apart = np.abs(evaluator.evaluate_with_jacobian(x)[2].numpy() - expected).max()
    others = dqd.illuminate(in_jax, emitter, GRID, seeds=range(100, 100 + given.seeds), **SETTINGS)
    ours = [dqd.illuminate(evaluator, emitter, GRID, seed=seed, **SETTINGS) for seed in range(given.seeds)]
    found = {"date": today(), "device": describe_device(), "source": source_digest(), "seeds": given.seeds}
    found["jacobian_apart"] = float(apart)
    for metric in ("qd_score", "coverage", "best"):
        values = {"torch": [getattr(one, metric) for one in ours], "jax": getattr(others, metric).tolist()}
        found[metric] = values | {"p": float(ks_2samp(*values.values()).pvalue)}
        print(metric, *(f"{name} {np.mean(each):.5g}" for name, each in values.items()), f"p {found[metric]['p']:.2f}")
    print(f"jacobians: at most {apart:.1e} apart")
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
