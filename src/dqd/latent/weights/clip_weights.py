"""The weights of CLIP: names and shapes as in Hugging Face's CLIPModel, for the towers of `clip`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jax import Array

from dqd.latent.scorers.clip import CLIP, EPSILON, Dense, ImageTower, Norm, TextTower, Transformer
from dqd.latent.weights import files

MLP = 4  # times as wide as the rest, in all of OpenAI's


def layer_shapes(width: int, inner: int) -> dict[str, tuple[int, ...]]:
    """Weights of one layer; biases are as long as their first axis."""
    shapes: dict[str, tuple[int, ...]] = {f"self_attn.{part}_proj": (width, width) for part in ("q", "k", "v", "out")}
    shapes |= {f"layer_norm{i}": (width,) for i in (1, 2)}
    return shapes | {"mlp.fc1": (inner, width), "mlp.fc2": (width, inner)}


def expected_shapes(
    *,
    image: tuple[int, int] = (768, 12),  # width, layers
    text: tuple[int, int] = (512, 12),
    patch: int = 32,
    positions: int = 50,
    vocabulary: int = 49_408,
    length: int = 77,
    features: int = 512,
    inner: tuple[int | None, int | None] = (None, None),  # of the MLPs; None: 4 times the width
) -> files.Shapes:
    """Names and shapes of the weights; by default those of ViT-B/32."""
    (i, image_layers), (t, text_layers) = image, text
    shapes: files.Shapes = {
        "logit_scale": (),
        "vision_model.embeddings.class_embedding": (i,),
        "vision_model.embeddings.patch_embedding.weight": (i, 3, patch, patch),
        "vision_model.embeddings.position_embedding.weight": (positions, i),
        "visual_projection.weight": (features, i),
        "text_model.embeddings.token_embedding.weight": (vocabulary, t),
        "text_model.embeddings.position_embedding.weight": (length, t),
        "text_projection.weight": (features, t),
    }
    for norm, width in (("vision_model.pre_layrnorm", i), ("vision_model.post_layernorm", i)):
        shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    shapes |= {"text_model.final_layer_norm.weight": (t,), "text_model.final_layer_norm.bias": (t,)}
    towers = (("vision_model", i, image_layers, inner[0]), ("text_model", t, text_layers, inner[1]))
    for tower, width, layers, wide in towers:
        for number in range(layers):
            for name, shape in layer_shapes(width, wide or MLP * width).items():
                path = f"{tower}.encoder.layers.{number}.{name}"
                shapes |= {f"{path}.weight": shape, f"{path}.bias": shape[:1]}
    return shapes


def shapes_like(found: Mapping[str, tuple[int, ...]]) -> files.Shapes:
    """The expected shapes of a CLIP as large as these weights say; of ViT-B/32 where they say nothing."""
    usual = expected_shapes()

    def shape(name: str) -> tuple[int, ...]:
        return found[name] if len(found.get(name, ())) == len(usual[name]) else usual[name]

    def wide(tower: str) -> int | None:
        return (found.get(f"{tower}.encoder.layers.0.mlp.fc1.weight") or (None,))[0]

    width, _, patch, _ = shape("vision_model.embeddings.patch_embedding.weight")
    vocabulary, text_width = shape("text_model.embeddings.token_embedding.weight")
    return expected_shapes(
        image=(width, layers_of(found, "vision_model")),
        text=(text_width, layers_of(found, "text_model")),
        patch=patch,
        positions=shape("vision_model.embeddings.position_embedding.weight")[0],
        vocabulary=vocabulary,
        length=shape("text_model.embeddings.position_embedding.weight")[0],
        features=shape("visual_projection.weight")[0],
        inner=(wide("vision_model"), wide("text_model")),
    )


def layers_of(found: Mapping[str, tuple[int, ...]], tower: str) -> int:
    """How many layers a tower has; 12 where nothing says it."""
    numbers = [int(m[1]) for name in found if (m := re.match(rf"{tower}\.encoder\.layers\.(\d+)\.", name))]
    return max(numbers, default=11) + 1


def load(path: str | os.PathLike[str], dtype: str = "float32") -> CLIP:
    """A CLIP from a file that `dqd convert` has made."""
    tensors, about = files.load(path, shapes_like(files.shapes(path))), files.metadata(path)
    heads = [int(about[f"{tower}_heads"]) if f"{tower}_heads" in about else None for tower in ("image", "text")]
    return from_tensors(tensors, dtype, activation=about.get("activation", "quick_gelu"), heads=(heads[0], heads[1]))


def from_tensors(
    tensors: files.Tensors,
    dtype: str = "float32",
    *,
    activation: str = "quick_gelu",
    heads: tuple[int | None, int | None] = (None, None),
) -> CLIP:
    """A CLIP that computes in `dtype`: float32, bfloat16, float16, or float64 under jax.enable_x64.

    `heads` are those of the image and of the text tower; None: each 64 wide.
    """
    computed, exact = jnp.dtype(dtype), jnp.promote_types(dtype, jnp.float32)

    def norm(name: str) -> Norm:
        return Norm(jnp.asarray(tensors[f"{name}.weight"], exact), jnp.asarray(tensors[f"{name}.bias"], exact))

    def embedding(name: str) -> Array:
        return jnp.asarray(tensors[name], computed)

    kernel = tensors["vision_model.embeddings.patch_embedding.weight"]
    image = ImageTower(
        patches=jnp.asarray(kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel)), computed),
        class_token=embedding("vision_model.embeddings.class_embedding"),
        positions=embedding("vision_model.embeddings.position_embedding.weight"),
        norm_before=norm("vision_model.pre_layrnorm"),
        transformer=transformer(tensors, "vision_model", computed, activation, heads[0]),
        norm_after=norm("vision_model.post_layernorm"),
        projection=jnp.asarray(tensors["visual_projection.weight"].T, exact),
    )
    text = TextTower(
        tokens=embedding("text_model.embeddings.token_embedding.weight"),
        positions=embedding("text_model.embeddings.position_embedding.weight"),
        transformer=transformer(tensors, "text_model", computed, activation, heads[1]),
        norm_after=norm("text_model.final_layer_norm"),
        projection=jnp.asarray(tensors["text_projection.weight"].T, exact),
    )
    return CLIP(image, text, jnp.asarray(tensors["logit_scale"], exact))


def transformer(
    tensors: files.Tensors,
    tower: str,
    dtype: jnp.dtype,
    activation: str,
    heads: int | None,
    epsilon: float = EPSILON,
) -> Transformer:
    """The layers of a tower, stacked."""
    exact = jnp.promote_types(dtype, jnp.float32)
    count = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith(f"{tower}.encoder.layers."))

    def stacked(name: str) -> np.ndarray:
        return np.stack([tensors[f"{tower}.encoder.layers.{i}.{name}"] for i in range(count)])

    def norm(name: str) -> Norm:
        scale, shift = (jnp.asarray(stacked(f"{name}.{part}"), exact) for part in ("weight", "bias"))
        return Norm(scale, shift, epsilon)

    def dense(*names: str) -> Dense:
        weight = np.concatenate([stacked(f"{name}.weight") for name in names], axis=1).transpose(0, 2, 1)
        bias = np.concatenate([stacked(f"{name}.bias") for name in names], axis=1)
        return Dense(jnp.asarray(weight, dtype), jnp.asarray(bias, dtype))

    return Transformer(
        norm1=norm("layer_norm1"),
        attention=dense("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        out=dense("self_attn.out_proj"),
        norm2=norm("layer_norm2"),
        up=dense("mlp.fc1"),
        down=dense("mlp.fc2"),
        activation=activation,
        heads=heads,
    )


def random_tensors(seed: int = 0, **sizes: int | tuple[int, int]) -> files.Tensors:
    """Random weights in the network's own scale, for tests and timings."""
    random = np.random.default_rng(seed)
    shapes = expected_shapes(**sizes)  # type: ignore[arg-type]

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        numbers = random.standard_normal(shape, np.float32)
        if "norm" in name and name.endswith("weight"):
            return 1 + 0.1 * numbers
        return numbers * (np.prod(shape[1:], initial=1) ** -0.5 if "embedding.weight" not in name else 0.1)

    return {name: np.asarray(draw(name, shape), np.float32) for name, shape in shapes.items()} | {
        "logit_scale": np.asarray(math.log(100), np.float32)
    }
