"""What does a map of a generator in PyTorch cost beyond its bare forward and backward passes?

    python benchmarks/torch_generator.py [--device cuda] [--iterations 200]

A DCGAN at 64 x 64 pixels (3.6 million weights, random) and a convolutional scorer, CMA-MEGA (Adam), 36 images and one
jacobian per iteration. `search` is `dqd.illuminate`, after a first one that warms up; `bare` is what it must do at
least, written in torch alone: 35 images judged, and one with three gradients. They take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory, too

import jax
import torch

sys.path.append(str(Path(__file__).parent.parent / "examples" / "generators"))
import dcgan

import dqd
from device import describe_device, source_digest, today
from dqd import latent

BRANCHES, LATENT = 35, (100, 1, 1)
NAMES = ("fit", "first", "second")


def networks(device: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A DCGAN, and a small network that scores images."""
    torch.manual_seed(0)
    generator = dcgan.network()
    widths = (3, 32, 64, 128)
    convolutions = [
        layer
        for inputs, outputs in itertools.pairwise(widths)
        for layer in (torch.nn.Conv2d(inputs, outputs, 4, 2, 1), torch.nn.SiLU())
    ]
    scorer = torch.nn.Sequential(*convolutions, torch.nn.Flatten(), torch.nn.Linear(128 * 8 * 8, len(NAMES)))
    with torch.no_grad():
        for _ in range(3):  # batch norms learn what is usual
            generator(torch.randn(64, *LATENT))
    return generator.to(device).eval(), scorer.to(device).eval()


def ranges(generator: torch.nn.Module, scorer: torch.nn.Module, device: str) -> dict[str, tuple[float, float]]:
    """Of the measures: four standard deviations over random images to either side."""
    with torch.no_grad():
        scores = scorer(generator(torch.randn(256, *LATENT, device=device)))[:, 1:]
    low, high = scores.mean(0) - 4 * scores.std(0), scores.mean(0) + 4 * scores.std(0)
    return dict(zip(NAMES[1:], zip(low.tolist(), high.tolist(), strict=True), strict=True))


def search(generator: torch.nn.Module, scorer: torch.nn.Module, measures: dict, iterations: int) -> dqd.Result:
    problem = latent.problem(
        latent.TorchGenerator(generator, latent_shape=LATENT),
        [latent.TorchScorer(scorer, NAMES)],
        "fit",
        measures,
        images=36,
    )
    return dqd.illuminate(problem, dqd.cma_mega_adam(sigma=0.5), iterations=iterations, progress=False)


def bare(generator: torch.nn.Module, scorer: torch.nn.Module, iterations: int, device: str) -> float:
    """Seconds of the passes that an iteration cannot do without."""
    rows = torch.randn(BRANCHES + 1, *LATENT, device=device)
    start = time.perf_counter()
    for _ in range(iterations):
        point = rows[:1].clone().requires_grad_()
        scores = scorer(generator(point))
        gradients = [torch.autograd.grad(scores[0, i], point, retain_graph=True)[0] for i in range(len(NAMES))]
        with torch.no_grad():
            found = scorer(generator(rows[1:]))
        [tensor.detach().cpu() for tensor in (*gradients, scores, found)]
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--iterations", type=int, default=100, help="of a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    models = networks(chosen.device)
    for parameter in (*models[0].parameters(), *models[1].parameters()):
        parameter.requires_grad_(False)
    bare(*models, 3, chosen.device)
    measures = ranges(*models, chosen.device)
    search(*models, measures, 3)
    rows = []
    for _ in range(chosen.turns):
        result = search(*models, measures, chosen.iterations)
        least = bare(*models, chosen.iterations, chosen.device)
        rows.append({name: 1e3 * s / chosen.iterations for name, s in (("search", result.seconds), ("bare", least))})
        print(json.dumps(rows[-1]), flush=True)
    times = {name: median(row[name] for row in rows) for name in ("search", "bare")}
    about = {
        "date": today(),
        "source": source_digest(),
        **describe_device(),
        "torch": torch.__version__,
        "torch_device": torch.cuda.get_device_name() if chosen.device.startswith("cuda") else "cpu",
        "jax": jax.__version__,
        "jax_device": jax.devices()[0].device_kind,
        "iterations": chosen.iterations,
        "ms_per_iteration": times | {"ratio": times["search"] / times["bare"]},
        "turns": rows,
        "last": {"qd_score": result.qd_score, "coverage": result.coverage},
    }
    kind = "h200" if chosen.device.startswith("cuda") else "cpu"
    out = chosen.out or Path(__file__).parent / "results" / f"torch-generator-{kind}.json"
    out.write_text(json.dumps(about, indent=1) + "\n")
    print(json.dumps(about["ms_per_iteration"]))


if __name__ == "__main__":
    main()
