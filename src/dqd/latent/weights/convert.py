"""Checkpoints that people have become safetensors that `lsi-stylegan` reads.

    stylegan1   the public PyTorch port of StyleGAN: g_mapping.*, g_synthesis.*        -> generator.safetensors
    stylegan2   the common PyTorch ports of StyleGAN2, rosinality's and NVIDIA's: g_ema -> generator.safetensors
    clip        a CLIP with its tokenizer's table, in a directory of Hugging Face's or of OpenCLIP's, or OpenAI's own
                file                                                                    -> clip.safetensors, merges.txt
    siglip      a SigLIP in a directory of Hugging Face's                           -> clip.safetensors, tokenizer.json

PyTorch files are read in a child process; TorchScript, as plain data. Files appear whole or not at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from dqd.inputs.names import check_known
from dqd.latent.generators import stylegan, stylegan2
from dqd.latent.problems.stylegan_clip import GENERATOR_FILE
from dqd.latent.scorers.clip import ACTIVATIONS
from dqd.latent.scorers.tokenizer import find_merges, read_merges
from dqd.latent.scorers.unigram import TABLE, find_table, read_pieces
from dqd.latent.weights import (
    clip_weights,
    files,
    nvidia,
    openclip,
    siglip_weights,
    text_image,
    torch_child,
)
from dqd.safe import MAX_BYTES, load_json, load_safetensors, torchscript
from dqd.safe.files import opened

MERGES_FILE = "merges.txt"
CLIP_FILES = (
    *("model.safetensors", "pytorch_model.bin"),
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "open_clip_pytorch_model.bin"),
)
TIMEOUT = 900  # seconds for the child
CHECKPOINTS = (b"PK", b"\x80")  # how a zip and a pickle begin
SIGNATURES = {  # a tensor that only this kind has, in each of its ports
    "stylegan1": ("g_synthesis.blocks.4x4.const", "blocks.4x4.const"),
    "stylegan2": ("conv1.conv.modulation.weight", nvidia.SIGNATURE),
    "clip": ("vision_model.embeddings.class_embedding", openclip.SIGNATURE),
    "siglip": (siglip_weights.SIGNATURE,),
}
KINDS = tuple(SIGNATURES)


def convert(
    source: str | os.PathLike[str], to: str | os.PathLike[str], kind: str | None = None, *, trust: bool = False
) -> list[Path]:
    """Write what `source` holds into the directory `to`; returns the files written.

    Args:
        source: a checkpoint, or the directory of a CLIP or SigLIP.
        kind: stylegan1, stylegan2, clip or siglip; by default the names of the tensors tell.
        trust: unpickle for real, in the child process: a pickle can run any code that its author put there.
    """
    source, to = Path(source), Path(to)
    if kind is not None:
        check_known("kind", kind, KINDS)
    checkpoint = _checkpoint(source)
    found = _read(checkpoint, trust)
    kind = kind or _kind(found, checkpoint)
    tensors = _only(found, SIGNATURES[kind], checkpoint)
    if kind == "clip":
        return _convert_clip(tensors, checkpoint, to)
    if kind == "siglip":
        return _convert_siglip(tensors, checkpoint, to)
    target = _free(to / GENERATOR_FILE)
    if kind == "stylegan1":
        return [_write(target, _stylegan1(tensors, checkpoint), stylegan.shapes_like, {"kind": kind}, checkpoint)]
    return [_write(target, _stylegan2(tensors, checkpoint), stylegan2.shapes_like, {"kind": kind}, checkpoint)]


def _checkpoint(source: Path) -> Path:
    """The file with the tensors."""
    if source.is_file():
        return source
    if not source.is_dir():
        raise FileNotFoundError(f"{source}: no such file or directory")
    for name in CLIP_FILES:
        if (source / name).is_file():
            return source / name
    raise FileNotFoundError(f"{source}: expected {' or '.join(CLIP_FILES)} in the directory of a CLIP or SigLIP")


# Kinds ----------------------------------------------------------------------------------------------------------------


def _kind(found: files.Tensors, where: Path) -> str:
    ends = {name.rsplit("/", 1)[-1] for name in found}
    kinds = [kind for kind, signatures in SIGNATURES.items() if ends & set(signatures)]
    if len(kinds) == 1:
        return kinds[0]
    some = ", ".join(list(found)[:3]) or "none"
    *others, last = SIGNATURES
    raise ValueError(f"{where}: neither {', '.join(others)} nor {last} by the names of its tensors ({some}, ...)")


def _only(found: files.Tensors, signatures: tuple[str, ...], where: Path) -> files.Tensors:
    """The dictionary in which a signature stands; of several the averaged one, g_ema."""
    places = [name.rpartition("/") for name in found]
    prefixes = [folder + slash for folder, slash, name in places if name in signatures]
    if not prefixes:
        raise ValueError(f"{where}: no tensor {' or '.join(signatures)}, which every checkpoint of this kind has")
    prefix = min(prefixes, key=lambda prefix: (prefix.lower() != "g_ema/", len(prefix)))
    inside = {name[len(prefix) :]: array for name, array in found.items() if name.startswith(prefix)}
    return {name: array for name, array in inside.items() if "/" not in name}


def _stylegan1(tensors: files.Tensors, where: Path) -> files.Tensors:
    """Without a truncation's average, which the paper did not use. A synthesis network alone may have no prefix."""
    prefix = "" if any(name.startswith("g_synthesis.") for name in tensors) else "g_synthesis."
    kept = {prefix + name: array for name, array in tensors.items() if not name.endswith("avg_latent")}
    return _without_filters(kept, [1, 2, 1], 16, where)


def _stylegan2(tensors: files.Tensors, where: Path) -> files.Tensors:
    """By the names of rosinality's port; with noise, which older checkpoints do not hold."""
    tensors = nvidia.renamed(tensors) if nvidia.SIGNATURE in tensors else tensors
    kept = _without_filters(tensors, [1, 3, 3, 1], 16, where)
    shapes = stylegan2.shapes_like({name: array.shape for name, array in kept.items()})
    random = np.random.default_rng(0)
    noise = {
        name: random.standard_normal(shape, np.float32)
        for name, shape in shapes.items()
        if name.startswith("noises.") and name not in kept
    }
    return kept | noise


def _without_filters(tensors: files.Tensors, taps: list[int], over: int, where: Path) -> files.Tensors:
    """The networks have their filters built in; those of the checkpoint must be the same."""
    built_in = np.outer(taps, taps) / over
    for name in [name for name in tensors if name.endswith(".kernel")]:
        found = tensors[name]
        if found.size != built_in.size or not np.allclose(found.reshape(built_in.shape), built_in, atol=1e-6):
            raise ValueError(f"{where}: {name} is another filter than the published {taps}")
    return {name: array for name, array in tensors.items() if not name.endswith(".kernel")}


def _convert_clip(tensors: files.Tensors, checkpoint: Path, to: Path) -> list[Path]:
    merges = read_merges(find_merges(checkpoint.parent))
    target, table = _free(to / text_image.FILE), _free(to / MERGES_FILE)
    if openclip.SIGNATURE in tensors:
        described, tensors = _as_openclip(tensors, checkpoint), openclip.renamed(tensors)
    else:
        described = _as_hugging_face(checkpoint.parent)
        tensors = {name: array for name, array in tensors.items() if not name.endswith("position_ids")}
    written = _write(target, tensors, clip_weights.shapes_like, {"kind": "clip", **described}, checkpoint)
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    return [written, _write_text(table, "\n".join(lines) + "\n")]


def _convert_siglip(tensors: files.Tensors, checkpoint: Path, to: Path) -> list[Path]:
    """The bias of its log-odds is left out, and of the tokenizer all but the pieces."""
    pieces, unknown = read_pieces(find_table(checkpoint.parent))
    target, table = _free(to / text_image.FILE), _free(to / TABLE)
    kept = {name: array for name, array in tensors.items() if not name.endswith(siglip_weights.LEFT_OUT)}
    described = _as_hugging_face(checkpoint.parent, siglip_weights.ACTIVATION, usual_heads=siglip_weights.HEADS)
    if described["activation"] != siglip_weights.ACTIVATION:
        raise ValueError(f"{checkpoint.parent}: expected the activation {siglip_weights.ACTIVATION} of a SigLIP")
    written = _write(target, kept, siglip_weights.shapes_like, {"kind": "siglip", **described}, checkpoint)
    model = {"type": "Unigram", "unk_id": unknown, "vocab": pieces}
    return [written, _write_text(table, json.dumps({"model": model}, ensure_ascii=False) + "\n")]


def _write_text(target: Path, text: str) -> Path:
    with tempfile.TemporaryDirectory(prefix=".text-", dir=target.parent) as folder:
        aside = Path(folder) / target.name
        aside.write_text(text, encoding="utf-8")
        return aside.replace(target)


def _as_openclip(tensors: files.Tensors, checkpoint: Path) -> dict[str, str]:
    """What OpenCLIP's configuration says. OpenAI's own file, TorchScript, needs none."""
    path = checkpoint.parent / openclip.CONFIG
    if not path.is_file() and not torchscript.is_torchscript(checkpoint):
        raise FileNotFoundError(f"{path} is missing; it says which activation and how many heads this CLIP has")
    config = load_json(path) if path.is_file() else {}
    openclip.check(config, str(path))
    return openclip.described(config, tensors)


def _as_hugging_face(directory: Path, activation: str = "quick_gelu", usual_heads: int | None = None) -> dict[str, str]:
    """Activation and heads by the model's configuration; where it says nothing, the usual ones."""
    path = directory / "config.json"
    config = load_json(path) if path.is_file() else {}
    towers = {name: config.get(f"{theirs}_config") or {} for name, theirs in (("image", "vision"), ("text", "text"))}
    names = {tower.get("hidden_act", activation) for tower in towers.values()}
    if len(names) != 1 or not names <= set(ACTIVATIONS):
        raise ValueError(f"{path}: expected one hidden_act of {', '.join(ACTIVATIONS)}, got {', '.join(sorted(names))}")
    heads = {name: tower.get("num_attention_heads", usual_heads) for name, tower in towers.items()}
    return {"activation": names.pop(), **{f"{name}_heads": str(count) for name, count in heads.items() if count}}


# Files ----------------------------------------------------------------------------------------------------------------


def _read(path: Path, trust: bool) -> files.Tensors:
    """Every tensor of a file in float32, whatever its kind."""
    if path.suffix == ".safetensors":
        return _float32(path)
    if torchscript.is_torchscript(path):
        return {name: np.asarray(array, np.float32) for name, array in torchscript.read(path).items()}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tensors.safetensors"
        _run_child(path, target, trust)
        return _float32(target)


def _float32(path: Path) -> files.Tensors:
    return {name: np.asarray(array, np.float32) for name, array in load_safetensors(path).items()}


def _run_child(path: Path, target: Path, trust: bool) -> None:
    with opened(path, MAX_BYTES) as (file, _):
        if not file.read(4).startswith(CHECKPOINTS):
            raise ValueError(f"{path}: neither a PyTorch checkpoint nor safetensors")
    # -I: nothing but installed packages is imported. A trusted pickle may need code beside it: PYTHONPATH counts then.
    isolation, options = ("-P", ["--trust"]) if trust else ("-I", [])
    command = [sys.executable, isolation, torch_child.__file__, str(path.absolute()), str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)  # noqa: S603
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
    if done.returncode == torch_child.NO_TORCH:
        raise RuntimeError(f"{path}: reading PyTorch checkpoints needs torch; pip install 'dqd[torch]'")
    if done.returncode == torch_child.NEEDS_TRUST and trust:
        raise ValueError(f"{path}: could not be unpickled: {last}")
    if done.returncode == torch_child.NEEDS_TRUST:
        raise ValueError(
            f"{path}: holds more than tensors and needs real unpickling, which can run any code that its author put "
            "there; if you trust whom you have it from, add --i-trust-this-file"
        )
    if done.returncode == torch_child.DAMAGED:
        raise ValueError(f"{path}: cut short or not a PyTorch checkpoint ({last}); copy it again")
    if done.returncode != 0:
        raise RuntimeError(f"{path}: the process that read it failed: {last}")


def _free(target: Path) -> Path:
    if target.exists():
        raise FileExistsError(f"{target} already exists; remove it or choose another directory")
    return target


def _write(
    target: Path,
    tensors: files.Tensors,
    shapes_like: Callable[[Mapping[str, tuple[int, ...]]], files.Shapes],
    about: Mapping[str, str],
    source: Path,
) -> Path:
    found = {name: tuple(array.shape) for name, array in tensors.items()}
    files.check(found, shapes_like(found), str(source))
    files.check_finite(tensors, str(source))
    return files.write(target, tensors, {"format": "dqd", **about})
