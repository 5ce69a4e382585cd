"""CMA-MEGA (Adam) on the paper's latent space illumination: StyleGAN at 1024 pixels, CLIP ViT-B/32, random weights.

    python benchmarks/stylegan.py                       one configuration through `illuminate`
    python benchmarks/stylegan.py --breakdown           also the parts of an iteration
    python benchmarks/stylegan.py --authors-way         also float32 and three separate jacobian passes
    python benchmarks/stylegan.py --sweep               several precisions and numbers of images per pass
    python benchmarks/stylegan.py --dtypes bfloat16 float32 --images 12 18 37    every combination of these

An iteration makes and judges 35 images, and one more with three gradients. Times leave compilation out; weights being
random, the scores mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

import dqd
from device import describe_device, source_digest, today
from dqd.compiler import flags
from dqd.domains.domain import Domain
from dqd.latent import LatentDomain
from dqd.latent.generators import stylegan
from dqd.latent.scorers.text import KINDS, PromptScorer, unit
from dqd.latent.spaces import Identity
from dqd.latent.weights import clip_weights
from dqd.types import Evaluation, pytree, replace

flags.for_networks()  # as lsi-stylegan does

BRANCHES = 35  # images of an iteration beside the one with gradients
PROMPTS = ("objective", "first", "second")  # their texts are random as well
SWEEP = (["bfloat16", "float16", "float32"], [18, 37])  # dtypes, images per pass
SMALL_CLIP = {"image": (64, 2), "text": (64, 1), "patch": 16, "positions": 17, "vocabulary": 64, "features": 32}


@pytree
class AuthorsWay(Domain):
    """Three forward and backward passes for a jacobian, each with noise of its own."""

    domain: LatentDomain

    @property
    def transform(self) -> tuple[float, float]:
        return self.domain.transform

    def score(self, x: Array) -> tuple[Array, Array]:
        return self.domain.score(x)

    def evaluate(self, solutions: Array) -> Evaluation:
        return self.domain.evaluate(solutions)

    def evaluate_with_jacobian(self, solutions: Array) -> Evaluation:
        def one(row: int) -> tuple[Array, Array]:
            domain = replace(self.domain, salt=row)
            return jax.value_and_grad(lambda x: domain.outputs(x)[0, row])(solutions)

        values, gradients = zip(*(one(row) for row in range(len(PROMPTS))), strict=True)
        outputs = jnp.stack(values)[None]
        return Evaluation(self.store(outputs[:, 0]), outputs[:, 1:], jnp.stack(gradients, axis=1))


def make_domain(arguments: argparse.Namespace, dtype: str, images: int) -> LatentDomain:
    generator = stylegan.from_tensors(stylegan.random_tensors(arguments.resolution, width=arguments.width), dtype)
    sizes: dict[str, Any] = SMALL_CLIP if arguments.small_clip else {"text": (64, 1), "vocabulary": 64}
    model = clip_weights.from_tensors(clip_weights.random_tensors(**sizes), dtype)
    texts = jax.random.normal(jax.random.key(1), (len(PROMPTS), model.image.projection.shape[1]))
    scorer = PromptScorer(model.image, unit(texts), PROMPTS)
    return LatentDomain(
        Identity(generator.latent_shape[0]),
        generator,
        (scorer,),
        f"-{PROMPTS[0]}",
        PROMPTS[1:],
        stored=KINDS["paper"].stored,
        images=images,
        fresh=not arguments.fixed_noise,
    )


def time_search(domain: Domain, arguments: argparse.Namespace) -> dict[str, float]:
    """ms per iteration of `illuminate`, the fastest of the rounds; a first round compiles."""
    emitter = dqd.cma_mega_adam(sigma=0.002, learning_rate=0.002, batch_size=36, rank_one="dqd2021")
    grid = dqd.Grid((0.0, 0.0), (6.0, 6.0), (200, 200))
    n = stylegan_size(domain)
    length = arguments.iterations

    def run(iterations: int) -> dqd.Result:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # random weights: measures lie anywhere
            return dqd.illuminate(
                domain, emitter, grid, x0=jnp.zeros(n), iterations=iterations, seed=0, progress=False, chunk=length
            )

    first = run(length)
    rounds = [run(length) for _ in range(arguments.rounds)]
    return {
        "ms_per_iteration": 1e3 * min(result.seconds for result in rounds) / length,
        "all_ms": [1e3 * result.seconds / length for result in rounds],
        "compile_seconds": first.compile_seconds,
        "not_finite": rounds[-1].nonfinite,
    }


def stylegan_size(domain: Domain) -> int:
    return (domain.domain if isinstance(domain, AuthorsWay) else domain).space.n


def time_parts(domain: LatentDomain, rounds: int = 10) -> dict[str, float]:
    """ms of the parts of an iteration, each compiled alone."""
    branches = jax.random.normal(jax.random.key(0), (BRANCHES, domain.space.n))
    keys = jax.random.split(jax.random.key(0), BRANCHES) if domain.fresh else None
    synthesis = jax.jit(lambda generator, latents, keys: generator.images(latents, keys))
    judge = jax.jit(lambda scorer, images: scorer.scores(images))
    images = synthesis(domain.generator, branches, keys)
    return {
        "synthesis_of_35": milliseconds(synthesis, domain.generator, branches, keys, rounds=rounds),
        "resize_and_clip_of_35": milliseconds(judge, domain.scorers[0], images, rounds=rounds),
        "jacobian_of_1": milliseconds(
            jax.jit(lambda domain, x: domain.evaluate_with_jacobian(x)), domain, branches[:1], rounds=rounds
        ),
    }


def milliseconds(function: Callable[..., Any], *arguments: Any, rounds: int) -> float:
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def peak_bytes() -> int | None:
    """The most memory that was in use at once since the program began."""
    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resolution", type=int, default=1024)
    parser.add_argument("--width", type=float, default=1.0, help="share of the channels, for a try on a CPU")
    parser.add_argument("--small-clip", action="store_true", help="a tiny CLIP, for a try on a CPU")
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16"])
    parser.add_argument("--images", nargs="+", type=int, default=[37], help="images per pass")
    parser.add_argument("--iterations", type=int, default=25, help="of a round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--fixed-noise", action="store_true", help="instead of fresh noise, which the paper had")
    parser.add_argument("--breakdown", action="store_true")
    parser.add_argument("--authors-way", action="store_true")
    parser.add_argument("--sweep", action="store_true", help=f"--dtypes {' '.join(SWEEP[0])} --images 18 37")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/stylegan.json"))
    arguments = parser.parse_args()
    if arguments.sweep:
        arguments.dtypes, arguments.images = SWEEP
    return arguments


def main() -> None:
    arguments = parse()
    rows: list[dict[str, Any]] = []

    def note(**row: Any) -> None:
        rows.append(row | {"peak_bytes_so_far": peak_bytes()})
        print(json.dumps(rows[-1]), flush=True)
        write(arguments, rows)

    for dtype, images in itertools.product(arguments.dtypes, arguments.images):
        domain = make_domain(arguments, dtype, images)
        note(way="ours", dtype=dtype, images=images, **time_search(domain, arguments))
        if arguments.breakdown:
            note(way="ours, in parts", dtype=dtype, images=images, ms=time_parts(domain))
    if arguments.authors_way:
        domain = make_domain(arguments, "float32", images=37)
        note(way="authors'", dtype="float32", images=37, **time_search(AuthorsWay(domain), arguments))


def write(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """After every row, so that a run cut short has said what it found."""
    device = jax.devices()[0]
    about = {
        "date": today(),
        "device": device.device_kind,
        "platform": device.platform,
        "jax": jax.__version__,
        "dqd": dqd.__version__,
        "flags": os.environ.get("XLA_FLAGS", ""),
        "matmul_precision": jax.config.jax_default_matmul_precision,  # None: TF32 for float32 on a GPU
        "source": source_digest(),
        **describe_device(),
        "settings": {name: value for name, value in vars(arguments).items() if name != "out"},
        "rows": rows,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    main()
