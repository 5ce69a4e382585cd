"""A face parser, BiSeNet on ResNet-18 (Yu et al. 2018), that names the part each pixel belongs to, in 19 classes.

Its classes become soft masks: how much of the frame is hair, what colour it has, how much glasses or hat is seen.
Batch normalisation is folded into the convolutions when the weights are fetched.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dqd.latent.generators.layers import area_means, convolution, convolution_shapes, linear_weights, resample
from dqd.types import pytree, static

CLASSES, BACKGROUND, SKIN, GLASSES, HAIR, HAT = 19, 0, 1, 6, 17, 18
MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, RGB in 0..1
PIXELS = 256  # the frame is shrunk to this; smaller ones lose glasses
MASK = 64  # masks and colours are compared at this size
LEAST_HAIR = 0.01  # of the frame: below it, the colour of hair fades to zero
CONTROLS = {"hair-to-skin": SKIN, "hair-to-background": BACKGROUND}  # what the colour of hair is compared with
DARKEST = 0.005  # added to every channel, so that black has a colour, too
LUMINANCE = (0.299, 0.587, 0.114)
COPPER = (0.60, 0.28, 0.15)  # the red of hair; more red than that is paint
STAGES = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))  # in, out, stride

Weights = dict[str, Any]


def convolutions() -> dict[str, tuple[int, int, int]]:
    """(out, in, kernel) of every convolution by its dotted name."""
    table = {"stem": (64, 3, 7)}
    for stage, (before, channels, stride) in enumerate(STAGES):
        for block in range(2):
            name = f"stages.{stage}.{block}"
            table[f"{name}.first"] = (channels, channels if block else before, 3)
            table[f"{name}.second"] = (channels, channels, 3)
            if stride == 2 and block == 0:
                table[f"{name}.shortcut"] = (channels, before, 1)
    for name, channels in (("refine16", 256), ("refine32", 512)):
        table |= {f"{name}.conv": (128, channels, 3), f"{name}.attention": (128, 128, 1)}
    table |= {"head32": (128, 128, 3), "head16": (128, 128, 3), "average": (128, 512, 1)}
    table |= {"fuse.conv": (256, 256, 1), "fuse.squeeze": (64, 256, 1), "fuse.excite": (256, 64, 1)}
    return table | {"out.conv": (256, 256, 3), "out.classes": (CLASSES, 256, 1)}


def shapes() -> dict[str, tuple[int, ...]]:
    return convolution_shapes((name, *sizes) for name, sizes in convolutions().items())


def logits(weights: Weights, images: Array) -> Array:
    """(b, 19, h / 8, w / 8) of normalised images (b, 3, h, w), whose sides are multiples of 32."""
    eighth, sixteenth, half_of_that = _backbone(weights, jnp.moveaxis(images, 1, -1))
    average = jax.nn.relu(_conv(weights["average"], _mean(half_of_that)))
    deep = _doubled(_refined(weights["refine32"], half_of_that) + average)
    deep = jax.nn.relu(_conv(weights["head32"], deep))
    context = _doubled(_refined(weights["refine16"], sixteenth) + deep)
    context = jax.nn.relu(_conv(weights["head16"], context))
    fused = _fused(weights["fuse"], jnp.concatenate([eighth, context], axis=-1))
    return jnp.moveaxis(_conv(weights["out"]["classes"], jax.nn.relu(_conv(weights["out"]["conv"], fused))), -1, 1)


def _backbone(weights: Weights, images: Array) -> tuple[Array, Array, Array]:
    """ResNet-18: features at 1/8, 1/16 and 1/32 of the size."""
    x = jax.nn.relu(_conv(weights["stem"], images, stride=2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    found = []
    for stage, (_, _, stride) in enumerate(STAGES):
        for block in range(2):
            x = _block(weights["stages"][str(stage)][str(block)], x, 1 if block else stride)
        found.append(x)
    return found[1], found[2], found[3]


def _block(block: Weights, x: Array, stride: int) -> Array:
    y = jax.nn.relu(_conv(block["first"], x, stride))
    shortcut = _conv(block["shortcut"], x, stride) if "shortcut" in block else x
    return jax.nn.relu(shortcut + _conv(block["second"], y))


def _refined(part: Weights, x: Array) -> Array:
    x = jax.nn.relu(_conv(part["conv"], x))
    return x * jax.nn.sigmoid(_conv(part["attention"], _mean(x)))


def _fused(part: Weights, x: Array) -> Array:
    x = jax.nn.relu(_conv(part["conv"], x))
    attention = jax.nn.relu(_conv(part["squeeze"], _mean(x)))
    return x + x * jax.nn.sigmoid(_conv(part["excite"], attention))


def _conv(part: Weights, x: Array, stride: int = 1) -> Array:
    if len(part["weight"]) == 1:
        return x[:, ::stride, ::stride] @ part["weight"][0, 0] + part["bias"]
    return convolution(x, part["weight"], stride, len(part["weight"]) // 2) + part["bias"]


def _mean(x: Array) -> Array:
    return jnp.mean(x, axis=(1, 2), keepdims=True)


def _doubled(x: Array) -> Array:
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)


def masks(weights: Weights, images: Array) -> Array:
    """Probabilities (b, 19, 64, 64) of the parts, of images (b, 3, h, w) in [-1, 1]."""
    means, deviations = (jnp.asarray(colour, images.dtype)[:, None, None] for colour in (MEANS, DEVIATIONS))
    found = logits(weights, ((images + 1) / 2 - means) / deviations)
    found = found.astype(jnp.promote_types(images.dtype, jnp.float32))
    place = linear_weights(found.shape[-1], MASK, images.shape[-1])
    return jax.nn.softmax(resample(found, place, place), axis=1)


@pytree
class FaceParser:
    """Amounts in percent of the frame, colours of hair in percent of full scale; one forward pass for all of them."""

    weights: Weights
    names: tuple[str, ...] = static(
        default=("hair-area", "hair-redness", "hair-darkness", "glasses", "hat", "hair-to-skin", "hair-to-background")
    )
    dtype: str = static(default="float32")

    def scores(self, images: Array) -> Array:
        frame = _framed(images, PIXELS)
        cast = jax.tree.map(lambda x: x.astype(self.dtype), self.weights)
        parts = masks(cast, frame.astype(self.dtype))
        colours = (_framed(images, MASK) + 1) / 2
        return jnp.stack([_score(name, parts, colours) for name in self.names], axis=1)


def _framed(images: Array, pixels: int) -> Array:
    height, width = images.shape[2:]
    if (height, width) == (pixels, pixels):
        return images
    return resample(images, area_means(height, pixels), area_means(width, pixels))


def _score(name: str, parts: Array, colours: Array) -> Array:
    areas = {"hair-area": HAIR, "glasses": GLASSES, "hat": HAT}
    if name in areas:
        return 100 * jnp.mean(parts[:, areas[name]], axis=(1, 2))
    area, colour = _coloured(parts[:, HAIR], colours)
    if name in CONTROLS:
        there, beside = _coloured(parts[:, CONTROLS[name]], colours)
        redder = _redness(colour) - _redness(beside)
        return 100 * redder * (area / (area + LEAST_HAIR)) * (there / (there + LEAST_HAIR))
    if name == "hair-redness":
        nearness = 1 - jnp.sqrt(jnp.sum((colour - jnp.asarray(COPPER)) ** 2, axis=1) + 1e-6)
    else:
        nearness = 1 - colour @ jnp.asarray(LUMINANCE)
    return 100 * nearness * area / (area + LEAST_HAIR)  # fades to zero where there is hardly any hair


def _coloured(mask: Array, colours: Array) -> tuple[Array, Array]:
    """The share of the frame that a part takes, (b,), and its mean colour, (b, 3)."""
    area = jnp.mean(mask, axis=(1, 2))
    return area, jnp.mean(mask[:, None] * colours, axis=(2, 3)) / (area[:, None] + 1e-6)


def _redness(colour: Array) -> Array:
    """log(red / green). Another light adds the same to all parts of a picture, so a difference is free of it."""
    return jnp.log((colour[:, 0] + DARKEST) / (colour[:, 1] + DARKEST))
