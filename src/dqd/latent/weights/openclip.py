"""CLIPs by the names that OpenAI and OpenCLIP give their tensors, as those of Hugging Face's. No JAX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

SIGNATURE = "visual.class_embedding"
CONFIG = "open_clip_config.json"
HEAD_WIDTH = 64  # unless the configuration says otherwise
SINGLE = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "logit_scale": "logit_scale",
}
NORMS = {
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "ln_final": "text_model.final_layer_norm",
}
PARTS = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "attn.out_proj": "self_attn.out_proj",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
}
LAYER = re.compile(r"(visual\.)?transformer\.resblocks\.(\d+)\.(.+)")
LEFT_OUT = ("attn_mask", "input_resolution", "context_length", "vocab_size")


def renamed(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same tensors under the other names; attention in three parts, projections turned."""
    found: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        stem, _, end = name.rpartition(".")
        if name in SINGLE:
            found[SINGLE[name]] = array
        elif stem in NORMS:
            found[f"{NORMS[stem]}.{end}"] = array
        elif name == "visual.proj":
            found["visual_projection.weight"] = array.T
        elif name == "text_projection":
            found["text_projection.weight"] = array.T
        elif layer := LAYER.fullmatch(name):
            found |= _layer(layer, array)
        elif name not in LEFT_OUT:
            found[name] = array  # it will be named as one that is not expected
    return found


def _layer(match: re.Match[str], array: np.ndarray) -> dict[str, np.ndarray]:
    tower = "vision_model" if match[1] else "text_model"
    prefix, name = f"{tower}.encoder.layers.{match[2]}", match[3]
    if name.startswith("attn.in_proj_"):
        kind = name.removeprefix("attn.in_proj_")
        thirds = zip("qkv", np.split(array, 3), strict=True)
        return {f"{prefix}.self_attn.{part}_proj.{kind}": each for part, each in thirds}
    stem, _, end = name.rpartition(".")
    return {f"{prefix}.{PARTS.get(stem, stem)}.{end}": array}


def described(config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Activation and heads, by OpenCLIP's configuration; of OpenAI's own models there is none."""
    model: Any = config.get("model_cfg", config)
    vision, text = model.get("vision_cfg") or {}, model.get("text_cfg") or {}
    width = tensors["visual.class_embedding"].shape[0]
    text_width = tensors["positional_embedding"].shape[1]
    quick = bool(model.get("quick_gelu", not config))  # OpenAI's, and those that say so
    return {
        "activation": "quick_gelu" if quick else "gelu",
        "image_heads": str(width // int(vision.get("head_width") or HEAD_WIDTH)),
        "text_heads": str(int(text.get("heads") or text_width // HEAD_WIDTH)),
    }


def check(config: Mapping[str, Any], where: str) -> None:
    """Towers that are built otherwise are refused, not misread."""
    model: Any = config.get("model_cfg", config)
    vision, text = model.get("vision_cfg") or {}, model.get("text_cfg") or {}
    others = [
        name
        for name, strange in {
            "a vision tower of timm": vision.get("timm_model_name"),
            "a text tower of Hugging Face": text.get("hf_model_name"),
            "attentional pooling": vision.get("attentional_pool"),
            "a class token at the end of texts": text.get("embed_cls"),
            "pooling other than by the class token": vision.get("pool_type") not in (None, "tok"),
            "no norm before the transformer": vision.get("no_ln_pre"),
            "a ResNet": isinstance(vision.get("layers"), list),
        }.items()
        if strange
    ]
    if others:
        raise ValueError(f"{where}: {others[0]}, which is not read here; a plain ViT is")
