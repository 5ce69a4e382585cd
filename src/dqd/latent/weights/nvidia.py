"""NVIDIA's StyleGAN2 for PyTorch (of stylegan2-ada-pytorch and stylegan3) by the names of rosinality's.

Both compute the same. NVIDIA's weights lack axes of length 1, and its filters sum to 1 instead of 4.
"""

from __future__ import annotations

import re

from dqd.latent.generators import stylegan2
from dqd.latent.weights import files

SIGNATURE = "synthesis.b4.conv1.affine.weight"  # a tensor that every such checkpoint has
NOT_USED = "mapping.w_avg"  # the average latent: truncation alone would need it
FILTER = "resample_filter"
PARTS = {
    "weight": "conv.weight",
    "affine.weight": "conv.modulation.weight",
    "affine.bias": "conv.modulation.bias",
    "noise_strength": "noise.weight",
}


def renamed(tensors: files.Tensors) -> files.Tensors:
    """The same tensors; those of an unknown name keep it, for a message to tell."""
    found = {
        new_name(name): 4 * array if name.endswith(FILTER) else array
        for name, array in tensors.items()
        if name != NOT_USED
    }
    shapes = stylegan2.shapes_like({name: array.shape for name, array in found.items()})
    for name, shape in shapes.items():
        if name in found and _without_ones(found[name].shape) == _without_ones(shape):
            found[name] = found[name].reshape(shape)
    return found


def new_name(name: str) -> str:
    if match := re.fullmatch(r"mapping\.fc(\d+)\.(weight|bias)", name):
        return f"style.{int(match[1]) + 1}.{match[2]}"
    match = re.fullmatch(r"synthesis\.b(\d+)\.(?:(conv0|conv1|torgb)\.)?(.+)", name)
    if match is None or name.endswith(FILTER):
        return name.replace(FILTER, "kernel")
    size, layer, part = match.groups()
    block = int(size).bit_length() - 4  # -1 at 4 x 4, which has but one convolution
    number = 2 * block + (layer == "conv1")
    if part == "const":
        return "input.input"
    if part == "noise_const":
        return f"noises.noise_{number + 1}"
    if layer == "torgb":
        target = "to_rgb1" if block < 0 else f"to_rgbs.{block}"
        return f"{target}.{PARTS.get(part, part)}"
    target = "conv1" if block < 0 else f"convs.{number}"
    return f"{target}.{PARTS.get(part, 'activate.bias' if part == 'bias' else part)}"


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)
