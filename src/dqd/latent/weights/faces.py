"""From the arrays of the packages to ours: names of our own, normalisations folded into convolutions. No JAX."""

from __future__ import annotations

import re

import numpy as np

from dqd.latent.weights.readers import Arrays

EPSILON = 1e-5  # of PyTorch's batch normalisation
LEVELS = 7
FACERES_BLOCKS = 13

# MobileStyleGAN -------------------------------------------------------------------------------------------------------


def generator(mapping: Arrays, synthesis: Arrays) -> Arrays:
    """The mapping's layers in order; the synthesis by name. Weights there are demodulated and noise scaled already."""
    ours: Arrays = {}
    for kind, shape in (("weight", (512, 512)), ("bias", (512,))):
        ours |= {f"mapping.{i}.{kind}": a for i, a in enumerate(a for a in mapping.values() if a.shape == shape)}
    noise = iter(a[0, 0] for a in synthesis.values() if a.ndim == 4 and a.shape[:2] == (1, 1) and a.size > 1)
    weights = iter(a for name, a in synthesis.items() if re.fullmatch(r"Mul_\d+_copy", name))
    ours |= {"start.constant": synthesis["m.input.input"][0], "start.weight": _channels_last(next(weights))}
    ours |= _finish(synthesis, "m.conv1", "start", next(noise)) | _modulation(synthesis, "m.conv1.conv", "start", 9)
    for level in range(LEVELS):
        theirs, name = f"m.layers.{level}", f"levels.{level}"
        ours |= _modulation(synthesis, f"{theirs}.up", f"{name}.up", None)
        for conv in ("conv1", "conv2"):
            ours |= _modulation(synthesis, f"{theirs}.{conv}.conv", f"{name}.{conv}", 9)
            ours |= _finish(synthesis, f"{theirs}.{conv}", f"{name}.{conv}", next(noise))
            ours[f"{name}.{conv}.depthwise"] = synthesis[f"{theirs}.{conv}.conv.weight_dw"][:, 0, 0]
            ours[f"{name}.{conv}.pointwise"] = next(weights)[:, :, 0, 0]
    image = f"m.layers.{LEVELS - 1}.to_img"
    ours |= {
        "image.weight": synthesis[f"{image}.conv.weight"][:, :, 0, 0],
        "image.bias": synthesis[f"{image}.bias"].ravel(),
    }
    return ours | _modulation(synthesis, f"{image}.conv", "image", 1)


def _modulation(arrays: Arrays, theirs: str, name: str, taps: int | None) -> Arrays:
    """The dense layer that makes a style; the graph then divides by the root of the fan-in of a full kernel."""
    weight, bias = arrays[f"{theirs}.modulation.weight"], arrays[f"{theirs}.modulation.bias"].ravel()
    scale = np.float32(1 if taps is None else (len(weight) * taps) ** -0.5)
    return {f"{name}.modulation.weight": weight * scale, f"{name}.modulation.bias": bias * scale}


def _finish(arrays: Arrays, theirs: str, name: str, noise: np.ndarray) -> Arrays:
    return {f"{name}.bias": arrays[f"{theirs}.bias"].ravel(), f"{name}.noise": noise}


# Age and gender -------------------------------------------------------------------------------------------------------


def dlib(arrays: Arrays, names: tuple[str, ...]) -> Arrays:
    """Convolutions of an age or gender network by our names, in the order they run; then the dense layers."""
    layers = sorted({int(name.split("_")[1]) for name in arrays}, reverse=True)
    kernels = [i for i in layers if arrays.get(f"layer_{i}_weights", np.empty(0)).ndim == 4]
    ours: Arrays = {}
    for name, i in zip(names, kernels, strict=True):
        scale, offset = arrays[f"layer_{i - 1}_scale"].ravel(), arrays[f"layer_{i - 1}_offset"].ravel()
        ours[f"{name}.weight"] = _channels_last(arrays[f"layer_{i}_weights"]) * scale
        ours[f"{name}.bias"] = arrays[f"layer_{i}_bias"] * scale + offset
    ours |= {"out.weight": arrays["layer_1_weights"], "out.bias": arrays["layer_1_bias"]}
    if "layer_4_weights" in arrays:  # the gender network: its dense layers are each preceded by a factor
        ours |= {
            "dense.weight": arrays["layer_4_weights"] * arrays["layer_5_scalar"],
            "dense.bias": arrays["layer_4_bias"],
        }
        ours["out.weight"] = ours["out.weight"] * arrays["layer_2_scalar"]
    return ours


# The parser -----------------------------------------------------------------------------------------------------------


def parser(arrays: Arrays) -> Arrays:
    """The convolutions that lead to the finest map of classes, each with its batch normalisation folded in."""
    ours = _folded(arrays, "stem", "cp.resnet.conv1", "cp.resnet.bn1")
    for stage in range(4):
        for block in range(2):
            theirs, name = f"cp.resnet.layer{stage + 1}.{block}", f"stages.{stage}.{block}"
            ours |= _folded(arrays, f"{name}.first", f"{theirs}.conv1", f"{theirs}.bn1")
            ours |= _folded(arrays, f"{name}.second", f"{theirs}.conv2", f"{theirs}.bn2")
            if f"{theirs}.downsample.0.weight" in arrays:
                ours |= _folded(arrays, f"{name}.shortcut", f"{theirs}.downsample.0", f"{theirs}.downsample.1")
    for size in (16, 32):
        theirs = f"cp.arm{size}"
        ours |= _folded(arrays, f"refine{size}.conv", f"{theirs}.conv.conv", f"{theirs}.conv.bn")
        ours |= _folded(arrays, f"refine{size}.attention", f"{theirs}.conv_atten", f"{theirs}.bn_atten")
    named = {"head32": "cp.conv_head32", "head16": "cp.conv_head16", "average": "cp.conv_avg"}
    named |= {"fuse.conv": "ffm.convblk", "out.conv": "conv_out.conv"}
    for name, theirs in named.items():
        ours |= _folded(arrays, name, f"{theirs}.conv", f"{theirs}.bn")
    for name, theirs in {
        "fuse.squeeze": "ffm.conv1",
        "fuse.excite": "ffm.conv2",
        "out.classes": "conv_out.conv_out",
    }.items():
        ours |= _folded(arrays, name, theirs, None)
    return ours


# The second age network -----------------------------------------------------------------------------------------------


def faceres(arrays: Arrays) -> Arrays:
    """Our names; the factors of normalisations go into the depthwise kernels."""
    ours = {
        "stem.weight": arrays["conv1/convolution/merged_input"],
        "stem.bias": arrays["conv1_bn/batchnorm_1/sub"],
    }
    for i in range(FACERES_BLOCKS):
        kernel, norm = arrays[f"conv_dw_{i + 1}/depthwise_kernel"], f"conv_dw_{i + 1}_bn/batchnorm_1"
        ours |= {
            f"blocks.{i}.depthwise": kernel[..., 0].transpose(2, 0, 1) * arrays[f"{norm}/mul"][:, None, None],
            f"blocks.{i}.shift": arrays[f"{norm}/sub"],
            f"blocks.{i}.pointwise": arrays[f"conv_pw_{i + 1}/convolution/merged_input"][0, 0].T,
            f"blocks.{i}.bias": arrays[f"conv_pw_{i + 1}_bn/batchnorm_1/sub"],
        }
    for name, theirs in (("features", "feats"), ("age", "age_pred")):
        ours |= {f"{name}.weight": arrays[f"{theirs}/kernel"], f"{name}.bias": arrays[f"{theirs}/bias"]}
    return ours


def _folded(arrays: Arrays, name: str, conv: str, norm: str | None) -> Arrays:
    weight = _channels_last(arrays[f"{conv}.weight"])
    if norm is None:
        return {f"{name}.weight": weight, f"{name}.bias": np.zeros(weight.shape[-1], np.float32)}
    scale = arrays[f"{norm}.weight"] / np.sqrt(arrays[f"{norm}.running_var"] + EPSILON)
    bias = arrays[f"{norm}.bias"] - scale * arrays[f"{norm}.running_mean"]
    return {f"{name}.weight": weight * scale, f"{name}.bias": bias}


def _channels_last(weight: np.ndarray) -> np.ndarray:
    """(out, in, k, k) -> (k, k, in, out)"""
    return weight.transpose(2, 3, 1, 0)
