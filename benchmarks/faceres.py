"""A second opinion on ages: `faceres`, a MobileNet of the npm package @vladmandic/human (MIT), never used in a search.

A graph of TensorFlow.js: its weights are read here, its 27 convolutions written out. It saw other pictures than dlib's
network did and has other weaknesses, so a face that deceives the one rarely deceives the other.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.generators.layers import area_means, resample
from dqd.latent.weights.packages import FetchError, get

NAME, VERSION = "human", "3.3.6"
SHA256 = "425e9c51dbbca0c8934362b170cb0d54c2529c11c654b3c03092b16e9d6ad3f7"
REGISTRY = "https://registry.npmjs.org"
PIXELS = 224
ROWS, COLUMNS = (0.29, 0.87), (0.21, 0.79)  # the same crop as the searched network gets
STRIDED = (2, 4, 6, 12)  # depthwise convolutions that halve the size


def download() -> dict[str, np.ndarray]:
    """The weights by their names in the graph, from the pinned tarball."""
    address = f"{_registry().rstrip('/')}/@vladmandic/{NAME}/-/{NAME}-{VERSION}.tgz"
    try:
        archive = get(address)
    except (OSError, ValueError) as error:
        raise FetchError(f"@vladmandic/{NAME} {VERSION}: cannot be downloaded: {error}") from None
    if hashlib.sha256(archive).hexdigest() != SHA256:
        raise FetchError(f"@vladmandic/{NAME} {VERSION}: the download is cut short or is another file")
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        graph, weights = (package.extractfile(f"package/models/faceres.{end}").read() for end in ("json", "bin"))
    return _weights(json.loads(graph)["weightsManifest"][0]["weights"], weights)


def _registry() -> str:
    if found := os.environ.get("NPM_CONFIG_REGISTRY"):
        return found
    if not shutil.which("npm"):
        return REGISTRY
    done = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.stdout.startswith("http") else REGISTRY


def _weights(manifest: list[dict[str, Any]], raw: bytes) -> dict[str, np.ndarray]:
    """Arrays one after the other, as half precision where the manifest says so."""
    found, at = {}, 0
    for entry in manifest:
        kind = np.dtype(entry.get("quantization", {}).get("dtype") or entry["dtype"])
        count = int(np.prod(entry["shape"]))
        array = np.frombuffer(raw, kind, count, at).reshape(entry["shape"])
        found[entry["name"]] = array.astype(np.float32) if kind == np.float16 else array
        at += count * kind.itemsize
    return found


@jax.jit
def ages(weights: dict[str, Array], images: Array) -> Array:
    """Mean age (b,) over the 100 bins, of images (b, 3, h, w) in [-1, 1]."""
    crops = resample(images, area_means(images.shape[2], PIXELS, *ROWS), area_means(images.shape[3], PIXELS, *COLUMNS))
    x = jnp.moveaxis((crops + 1) * 127.5, 1, -1)
    x = _relu6(_convolution(x, weights["conv1/convolution/merged_input"], 2) + weights["conv1_bn/batchnorm_1/sub"])
    for layer in range(1, 14):
        kernel = weights[f"conv_dw_{layer}/depthwise_kernel"]  # (3, 3, c, 1)
        x = _convolution(x, jnp.swapaxes(kernel, 2, 3), 2 if layer in STRIDED else 1, groups=kernel.shape[2])
        norm = f"conv_dw_{layer}_bn/batchnorm_1"
        x = _relu6(x * weights[f"{norm}/mul"] + weights[f"{norm}/sub"])
        x = _convolution(x, weights[f"conv_pw_{layer}/convolution/merged_input"], 1)
        x = _relu6(x + weights[f"conv_pw_{layer}_bn/batchnorm_1/sub"])
    features = jax.nn.relu(jnp.mean(x, axis=(1, 2)) @ weights["feats/kernel"] + weights["feats/bias"])
    bins = jax.nn.softmax(features @ weights["age_pred/kernel"] + weights["age_pred/bias"], axis=1)
    return bins @ jnp.arange(100.0)


def _convolution(x: Array, kernel: Array, stride: int, groups: int = 1) -> Array:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


def _relu6(x: Array) -> Array:
    return jnp.clip(x, 0, 6)
