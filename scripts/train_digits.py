"""Train the networks of `lsi-digits` and write src/dqd/latent/problems/digits.safetensors.

    python scripts/train_digits.py            # a few minutes on two cores; needs scikit-learn

The data are the 1,797 handwritten digits of scikit-learn (Alpaydin & Kaynak 1998, UCI, CC BY 4.0), 8 x 8 pixels. They
are drawn at 28 x 28, sheared and thickened at random. The generator is the decoder of a variational autoencoder. The
classifier knows an eleventh class, "no digit", trained on overlays and patchworks of two digits: without it, it would
be sure of anything. A fifth of the digits is held out to measure it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save_file
from scipy import ndimage
from sklearn.datasets import load_digits

from dqd.latent.problems.digits import SIZE, forward, logits
from dqd.latent.spaces import Whitened

LATENT, BATCH = 16, 128
TARGET = Path(__file__).parents[1] / "src" / "dqd" / "latent" / "problems" / "digits.safetensors"


def draw(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """8 x 8 images at 28 x 28 in [0, 1], each with a slant and a thickness of its own."""
    return np.stack([_draw(image, generator.uniform(-0.5, 0.5), generator.uniform(0.25, 0.7)) for image in images])


def _draw(image: np.ndarray, shear: float, threshold: float) -> np.ndarray:
    scale, centre = 10 / SIZE, np.array([5.5, 5.5])  # a frame of 10 x 10 of the old pixels, in one of 12 x 12
    matrix = scale * np.array([[1, 0], [-shear, 1]])
    offset = centre - matrix @ np.full(2, (SIZE - 1) / 2)
    large = ndimage.affine_transform(np.pad(image, 2), matrix, offset, (SIZE, SIZE), order=3)
    return 1 / (1 + np.exp(-14 * (large - threshold)))


def dense(key: jax.Array, sizes: list[int]) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(key, (a, b)) * jnp.sqrt(1.7 / a), jnp.zeros(b))
        for key, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def train(loss: Any, weights: Any, steps: int, batches: Any, key: jax.Array) -> Any:
    """Adam with a cosine schedule."""
    optimizer = optax.adam(optax.cosine_decay_schedule(2e-3, steps))

    @jax.jit
    def step(weights: Any, state: Any, batch: Any, key: jax.Array) -> Any:
        value, slope = jax.value_and_grad(loss)(weights, batch, key)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(weights, updates), state, value

    state = optimizer.init(weights)
    for i in range(steps):
        weights, state, value = step(weights, state, next(batches), jax.random.fold_in(key, i))
        if i % 500 == 0 or i + 1 == steps:
            print(f"  step {i:5d}  loss {float(value):.4f}", flush=True)
    return weights


def autoencoder_loss(weights: Any, images: jax.Array, key: jax.Array) -> jax.Array:
    """Minus the evidence lower bound, in nats per image."""
    flat = images.reshape(len(images), -1)
    mean, log_variance = jnp.split(forward(weights["encoder"], flat), 2, axis=1)
    latents = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
    bits = optax.sigmoid_binary_cross_entropy(forward(weights["decoder"], latents), flat).sum(axis=1)
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - 1 - log_variance, axis=1)
    return jnp.mean(bits + divergence)


def classifier_loss(weights: Any, batch: tuple[jax.Array, jax.Array], key: jax.Array) -> jax.Array:
    """Cross-entropy with smoothed labels, on digits, noisy digits and things that are none."""
    images, labels = batch
    other, noise, side = jax.random.split(key, 3)
    order = jax.random.permutation(other, len(images))
    mate, differs = images[order], labels[order] != labels
    left = jnp.arange(SIZE) < SIZE // 2
    upper = jax.random.bernoulli(side, 0.5, (len(images), 1, 1))
    patchwork = jnp.where(jnp.where(upper, left[:, None], left[None, :]), images, mate)
    none = jnp.concatenate([jnp.maximum(images, mate), 0.5 * (images + mate), patchwork])
    images = images + 0.1 * jax.random.normal(noise, images.shape)
    outputs = logits(weights, jnp.concatenate([images, none]))
    classes = jnp.concatenate([labels, jnp.full(len(none), 10)])
    weight = jnp.concatenate([jnp.full(len(labels), 4.0), jnp.tile(differs, 3)])
    targets = optax.smooth_labels(jax.nn.one_hot(classes, 11), 0.02)
    return jnp.sum(weight * optax.softmax_cross_entropy(outputs, targets)) / jnp.sum(weight)


def shuffled(generator: np.random.Generator, *arrays: np.ndarray) -> Any:
    while True:
        chosen = generator.integers(0, len(arrays[0]), BATCH)
        batch = tuple(jnp.asarray(array[chosen]) for array in arrays)
        yield batch if len(batch) > 1 else batch[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=8, help="drawings of each digit")
    parser.add_argument("--steps", type=int, default=6000, help="of each network")
    parser.add_argument("--out", type=Path, default=TARGET)
    chosen = parser.parse_args()

    generator, key = np.random.default_rng(0), jax.random.key(0)
    digits, labels = load_digits(return_X_y=True)
    digits, held_out = digits.reshape(-1, 8, 8) / 16, generator.permutation(len(labels)) < len(labels) // 5
    copies = np.repeat(np.flatnonzero(~held_out), chosen.copies)
    images = draw(digits[copies], generator).astype(np.float32)
    print(f"{len(images)} drawings of {np.sum(~held_out)} digits")

    first, second, third, fourth = jax.random.split(key, 4)
    weights = {
        "encoder": dense(first, [SIZE * SIZE, 256, 128, 2 * LATENT]),
        "decoder": dense(second, [LATENT, 128, 256, SIZE * SIZE]),
    }
    weights = train(autoencoder_loss, weights, chosen.steps, shuffled(generator, images), third)
    means = forward(weights["encoder"], jnp.asarray(images.reshape(len(images), -1)))[:, :LATENT]
    space = Whitened.fit(means, LATENT, slope=1.0)

    classifier = dense(fourth, [SIZE * SIZE, 128, 11])
    batches = shuffled(generator, images, labels[copies])
    classifier = train(classifier_loss, classifier, chosen.steps, batches, key)
    test = draw(digits[held_out], generator).astype(np.float32)
    read = logits(classifier, jnp.asarray(test))
    correct, none = np.argmax(read[:, :10], axis=1) == labels[held_out], np.argmax(read, axis=1) == 10
    print(f"of {len(test)} held-out digits {np.mean(correct):.1%} read correctly, {np.mean(none):.1%} taken for none")

    tensors = {"space.mean": np.asarray(space.mean), "space.axes": np.asarray(space.axes)}
    for name, layers in (("decoder", weights["decoder"]), ("classifier", classifier)):
        for i, (weight, bias) in enumerate(layers):
            tensors |= {f"{name}.{i}.weight": np.asarray(weight, np.float16), f"{name}.{i}.bias": np.asarray(bias)}
    save_file(tensors, chosen.out)
    chosen.out.chmod(0o644)  # safetensors writes for the owner alone
    print(f"{chosen.out}: {chosen.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
