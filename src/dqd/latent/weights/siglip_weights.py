"""The weights of SigLIP: names and shapes as in Hugging Face's SiglipModel, for the towers of `siglip`."""

from __future__ import annotations

import os
from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from dqd.latent.scorers.clip import Dense, Norm
from dqd.latent.scorers.siglip import ImageTower, Pooling, SigLIP, TextTower
from dqd.latent.weights import files
from dqd.latent.weights.clip_weights import layer_shapes, layers_of, transformer

SIGNATURE = "vision_model.head.probe"
EPSILON = 1e-6
ACTIVATION = "gelu_pytorch_tanh"
HEADS = 12  # of the base model
LEFT_OUT = ("logit_bias", "position_ids")


def shapes_like(found: Mapping[str, tuple[int, ...]]) -> files.Shapes:
    """The expected shapes of a SigLIP as large as these weights say; of the base model where they say nothing."""

    def shape(name: str, usual: tuple[int, ...]) -> tuple[int, ...]:
        return found[name] if len(found.get(name, ())) == len(usual) else usual

    i, _, patch, _ = shape("vision_model.embeddings.patch_embedding.weight", (768, 3, 16, 16))
    vocabulary, t = shape("text_model.embeddings.token_embedding.weight", (32_000, 768))
    (positions, _) = shape("vision_model.embeddings.position_embedding.weight", (196, i))
    (length, _) = shape("text_model.embeddings.position_embedding.weight", (64, t))
    shapes: files.Shapes = {
        "logit_scale": shape("logit_scale", (1,)),
        "vision_model.embeddings.position_embedding.weight": (positions, i),
        "text_model.embeddings.token_embedding.weight": (vocabulary, t),
        "text_model.embeddings.position_embedding.weight": (length, t),
        SIGNATURE: (1, 1, i),
        "vision_model.head.attention.in_proj_weight": (3 * i, i),
        "vision_model.head.attention.in_proj_bias": (3 * i,),
    }
    inner = {
        tower: shape(f"{tower}.encoder.layers.0.mlp.fc1.weight", (4 * width, width))[0]
        for tower, width in (("vision_model", i), ("text_model", t))
    }
    weights: files.Shapes = {
        "vision_model.embeddings.patch_embedding": (i, 3, patch, patch),
        "vision_model.post_layernorm": (i,),
        "vision_model.head.attention.out_proj": (i, i),
        "vision_model.head.layernorm": (i,),
        "vision_model.head.mlp.fc1": (inner["vision_model"], i),
        "vision_model.head.mlp.fc2": (i, inner["vision_model"]),
        "text_model.final_layer_norm": (t,),
        "text_model.head": (i, t),
    }
    for tower, width in (("vision_model", i), ("text_model", t)):
        for number in range(layers_of(found, tower)):
            layer = layer_shapes(width, inner[tower])
            weights |= {f"{tower}.encoder.layers.{number}.{name}": shape for name, shape in layer.items()}
    for name, weight in weights.items():
        shapes |= {f"{name}.weight": weight, f"{name}.bias": weight[:1]}
    return shapes


def load(path: str | os.PathLike[str], dtype: str = "float32") -> SigLIP:
    """A SigLIP from a file that `dqd convert` has made."""
    tensors, about = files.load(path, shapes_like(files.shapes(path))), files.metadata(path)
    return from_tensors(tensors, (int(about["image_heads"]), int(about["text_heads"])), dtype)


def from_tensors(tensors: files.Tensors, heads: tuple[int, int], dtype: str = "float32") -> SigLIP:
    """A SigLIP with so many heads in its image and its text tower, that computes in `dtype`."""
    computed, exact = jnp.dtype(dtype), jnp.promote_types(dtype, jnp.float32)

    def array(name: str) -> Array:
        return jnp.asarray(tensors[name], computed)

    def norm(name: str) -> Norm:
        return Norm(jnp.asarray(tensors[f"{name}.weight"], exact), jnp.asarray(tensors[f"{name}.bias"], exact), EPSILON)

    def dense(weight: str, bias: str) -> Dense:
        return Dense(array(weight).T, array(bias))

    kernel = tensors["vision_model.embeddings.patch_embedding.weight"]
    head = "vision_model.head"
    image = ImageTower(
        patches=Dense(
            jnp.asarray(kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel)), computed),
            array("vision_model.embeddings.patch_embedding.bias"),
        ),
        positions=array("vision_model.embeddings.position_embedding.weight"),
        transformer=transformer(tensors, "vision_model", computed, ACTIVATION, heads[0], EPSILON),
        norm_after=norm("vision_model.post_layernorm"),
        pooling=Pooling(
            probe=array(f"{head}.probe")[0, 0],
            attention=dense(f"{head}.attention.in_proj_weight", f"{head}.attention.in_proj_bias"),
            out=dense(f"{head}.attention.out_proj.weight", f"{head}.attention.out_proj.bias"),
            norm=norm(f"{head}.layernorm"),
            up=dense(f"{head}.mlp.fc1.weight", f"{head}.mlp.fc1.bias"),
            down=dense(f"{head}.mlp.fc2.weight", f"{head}.mlp.fc2.bias"),
            activation=ACTIVATION,
            heads=heads[0],
        ),
    )
    text = TextTower(
        tokens=array("text_model.embeddings.token_embedding.weight"),
        positions=array("text_model.embeddings.position_embedding.weight"),
        transformer=transformer(tensors, "text_model", computed, ACTIVATION, heads[1], EPSILON),
        norm_after=norm("text_model.final_layer_norm"),
        head=Dense(
            jnp.asarray(tensors["text_model.head.weight"].T, exact), jnp.asarray(tensors["text_model.head.bias"], exact)
        ),
    )
    return SigLIP(image, text, jnp.asarray(tensors["logit_scale"], exact).reshape(()))
