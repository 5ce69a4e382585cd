"""Train the networks of `lsi-digits` and write digits.safetensors and digits_judge.safetensors.

    nice python scripts/train_digits.py --work /tmp/digits      # half an hour on two cores

Needs the extra `train`: the data are the 1,797 handwritten digits of scikit-learn, 8 x 8 pixels, drawn larger in many
ways (`draw_digits.py`). Every stage is kept in --work, and a run that was stopped goes on with the next one.

    generator     the decoder of a variational autoencoder, and the whitened space of its latents with a radius
    classifier    ten digits and "no digit", at first trained on overlays and patchworks of two digits
    rounds        the map is searched against the classifier, for every digit. What the search finds is shown to the
                  classifier, with the opinion of the nearest neighbours among its own digits, and so on
    judge         neighbours among 700 digits that none of this has seen: no part of the training
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from draw_digits import BOLDNESS, freely, load, plainly, split
from safetensors.numpy import load_file, save_file

import dqd
from dqd.latent import LatentDomain, Whitened
from dqd.latent.problems import digits
from dqd.latent.problems.digits import SIZE, Classifier, Decoder, Strokes, forward, logits
from dqd.latent.problems.scores import grid
from dqd.latent.scorers.neighbours import Neighbours, normalised
from dqd.types import replace

LATENT, BATCH, NONE = 16, 128, 10
WITHIN = 0.95  # share of the training latents that lie within the radius of the space
PAIRS = (("ink", "slant"), ("width", "slant"), ("height", "ink"))  # maps that are searched in a round
KEPT = 400  # elites of a map that the classifier is shown
REAL = 0.01  # share of real digits that may lie beyond "far"
HOME = Path(__file__).parents[1] / "src" / "dqd" / "latent" / "problems"

Weights = Any
Batches = Iterator[Any]


# Networks -------------------------------------------------------------------------------------------------------------


def dense(key: jax.Array, sizes: list[int]) -> Weights:
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return tuple((jax.random.normal(key, (a, b)) * jnp.sqrt(1.7 / a), jnp.zeros(b)) for key, a, b in pairs)


def convolutional(key: jax.Array) -> Weights:
    """Two convolutions that halve the size, then dense layers."""
    first, second, third = jax.random.split(key, 3)
    kernels = ((first, (5, 5, 1, 16)), (second, (3, 3, 16, 32)))
    layers = tuple((jax.random.normal(k, s) * jnp.sqrt(2 / np.prod(s[:3])), jnp.zeros(s[3])) for k, s in kernels)
    return (*layers, *dense(third, [7 * 7 * 32, 64, 11]))


def convolve(x: jax.Array, weight: jax.Array, stride: int, padding: int) -> jax.Array:
    """As the library's, whose weights are frozen. By slices: XLA's gradient of a kernel is slow on a CPU."""
    size, taps = (x.shape[1] + 2 * padding - len(weight)) // stride + 1, range(len(weight))
    x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    end = stride * (size - 1) + 1
    seen = jnp.stack([x[:, i : i + end : stride, j : j + end : stride] for i in taps for j in taps], axis=3)
    return jnp.einsum("bhwtc,tco->bhwo", seen, weight.reshape(-1, *weight.shape[2:]))


def train(
    loss: Callable[..., jax.Array], weights: Weights, steps: int, batches: Batches, rate: float = 2e-3
) -> Weights:
    """Adam with a cosine schedule."""
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, steps))

    @jax.jit
    def step(weights: Weights, state: Any, batch: Any, key: jax.Array) -> Any:
        value, slope = jax.value_and_grad(loss)(weights, batch, key)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(weights, updates), state, value

    state = optimizer.init(weights)
    for i in range(steps):
        weights, state, value = step(weights, state, next(batches), jax.random.fold_in(jax.random.key(1), i))
        if i % 1000 == 0 or i + 1 == steps:
            print(f"  step {i:5d}  loss {float(value):.4f}", flush=True)
    return weights


def shuffled(seed: int, size: int, *arrays: np.ndarray) -> Batches:
    random = np.random.default_rng(seed)
    while True:
        chosen = random.integers(0, len(arrays[0]), size)
        yield tuple(jnp.asarray(array[chosen]) for array in arrays)


# Generator ------------------------------------------------------------------------------------------------------------


def autoencoder_loss(weights: Weights, batch: Any, key: jax.Array) -> jax.Array:
    """Minus the evidence lower bound, in nats per image."""
    flat = batch[0].reshape(len(batch[0]), -1)
    mean, log_variance = jnp.split(forward(weights["encoder"], flat), 2, axis=1)
    latents = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
    bits = optax.sigmoid_binary_cross_entropy(forward(weights["decoder"], latents), flat).sum(axis=1)
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - 1 - log_variance, axis=1)
    return jnp.mean(bits + divergence)


def generator(images: np.ndarray, steps: int) -> dict[str, Any]:
    first, second = jax.random.split(jax.random.key(0))
    weights = {
        "encoder": dense(first, [SIZE * SIZE, 512, 256, 2 * LATENT]),
        "decoder": dense(second, [LATENT, 256, 512, SIZE * SIZE]),
    }
    weights = train(autoencoder_loss, weights, steps, shuffled(1, BATCH, images))
    means = forward(weights["encoder"], jnp.asarray(images.reshape(len(images), -1)))[:, :LATENT]
    space = Whitened.fit(means, LATENT, slope=1.0)
    lengths = np.linalg.norm(space.solutions(means), axis=1)
    radius = np.quantile(lengths, WITHIN)
    print(f"  {WITHIN:.0%} of the latents lie within {radius:.2f}, half of them within {np.median(lengths):.2f}")
    return {"decoder": weights["decoder"], "mean": space.mean, "axes": space.axes, "radius": np.float32([radius])}


# Classifier -----------------------------------------------------------------------------------------------------------


def classifier_loss(weights: Weights, batch: Any, key: jax.Array) -> jax.Array:
    """Cross-entropy: on real digits with smoothed labels, on things that are none, on what a search has found."""
    images, labels, found, opinions = batch
    other, noise, kind = jax.random.split(key, 3)
    order = jax.random.permutation(other, len(images))
    mate, differs = images[order], labels[order] != labels
    left = jnp.arange(SIZE) < SIZE // 2
    halves = jnp.where(left, images, mate), jnp.where(left[:, None], images, mate)
    mixed = (jnp.maximum(images, mate), (images + mate) / 2, *halves)
    none = jnp.choose(jax.random.randint(kind, (len(images), 1, 1), 0, len(mixed)), mixed, mode="clip")
    every = jnp.concatenate([images, none, found])
    amount, grain = jax.random.split(noise)  # some of all kinds: it must not tell what is a digit
    amounts = jax.random.uniform(amount, (len(every), 1, 1), maxval=0.15)
    outputs = logits(weights, every + amounts * jax.random.normal(grain, every.shape), convolve)
    hard = jax.nn.one_hot(jnp.concatenate([labels, jnp.full(len(none), NONE)]), 11)
    targets = jnp.concatenate([optax.smooth_labels(hard, 0.02), opinions])
    weight = jnp.concatenate([jnp.ones(len(labels)), 0.75 * differs, jnp.ones(len(found))])
    return jnp.sum(weight * optax.softmax_cross_entropy(outputs, targets)) / jnp.sum(weight)


def joined(real: Batches, found: Batches) -> Batches:
    while True:
        yield (*next(real), *next(found))


# Rounds ---------------------------------------------------------------------------------------------------------------


def neighbours(images: np.ndarray, labels: np.ndarray, tried: np.ndarray, answers: np.ndarray) -> Neighbours:
    """A judge that knows these digits, and how far real ones, tried, lie from it."""
    count = min(int(np.sum(labels == digit)) for digit in range(10))
    chosen = [np.flatnonzero(labels == digit)[:count] for digit in range(10)]
    drawn = np.stack([[plainly(images[i], bold) for i in one for bold in BOLDNESS] for one in chosen])
    small = np.asarray(jax.jit(normalised)(drawn.reshape(-1, SIZE, SIZE))).reshape(
        10, -1, normalised(drawn[0, :1]).size
    )
    judge = Neighbours(np.round(255 * small).astype(np.uint8), 1.0, 1.0)
    distances = np.asarray(jax.jit(judge.distances)(tried))
    far = np.quantile(distances[np.arange(len(answers)), answers], 1 - REAL)
    scales = np.geomspace(0.05, 2, 40)
    scores = [jax.nn.log_softmax(-np.column_stack([distances, np.full(len(answers), far)]) / s) for s in scales]
    likely = [float(np.mean(np.asarray(score)[np.arange(len(answers)), answers])) for score in scores]
    judge = replace(judge, scale=float(scales[int(np.argmax(likely))]), far=float(far))
    read = np.mean(np.argmin(distances, axis=1) == answers)
    print(f"  neighbours: {read:.1%} of {len(tried)} others read, scale {judge.scale:.2f}, far {far:.2f}")
    return judge


def searched(made: dict[str, Any], classifier: Weights, seed: int, iterations: int) -> np.ndarray:
    """What maps of all digits hold, by this classifier. One program serves all digits: their outputs are exchanged."""
    space = Whitened(made["mean"], made["axes"], 1.0, 1.0, radius=float(made["radius"][0]))
    found = []
    for measures in PAIRS:
        cells = grid(measures, digits.SCORES, 70)
        for digit in range(10):
            order = np.r_[digit, np.delete(np.arange(11), digit)]
            weight, bias = classifier[-1]
            turned = (*classifier[:-1], (weight[:, order], bias[order]))
            domain = LatentDomain(
                space, Decoder(made["decoder"]), (Classifier(turned), Strokes()), "digit-0", measures, images=256
            )
            result = dqd.illuminate(
                *(domain, dqd.cma_mega(sigma=0.5, batch_size=36), cells),
                x0=jnp.zeros(LATENT),
                bounds=space.bounds,
                iterations=iterations,
                seed=100 * seed + digit,
                progress=False,
            )
            some = np.random.default_rng(seed).permutation(len(result.elites))[:KEPT]
            found.append(_draw(domain, jnp.asarray(result.elites.solutions[some])))
    return np.concatenate(found)


_draw = jax.jit(
    lambda domain, solutions: (domain.generator.images(domain.space.latents(solutions), None)[:, 0] + 1) / 2
)


def opinions_of(judge: Neighbours, ink: np.ndarray) -> np.ndarray:
    """Its probabilities (b, 11), the last of "no digit", a little smoothed."""
    scores = jax.jit(lambda judge, ink: judge.scores(2 * ink[:, None] - 1))
    digit = np.exp(np.concatenate([scores(judge, part) for part in np.array_split(ink, 1 + len(ink) // 2000)])[:, :10])
    every = np.column_stack([digit, np.maximum(1 - digit.sum(axis=1), 0)])
    return (0.98 * every + 0.02 / 11).astype(np.float32)


# Stages ---------------------------------------------------------------------------------------------------------------


class Stages:
    """Each is made once and kept as a file."""

    def __init__(self, work: Path) -> None:
        self.work = work
        work.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, make: Callable[[], Weights]) -> Weights:
        path = self.work / f"{name}.safetensors"
        if not path.exists():
            print(f"{name}", flush=True)
            leaves, structure = jax.tree.flatten(make())
            save_file({str(i): np.ascontiguousarray(leaf) for i, leaf in enumerate(leaves)}, path.with_suffix(".tmp"))
            path.with_suffix(".json").write_text(json.dumps(_plain(jax.tree.unflatten(structure, range(len(leaves))))))
            path.with_suffix(".tmp").rename(path)
        arrays = load_file(path)
        return jax.tree.map(lambda i: arrays[str(i)], json.loads(path.with_suffix(".json").read_text()))


def _plain(tree: Any) -> Any:
    """Tuples as lists: as JSON reads them back."""
    if isinstance(tree, dict):
        return {name: _plain(part) for name, part in tree.items()}
    return [_plain(part) for part in tree] if isinstance(tree, tuple | list) else tree


def drawings(images: np.ndarray, labels: np.ndarray, seed: int, copies: int) -> dict[str, np.ndarray]:
    random, which = np.random.default_rng(seed), np.repeat(np.arange(len(labels)), copies)
    return {"images": np.stack([freely(images[i], random) for i in which]), "labels": labels[which]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the stages")
    parser.add_argument("--copies", type=int, default=20, help="drawings of each digit")
    parser.add_argument("--steps", type=int, default=12_000, help="of the generator; the classifier takes a third")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=500, help="of every search of a round")
    parser.add_argument("--out", type=Path, default=HOME)
    chosen = parser.parse_args()

    stage, (images, labels) = Stages(chosen.work), load()
    seen, kept = split(labels)
    drawn = stage("drawings", lambda: drawings(images[seen], labels[seen], 1, chosen.copies))
    tried = stage("tried", lambda: drawings(images[seen], labels[seen], 2, 1))
    made = stage("generator", lambda: generator(drawn["images"], chosen.steps))

    real = shuffled(2, BATCH, drawn["images"], drawn["labels"])
    nothing = shuffled(3, 0, np.zeros((1, SIZE, SIZE), np.float32), np.zeros((1, 11), np.float32))
    first = convolutional(jax.random.key(2))
    network = stage("classifier", lambda: train(classifier_loss, first, chosen.steps // 3, joined(real, nothing)))
    known, others = split(labels[seen])[::-1]
    mine = {name: tried[name][others] for name in ("images", "labels")}
    own = neighbours(images[seen][known], labels[seen][known], mine["images"], mine["labels"])
    pool: list[tuple[np.ndarray, np.ndarray]] = []
    for number in range(1, chosen.rounds + 1):
        network = against_the_map(stage, number, made, network, own, pool, real, chosen)
    write(made, network, neighbours(images[kept], labels[kept], tried["images"], tried["labels"]), chosen.out)
    test = drawings(images[kept], labels[kept], 3, 1)
    read = np.asarray(jax.jit(logits)(network, test["images"]))
    correct, none = np.argmax(read[:, :10], axis=1) == test["labels"], np.argmax(read, axis=1) == NONE
    print(f"{np.mean(correct):.1%} of {len(read)} unseen digits read correctly, {np.mean(none):.1%} taken for none")


def against_the_map(
    stage: Stages,
    number: int,
    made: dict[str, Any],
    network: Weights,
    own: Neighbours,
    pool: list[tuple[np.ndarray, np.ndarray]],
    real: Batches,
    chosen: argparse.Namespace,
) -> Weights:
    """One round: what the search finds with this classifier is put into the pool, and the classifier learns of it."""
    found = stage(f"found-{number}", lambda: {"images": searched(made, network, number, chosen.iterations)})["images"]
    pool.append((found, opinions_of(own, found)))
    print(f"round {number}: {np.mean(pool[-1][1].argmax(1) == NONE):.1%} of {len(found)} found are no digit")
    shown = shuffled(10 + number, BATCH, *(np.concatenate(part) for part in zip(*pool, strict=True)))
    steps, batches = chosen.steps // 8, joined(real, shown)
    return stage(f"classifier-{number}", lambda: train(classifier_loss, network, steps, batches, 1e-3))


def write(made: dict[str, Any], classifier: Weights, judge: Neighbours, out: Path) -> None:
    tensors = {f"space.{name}": np.asarray(made[name], np.float32) for name in ("mean", "axes", "radius")}
    for name, layers in (("decoder", made["decoder"]), ("classifier", classifier)):
        for i, (weight, bias) in enumerate(layers):
            half, exact = np.asarray(weight, np.float16), np.asarray(bias, np.float32)
            tensors |= {f"{name}.{i}.weight": half, f"{name}.{i}.bias": exact}
    judged = {"references": np.asarray(judge.references), "scale": np.float32([judge.scale, judge.far])}
    for name, content in (("digits", tensors), ("digits_judge", judged)):
        path = out / f"{name}.safetensors"
        save_file({key: np.ascontiguousarray(array) for key, array in content.items()}, path)
        path.chmod(0o644)  # safetensors writes for the owner alone
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
