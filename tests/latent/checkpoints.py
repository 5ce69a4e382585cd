"""Made-up checkpoints in the forms that people have."""

import json

import numpy as np
import torch
from safetensors.torch import save_file

from dqd.latent.generators import convolutions, stylegan, stylegan2
from dqd.latent.scorers.tokenizer import NUM_MERGES
from dqd.latent.weights import clip_weights

OPENCLIP = "open_clip_model.safetensors"
TINY = {"width": 1 / 64}
SIZES = {"image": (64, 1), "text": (64, 1), "patch": 8, "positions": 5, "length": 16, "features": 16}


def as_torch(tensors):
    return {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}


def stylegan1_state(resolution=16):
    """With the blur's kernels, as the port's state dict has them."""
    state = as_torch(stylegan.random_tensors(resolution, **TINY))
    blur = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]])[None, None] / 16
    sizes = convolutions.sizes(resolution)[1:]
    return state | {f"g_synthesis.blocks.{size}x{size}.conv0_up.intermediate.kernel": blur for size in sizes}


def stylegan2_checkpoint(resolution=16, noise=True):
    """g_ema beside the network in training, whose weights differ."""
    averaged = as_torch(stylegan2.random_tensors(resolution, seed=1, **TINY))
    if not noise:
        averaged = {name: tensor for name, tensor in averaged.items() if not name.startswith("noises.")}
    taps = torch.tensor([1.0, 3, 3, 1])
    averaged |= dict.fromkeys(("convs.0.conv.blur.kernel", "to_rgbs.0.upsample.kernel"), taps[:, None] * taps / 16)
    training = as_torch(stylegan2.random_tensors(resolution, seed=2, **TINY))
    return {"g": training, "g_ema": averaged, "latent_avg": torch.zeros(512)}


def clip_directory(folder, *, binary=False, activation="quick_gelu"):
    """A Hugging Face directory in float16, with a made-up table of merges."""
    folder.mkdir()
    state = {name: tensor.half() for name, tensor in as_torch(clip_weights.random_tensors(3, **SIZES)).items()}
    state["vision_model.embeddings.position_ids"] = torch.arange(5)[None]
    if binary:
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_file(state, folder / "model.safetensors")
    one = {"hidden_act": activation, "num_attention_heads": 4}
    towers = {f"{tower}_config": one for tower in ("vision", "text")}
    (folder / "config.json").write_text(json.dumps(towers))
    return merges(folder)


def merges(folder):
    """A made-up table, with which nothing is merged."""
    rows = (f"{chr(0x4E00 + i // 256)} {chr(0x100 + i % 256)}" for i in range(NUM_MERGES))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(rows) + "\n")
    return folder
